"""When another installed version is used: it must be whole, and not have changed for a while."""

from typing import Literal

import msgspec

Restart = Literal["GRACEFUL", "PEACEFUL", "NEVER"]


class Installed(msgspec.Struct, frozen=True):
    """What is installed; `mark` differs when any of its files does."""

    version: str
    mark: str


class Rollover(msgspec.Struct, frozen=True, kw_only=True):
    """The running version, and the version that waits to replace it."""

    running: Installed
    waiting: Installed | None = None
    since: float = 0.0
    """When it was first seen as it is now."""

    @property
    def shown(self) -> Installed:
        """What a start would bring."""
        return self.waiting or self.running


def look(rollover: Rollover, found: Installed | None, *, now: float, delay: float) -> tuple[Rollover, bool]:
    """Whether what was found is to be used now; `found` is None while an installation is being changed."""
    if found is None or found == rollover.running:
        return Rollover(running=rollover.running), False
    if found != rollover.waiting:
        rollover = Rollover(running=rollover.running, waiting=found, since=now)
    return rollover, now - rollover.since >= delay


def pause(rollover: Rollover, *, now: float, interval: float, delay: float) -> float:
    """Seconds to the next look: sooner than usual if something waits."""
    if rollover.waiting is None:
        return interval
    left = rollover.since + delay - now
    return min(interval, left) if left > 0 else interval
