"""
The authorization levels of HTCondor: what each permits besides itself, and whose list it uses without one of its own.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

SCOPE: Final = "condor:/"
"""What stands before a level in the scopes of a token."""


class Level(StrEnum):
    """What a command needs; the value is how lists, scopes and rules spell it."""

    READ = "READ"
    """Queries."""
    WRITE = "WRITE"
    """Submit jobs, and act on one's own."""
    ADMINISTRATOR = "ADMINISTRATOR"
    """Switch daemons, drain machines, set priorities."""
    CONFIG = "CONFIG"
    """Change settings from elsewhere."""
    DAEMON = "DAEMON"
    """What daemons ask each other."""
    NEGOTIATOR = "NEGOTIATOR"
    """Give matches to schedds, and read the private ads of machines."""
    ADVERTISE_MASTER = "ADVERTISE_MASTER"
    ADVERTISE_STARTD = "ADVERTISE_STARTD"
    ADVERTISE_SCHEDD = "ADVERTISE_SCHEDD"
    OWNER = "OWNER"
    """Commands of a machine's owner; no longer used by HTCondor."""

    @property
    def scope(self) -> str:
        """How a token says that it has this level."""
        return f"{SCOPE}{self}"

    def implied(self) -> frozenset["Level"]:
        """The levels that somebody has who has this one, itself among them."""
        return _CLOSURE[self]

    def implied_by(self) -> tuple["Level", ...]:
        """The levels that directly imply this one, in the order in which they are asked."""
        return _PARENTS[self]

    def lists(self) -> tuple["Level", ...]:
        """
        Whose allow and deny lists count, the first that is given: its own, then those of DAEMON for ads.
        """
        return (self, Level.DAEMON) if self in _ADVERTISE else (self,)


_ADVERTISE: Final = frozenset({Level.ADVERTISE_MASTER, Level.ADVERTISE_STARTD, Level.ADVERTISE_SCHEDD})
_IMPLIES: Final[Mapping[Level, Level]] = {
    Level.WRITE: Level.READ,
    Level.ADMINISTRATOR: Level.WRITE,
    Level.DAEMON: Level.WRITE,
    Level.NEGOTIATOR: Level.READ,
    Level.CONFIG: Level.READ,
    Level.OWNER: Level.READ,
    **dict.fromkeys(sorted(_ADVERTISE), Level.READ),
}
"""The next lower level of each."""


def _chain(level: Level) -> frozenset[Level]:
    below = _IMPLIES.get(level)
    return frozenset({level}) if below is None else frozenset({level, *_chain(below)})


_CLOSURE: Final = {level: _chain(level) for level in Level}
_PARENTS: Final = {level: tuple(above for above in Level if _IMPLIES.get(above) is level) for level in Level}


def closure(levels: Iterable[Level]) -> frozenset[Level]:
    """All that these levels permit together."""
    return frozenset(each for level in levels for each in level.implied())
