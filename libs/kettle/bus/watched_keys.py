"""
The entries that a watcher of a bucket has received, and until when each of them lives if it is not renewed.
"""

import math
from heapq import heappop, heappush
from typing import Final

from kettle.bus.ports import KeyChange

_SOON_S: Final = 0.1
"""The first wait where an entry whose time is over is there still."""
_LATEST_S: Final = 10.0
"""The longest."""


class WatchedKeys:
    """
    The existing keys. Times are seconds of any clock.

    Each key is in the heap once; that an entry was renewed is noticed when its former time is over, so a renewal costs little.
    """

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._looked_at: dict[str, float] = {}
        """When to look at a key next, which is not later than its time is over."""
        self._heap: list[tuple[float, str]] = []

    def lost(self, until: float) -> None:
        """The bucket was recreated, empty: entries that are not sent again in time are over."""
        for key, before in list(self._until.items()):
            self._set(key, min(before, until))

    def record_change(self, change: KeyChange, until: float = math.inf) -> None:
        """Record a change that the watcher receives."""
        if change.value is None:
            self._until.pop(change.key, None)
        else:
            self._set(change.key, until)

    @property
    def next_due(self) -> float:
        """When `due` may name something that it does not name now."""
        return self._heap[0][0] if self._heap else math.inf

    def due(self, now: float) -> list[str]:
        """The keys whose time is over; each is named once, until it is put off or set again."""
        found: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            at, key = heappop(self._heap)
            if self._looked_at.get(key) != at:
                continue  # it is in the heap at another time
            del self._looked_at[key]
            until = self._until.get(key)
            if until is None:
                continue
            if until <= now:
                found.append(key)
            else:
                self._look_at(key, until)
        return found

    def put_off(self, key: str, now: float) -> None:
        """
        An entry that is due is there still: it is due again, each time after a longer while, up to a limit.
        """
        if (until := self._until.get(key)) is not None:
            self._look_at(key, now + min(max(_SOON_S, now - until), _LATEST_S))

    def _set(self, key: str, until: float) -> None:
        self._until[key] = until
        if until < self._looked_at.get(key, math.inf):
            self._look_at(key, until)

    def _look_at(self, key: str, at: float) -> None:
        self._looked_at[key] = at
        heappush(self._heap, (at, key))
