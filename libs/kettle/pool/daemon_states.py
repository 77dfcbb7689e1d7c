"""
The state of a pool's services, published by its master for everybody on the machine who may read it.

The file is replaced whole at each change.  It has the last known state: the lock shows whether the master runs.
"""

import os
import secrets
from typing import Literal

import msgspec

from kettle.pool.home import Home

Status = Literal["starting", "running", "standby", "waiting", "stopping", "off", "left"]


class DaemonState(msgspec.Struct, frozen=True, kw_only=True):
    """One service or server under the master."""

    name: str
    status: Status
    """
    `standby`: it waits until it is needed.  `waiting`: for its next start.  `off`: switched off, or the pool is going down.
    `left`: it asked not to be started again.
    """
    pid: int = 0
    """0: it does not run."""
    since: float = 0.0
    """Unix time of its last start, or end."""
    starts: int = 0
    last_exit: str = ""
    hangs: int = 0
    """How often it was ended because it gave no sign of life."""
    settings: str = ""
    """
    The answer to the last request to read its settings again: `unchanged`, `changed`, or why they are refused.
    """


class MasterState(msgspec.Struct, frozen=True, kw_only=True):
    """The master and everything it runs, in the order in which it was started."""

    pool: str
    pool_id: str
    pid: int
    started: float
    """Unix time."""
    ready: bool = False
    name: str = ""
    """The master's name on the bus."""
    version: str = ""
    nats_url: str = ""
    database_url: str = ""
    """
    For tools that read the log themselves; everybody who may read this file may do that.  The password is in a file
    that it names.
    """
    daemons: tuple[DaemonState, ...] = ()

    def daemon(self, name: str) -> DaemonState | None:
        """The service or server of this name."""
        return next((daemon for daemon in self.daemons if daemon.name == name), None)


def write_state(home: Home, state: MasterState) -> None:
    """Replace the state file, atomically."""
    stage = home.path / f".state.{secrets.token_hex(4)}"
    fd = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.json.encode(state))
        stage.replace(home.state)
    except OSError:
        stage.unlink(missing_ok=True)
        raise


def read_state(home: Home) -> MasterState | None:
    """What was last written; None if nothing was, or a later version wrote something else."""
    try:
        return msgspec.json.decode(home.state.read_bytes(), type=MasterState)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
