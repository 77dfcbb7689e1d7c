"""The functions of the modules that belong to no class."""

import logging
import sys
from typing import Any, Final, NoReturn

from kettle.bindings.ads import ClassAd
from kettle.bindings.daemon_locations import pool_of
from kettle.bindings.enumerations import LogLevel, SubsystemType
from kettle.bindings.errors import NotCarriedOutError
from kettle.bindings.param import param
from kettle.bindings.pool_connections import ask, pool_here

_log: Final = logging.getLogger("kettle")
_handler: Final = logging.StreamHandler(sys.stderr)
_LEVELS: Final = {LogLevel.Always: logging.WARNING, LogLevel.Error: logging.ERROR}


def enable_debug(flags: str | None = None) -> None:
    """Write what the client does to stderr."""
    del flags
    _log.addHandler(_handler)
    _log.setLevel(logging.DEBUG)


def disable_debug() -> None:
    """Stop that."""
    _log.removeHandler(_handler)


def enable_log() -> None:
    """Do the same as `enable_debug`: Kettle's client has no log file of its own."""
    enable_debug()


def log(level: LogLevel | int, message: str) -> None:
    """Write a message to the log of this process."""
    _log.log(_LEVELS.get(LogLevel(level), logging.INFO), message)


def set_subsystem(name: str, daemon_type: SubsystemType = SubsystemType.Auto) -> None:
    """Say what this process is; no setting of Kettle's depends on it."""


def reload_config(root_config_file: str | None = None) -> None:
    """Read the settings again."""
    del root_config_file
    param.refresh()


def ping(location: str | ClassAd | None = None, authz: str | None = None, security: Any = None) -> ClassAd:
    """
    Ask the pool's schedd something, or the schedd or collector of whose ad this is; who it takes us for.

    Raises:
        HTCondorIOError: it does not answer.
    """
    del authz, security
    is_collector = isinstance(location, ClassAd) and location.get("MyType") == "Collector"
    role = "collector" if is_collector else "schedd"
    pool = pool_of(location, role) if isinstance(location, ClassAd) else pool_here()
    if is_collector:
        ask(pool, lambda client: client.ads("Collector", projection=["Name"]))
    else:
        ask(pool, lambda client: client.totals())
    return ClassAd(
        {"MyRemoteUserName": pool.user, "AuthenticatedName": pool.user, "AuthorizationSucceeded": True}
    )


def send_command(ad: ClassAd, dc: int, target: str | None = None) -> NoReturn:
    """Not carried out: hosts are administered by `kettle`."""
    raise NotCarriedOutError("daemons are switched by: kettle on, kettle off, kettle restart")


def send_alive(ad: ClassAd | None = None, pid: int | None = None, timeout: int | None = None) -> NoReturn:
    """Not carried out: no program of others is a daemon of Kettle's."""
    raise NotCarriedOutError("this process is no child of a master of Kettle's")


def set_ready_state(state: str = "Ready") -> NoReturn:
    """Not carried out: no program of others is a daemon of Kettle's."""
    raise NotCarriedOutError("this process is no child of a master of Kettle's")
