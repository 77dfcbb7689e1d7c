"""
Simulated time: it goes from one thing that is due to the next, and nothing else moves it.

Times are whole microseconds since the epoch, as the log has them, so that sums of them are exact and the same inputs give the
same order of things.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

US: Final = 1_000_000
"""Microseconds in a second."""

ENDS, COMES, ROUTES, CHARGES, CYCLE, PLANS = range(6)
"""
What comes first of all that is due at one moment: what ends makes room, what comes is there and gets a route, what was used is
charged, a cycle sees all that, and machines are planned for what it has left over.
"""

Action = Callable[[], None]


class Clock:
    """What is due, and when it is now."""

    def __init__(self, now: int) -> None:
        self.now = now
        self._due: list[tuple[int, int, int, Action]] = []
        self._count = 0
        self._stopped = False

    @property
    def seconds(self) -> float:
        """It is now so many seconds after the epoch."""
        return self.now / US

    def at(self, moment: int, action: Action, *, turn: int = COMES) -> None:
        """
        Do something at a moment; at once if that is over. `turn` is its place among all that is due at that moment.
        """
        self._count += 1
        heappush(self._due, (max(moment, self.now), turn, self._count, action))

    def stop(self) -> None:
        """Do nothing more: it stays the moment that it is."""
        self._stopped = True

    def run(self, until: int) -> None:
        """Do all that is due before a moment, in order; then it is that moment."""
        while self._due and self._due[0][0] < until:
            self.now, _, _, action = heappop(self._due)
            action()
            if self._stopped:
                return
        self.now = max(self.now, until)
