"""Which run of a simulation made some events: the same one makes the same events, byte for byte."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

FILE: Final = "simulation.json"
"""Beside the shards of a simulated pool."""
_KNOWN: Final = 1


class RunDescription(msgspec.Struct, frozen=True, kw_only=True):
    """All that the events follow from, and the rules that they do not say."""

    version: int = _KNOWN
    """Of this description."""
    kettle: str
    """The release that has played it."""
    file: str
    """The name of the simulation's file."""
    sha256: str
    """Of that file as it was read."""
    seed: int
    rules: Mapping[str, Any]
    """The tables `negotiator`, `factors` and `kettle` of that file: what a real pool has in its settings, and not in its log."""


class RunDescriptionError(Exception):
    """There is none that can be used; the message is a sentence that says where."""


def written(description: RunDescription) -> bytes:
    """For people, too."""
    return msgspec.json.format(msgspec.json.encode(description, order="sorted"), indent=2) + b"\n"


def described(directory: Path) -> RunDescription:
    """
    The description that lies beside some events.

    Raises:
        RunDescriptionError: there is none, or it is not one of this release.
    """
    path = directory / FILE
    try:
        found = msgspec.json.decode(path.read_bytes(), type=RunDescription)
    except FileNotFoundError as error:
        raise RunDescriptionError(
            f"{directory} has no {FILE}: name a directory that kettle simulate run --events has written"
        ) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise RunDescriptionError(f"{path} cannot be read: {error}") from error
    if found.version > _KNOWN:
        raise RunDescriptionError(
            f"{path} was written by release {found.kettle}, which is newer: use that one to look at it"
        )
    return found
