"""What the directory of a machine says that is a process of this host."""

from pathlib import Path
from typing import Final

import msgspec

from kettle_services.provisioner.port import ProviderError
from kettle_wire.leases import ErrorClass

_STATE: Final = "machine.json"


class UnreadableError(ProviderError):
    """A file that we have written is not what we wrote: which machines there are is not known."""


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One machine, as its directory says."""

    handle: str
    lease: str
    deployment: str
    offer: str
    cpus: int
    created: float
    starts: float
    """When its program starts, seconds since the epoch."""
    boot: str
    """Of the host; another one means that the process is gone."""
    interrupted: float = 0.0
    """When it is taken back; 0: never."""
    pid: int = 0
    start: int = 0
    asked: float = 0.0
    """When it was asked to end."""
    why: str = ""
    groups: list[str] = []
    """The directories of its control groups, if it has some."""


def load(directory: Path) -> Machine | None:
    """The machine of a directory; None: there is none.  Raises UnreadableError."""
    file = directory / _STATE
    try:
        return msgspec.json.decode(file.read_bytes(), type=Machine)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise UnreadableError(
            ErrorClass.CONFIG,
            f"{file} cannot be read ({error}): bring it back, or end what runs of this machine and remove {directory}",
        ) from error


def save(directory: Path, machine: Machine) -> None:
    """Write it, all of it or nothing."""
    stage = (directory / _STATE).with_suffix(".new")
    stage.write_bytes(msgspec.json.encode(machine))
    stage.replace(directory / _STATE)
