"""
What a batch service expects of its nodes: how many cores of each are idle from now on, as far as it can know.
"""

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Cores = NDArray[np.int64]
"""For each node."""


class Profile:
    """
    Idle cores of each node over time: what runs is expected to end, and what is reserved will begin and end.

    Times are whole microseconds; the last of the spans has no end.
    """

    def __init__(self, now: int, idle: Cores, ends: Iterable[tuple[int, list[int], int]]) -> None:
        """`ends`: when cores of nodes become idle again, not before now."""
        self._times = [now]
        self._idle = [idle.copy()]
        for at, nodes, cores in sorted(ends):
            if at > self._times[-1]:
                self._times.append(at)
                self._idle.append(self._idle[-1].copy())
            self._idle[-1][nodes] += cores

    def earliest(self, nodes: int, cores: int, duration: int) -> tuple[int, list[int]] | None:
        """
        When so many nodes have so many cores idle for so long, and which ones are the first that do.

        None: never, as far as is known, because nodes are away.
        """
        for first in range(len(self._times)):
            found = self.nodes_from(first, nodes, cores, duration)
            if found is not None:
                return self._times[first], found
        return None

    def now(self, nodes: int, cores: int, duration: int) -> list[int] | None:
        """The nodes on which a job can begin at once."""
        return self.nodes_from(0, nodes, cores, duration)

    def nodes_from(self, first: int, nodes: int, cores: int, duration: int) -> list[int] | None:
        """The nodes on which it can begin with the span of that number; None: there are not enough."""
        end = bisect_left(self._times, self._times[first] + duration, lo=first + 1)
        least = self._idle[first]
        for span in range(first, end):
            least = np.minimum(least, self._idle[span])
            if np.count_nonzero(least >= cores) < nodes:
                return None
        return [int(node) for node in np.flatnonzero(least >= cores)[:nodes]]

    def reserve(self, start: int, duration: int, nodes: list[int], cores: int) -> None:
        """They are not idle for so long."""
        first, end = self._split(start), self._split(start + duration)
        for span in range(first, end):
            self._idle[span][nodes] -= cores

    def _split(self, at: int) -> int:
        span = bisect_left(self._times, at)
        if span == len(self._times) or self._times[span] != at:
            self._times.insert(span, at)
            self._idle.insert(span, self._idle[span - 1].copy())
        return span
