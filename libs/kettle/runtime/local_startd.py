"""
Where a schedd finds the startd of its own machine, for jobs that run where they are submitted.

The startd leaves a file in the home that both share.  Only its owner may read it, and a schedd that can read it may
claim the local slot: this proves that the schedd belongs to the machine.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

_FILE: Final = "local_jobs.json"


class LocalStartd(msgspec.Struct, frozen=True, kw_only=True):
    """A startd, the name of its local slot, and the secret that opens it."""

    startd: str
    slot: str
    capability: str


def leave_word(home: Path, startd: LocalStartd) -> None:
    """Write the file for the schedds of this home; raises OSError."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    stage = home / f".{_FILE}.{os.getpid()}"
    with os.fdopen(os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(startd))
    stage.replace(home / _FILE)


def take_back(home: Path) -> None:
    """There is no such startd any more."""
    (home / _FILE).unlink(missing_ok=True)


def find(home: Path) -> LocalStartd | None:
    """The startd of this home; None if there is none, or the file is invalid."""
    try:
        return msgspec.json.decode((home / _FILE).read_bytes(), type=LocalStartd)
    except (OSError, msgspec.MsgspecError):
        return None
