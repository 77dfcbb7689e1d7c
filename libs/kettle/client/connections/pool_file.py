"""
Where the pool is: `pool.json` in the pool's directory, written by `kettle up` for the person's programs.
"""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle.client.errors import PoolNotFoundError
from kettle.retry.lock_files import is_held

FILE: Final = "pool.json"
DEFAULT_POOL: Final = "personal"


SYSTEM: Final = "/run/kettle"
"""Where a pool of root has a directory for each account that may use it."""
USER: Final = "KETTLE_USER"
"""Who a running job is in its pool; the account that it runs as may be another."""


class PoolFile(msgspec.Struct, frozen=True, kw_only=True):
    """
    How to reach a pool as one person.  It names the secret, it does not hold it, but is for its owner's eyes too.
    """

    pool: str = DEFAULT_POOL
    nats_url: str
    credentials: str = ""
    """Path of a file with the credentials of the person, or an NKey seed; empty: the server asks for none."""
    ca: str = ""
    """
    Path of the certificate of the authority that the bus's certificate must come from; with it connections are encrypted.
    """
    user: str = ""
    """The login name, as the pool knows it."""
    schedd: str = "schedd"
    collector: str = "collector"
    negotiator: str = "negotiator"
    accounting: str = "accounting"
    iam: str = "iam"
    scaler: str = ""
    """The name of its scaler; empty: nobody knows whether there is one."""
    master: str = ""
    """The name of this host's master; empty: the host has none that is known."""
    database_url: str = ""
    """For `kettle log`; empty where a person does not reach the database."""
    iam_url: str = ""
    """Where its iam answers over HTTP; empty: nobody knows."""
    sentinel: str = ""
    """Path of what is shown to the bus together with a token; empty: the pool takes no tokens."""
    issuers: tuple[str, ...] = ()
    """Whose tokens it takes."""
    trust_domain: str = ""
    """The name by which its IDTOKENS call it."""
    token: str = ""
    """Where the token is that is shown (`kettle.client.connections.credentials`); it is never in this file."""
    by_job: bool = False
    """Whether that is the token of a running job, which may submit less."""
    by_token: bool = False
    """Whether the person is one by a token, also where another credential of the same person is shown to the bus."""
    lock: str = ""
    """Path of the lock that the pool's master holds on its machine; elsewhere it leads nowhere."""

    @property
    def left_over(self) -> bool:
        """Whether this machine's master has ended without removing the file."""
        if not self.lock:
            return False
        try:
            return not is_held(self.lock)
        except OSError:
            return False

    @property
    def is_elsewhere(self) -> bool:
        """
        Whether the access point does not see this machine's files: the pool is known by its address alone.
        """
        return bool(self.iam_url) and not self.lock

    def name_of(self, role: str) -> str:
        """The name of the service of a role that is asked if none is named; of masters it is this host's."""
        match role:
            case "schedd" | "dagman" | "ce" | "sessions":  # each access point has its own
                return self.schedd
            case "collector":
                return self.collector
            case "negotiator":
                return self.negotiator
            case "accounting":
                return self.accounting
            case "gateway":
                return role  # all gateways of a pool answer as one
            case "iam":
                return self.iam
            case "scaler":
                return self.scaler or role
            case "master":
                import socket

                return self.master or socket.gethostname()
            case _:
                raise ValueError(f"a {role} is asked by its name")

    def at(self, schedd: str) -> "PoolFile":
        """The pool with the queue of another access point, if one is named."""
        return msgspec.structs.replace(self, schedd=schedd) if schedd else self

    def save(self, home: Path) -> Path:
        """Write the file into a pool's directory, whole or not at all, readable by its owner only."""
        path = home / FILE
        stage = home / f".{FILE}.{os.urandom(4).hex()}"
        fd = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(self)) + b"\n")
            stage.replace(path)
        except OSError:
            stage.unlink(missing_ok=True)
            raise
        return path

    @classmethod
    def load(cls, home: Path) -> "PoolFile":
        """Read the file of a pool's directory; raises PoolNotFoundError."""
        path = home / FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError as error:
            raise PoolNotFoundError(
                f"no pool is up: {path} does not exist; start one with: kettle up"
            ) from error
        except OSError as error:
            raise PoolNotFoundError(f"{path} cannot be read: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise PoolNotFoundError(f"{path} is damaged ({error}); write it again with: kettle up") from error


def home_directory(environ: Mapping[str, str] | None = None) -> Path:
    """`$KETTLE_HOME`, else `~/.kettle`."""
    environ = os.environ if environ is None else environ
    return Path(environ.get("KETTLE_HOME") or "~/.kettle").expanduser()


def system_directory() -> Path:
    """Where a pool of root tells this account how to reach it, if the account may."""
    try:
        return Path(SYSTEM, pwd.getpwuid(os.geteuid()).pw_name)
    except KeyError:
        return Path(SYSTEM, str(os.geteuid()))


def login_name() -> str:
    """Who we are on this machine; the number of an account that has no name."""
    try:
        import getpass

        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())
