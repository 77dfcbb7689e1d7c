"""
When there is too much to record: how long those who want to add to it should wait.

Pure: times are seconds of any clock that does not go backwards.
"""

from typing import Final

SHORTEST_MS: Final = 20
LONGEST_MS: Final = 5_000
UNKNOWN_MS: Final = 1_000
WINDOW_S: Final = 2.0
"""A rate is that of about the last so many seconds."""


def retry_after_ms(backlog: int, limit: int, rate: float | None) -> int:
    """
    Milliseconds until half of the room should be free again, at `rate` events per second (None: unknown); within bounds.

    Half, so that those who come back find room for more than the first of them.
    """
    if rate is None:
        return UNKNOWN_MS
    if rate <= 0:
        return LONGEST_MS
    return max(SHORTEST_MS, min(LONGEST_MS, round(1000 * (backlog - limit / 2) / rate)))


class CommitRate:
    """Events committed per second, recently."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._events = 0
        self._before = 0.0
        """The rate of the window before."""

    def note(self, events: int, now: float) -> None:
        """So many were committed."""
        self._turn(now)
        self._events += events

    def per_second(self, now: float) -> float | None:
        """
        The rate in the window that runs, or in the one before if this one has hardly begun; None after a time of rest.
        """
        self._turn(now)
        assert self._since is not None, "_turn sets it"
        lasted = now - self._since
        return self._events / lasted if lasted >= WINDOW_S / 4 else self._before or None

    def _turn(self, now: float) -> None:
        if self._since is None:
            self._since = now
        elif (lasted := now - self._since) >= WINDOW_S:
            self._before = self._events / lasted if lasted < 2 * WINDOW_S else 0.0  # else it was a rest
            self._since, self._events = now, 0
