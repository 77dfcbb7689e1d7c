"""The numbers of the dynamic slots of one partitionable slot."""

from collections import Counter
from heapq import heappop, heappush
from typing import Final


class SlotNumbers:
    """
    From 1 on, as they are given: the smallest that no dynamic slot has.

    All numbers below `_next` are in use, or among those that were in use before.
    """

    def __init__(self) -> None:
        self._uses: Final = Counter[int]()
        """A recorded pool may have two claims of one number for a while."""
        self._free: Final[list[int]] = []
        self._next = 1

    @property
    def smallest(self) -> int:
        """The one that the next dynamic slot gets."""
        while self._free and self._free[0] in self._uses:
            heappop(self._free)
        while self._next in self._uses:
            self._next += 1
        return min(self._free[0], self._next) if self._free else self._next

    def take(self, number: int) -> None:
        """A dynamic slot has it."""
        self._uses[number] += 1

    def free(self, number: int) -> None:
        """Inverse of `take`."""
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._uses[number]
            heappush(self._free, number)
