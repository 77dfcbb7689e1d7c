"""What all services can be told, and which services a host runs with which environment."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle.runtime import Settings, SettingsError
from kettle.runtime.settings import Reading, config_path
from kettle.runtime.settings_problems import SettingsFile
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.ce.settings import CeSettings
from kettle_services.collector.settings import CollectorSettings
from kettle_services.dagman.settings import DagmanSettings
from kettle_services.gateway.settings import GatewaySettings
from kettle_services.iam.settings import IamSettings
from kettle_services.master.domain.start_order import Instance
from kettle_services.master.settings import MasterSettings
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.provisioner.settings import ProvisionerSettings
from kettle_services.scaler.settings import ScalerSettings
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.sessions.settings import SessionsSettings
from kettle_services.shadow.settings import ShadowSettings
from kettle_services.startd.settings import StartdSettings

SETTINGS: Final[Mapping[str, type[Settings]]] = {
    "accounting": AccountingSettings,
    "ce": CeSettings,
    "collector": CollectorSettings,
    "dagman": DagmanSettings,
    "gateway": GatewaySettings,
    "iam": IamSettings,
    "master": MasterSettings,
    "negotiator": NegotiatorSettings,
    "provisioner": ProvisionerSettings,
    "scaler": ScalerSettings,
    "schedd": ScheddSettings,
    "sessions": SessionsSettings,
    "shadow": ShadowSettings,
    "startd": StartdSettings,
}
MASTER: Final = "master"


class DaemonReading(msgspec.Struct, frozen=True):
    """The settings of one entry of the daemon list, or of a service that has a table and no entry."""

    daemon: str
    reading: Reading[Settings]


def readings(environ: Mapping[str, str], file: SettingsFile | None) -> Iterator[DaemonReading]:
    """
    What each daemon of this host reads; the master's first.

    Services that do not run here have a reading too: a mistake in their tables and variables is one all the same.
    """
    master = MasterSettings.read_from(MASTER, environ, file)
    yield DaemonReading(MASTER, master)
    try:
        host = master.settings()
    except SettingsError:
        host = MasterSettings()
    roles: set[str] = {MASTER}
    for daemon in host.daemon_list:
        instance = Instance.parse(daemon)
        roles.add(instance.role)
        variables = {**environ, **instance.variables(), **host.environment.get(daemon, {})}
        yield _read(daemon, instance.role, variables, file)
    for role in sorted(SETTINGS.keys() - roles):
        yield _read(role, role, environ, file)


def of_host(environ: Mapping[str, str], path: Path | None) -> list[DaemonReading]:
    """
    What the daemons of this host read from a file, or from the one that the environment leads to.

    Raises:
        SettingsError: the file cannot be read at all.
    """
    path = path or config_path(environ)
    return list(readings(environ, None if path is None else SettingsFile.read(path)))


def kind_of(role: str) -> type[Settings]:
    """The settings of a role; of one that is not ours, what all services have."""
    return SETTINGS.get(role, Settings)


def _read(daemon: str, role: str, environ: Mapping[str, str], file: SettingsFile | None) -> DaemonReading:
    return DaemonReading(daemon, kind_of(role).read_from(role, environ, file))
