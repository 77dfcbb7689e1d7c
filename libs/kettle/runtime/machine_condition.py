"""
How a machine is, left by its startd in a file for the program that renews the machine's lease, which has no other way to learn it
while the bus is away.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

_FILE: Final = "condition.json"


class MachineCondition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What its startd knows."""

    claims: int = 0
    running: int = 0
    """Jobs that run."""
    ended: int = 0
    """Attempts that have ended since the startd began."""
    failing: int = 0
    """Different jobs in a row that failed soon."""
    condemned: str = ""
    """Why it takes no more jobs by its own judgement; empty: it has not judged so."""


def write_condition(state: Path, condition: MachineCondition) -> None:
    """Replace the file in the state of the startd; raises OSError."""
    stage = state / f".{_FILE}.{os.getpid()}"
    with os.fdopen(os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(condition))
    stage.replace(state / _FILE)


def read_condition(state: Path) -> MachineCondition | None:
    """What was written last; None if nothing was."""
    try:
        return msgspec.json.decode((state / _FILE).read_bytes(), type=MachineCondition)
    except (OSError, msgspec.MsgspecError):
        return None
