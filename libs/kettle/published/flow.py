"""
How much the other side may send on a stream: credit, granted again as bytes are read. Pure.

A stream begins with a small window. One whose reader keeps up gets a larger one, from a budget that all streams of a tunnel share:
what all of them together can make us keep is the first window for each, and the budget.
"""

from typing import Final

from kettle.published.errors import ProtocolViolation
from kettle.published.frames import FIRST_WINDOW

LARGEST_WINDOW: Final = 4 << 20
"""Bytes of one stream under way or unread: enough for 80 MB/s where an answer takes 50 ms."""
BUDGET: Final = 8 << 20
"""Bytes beyond the first windows, of all streams of a tunnel together."""


class Budget:
    """What all streams of a tunnel may have beyond their first windows."""

    def __init__(self, size: int = BUDGET) -> None:
        self._size = size
        self._spent = 0
        self.streams = 0
        """That are open."""

    @property
    def left(self) -> int:
        """Bytes that are not spent."""
        return self._size - self._spent

    def share(self) -> int:
        """How large a window may be, so that each of the streams could have one."""
        return max(FIRST_WINDOW, min(LARGEST_WINDOW, self._size // max(1, self.streams)))

    def change(self, before: int, after: int) -> None:
        """What one stream can make us keep has changed."""
        self._spent += max(0, after - FIRST_WINDOW) - max(0, before - FIRST_WINDOW)


class Incoming:
    """What one stream may send us: `left` bytes more, besides those that are `held` and were not read."""

    __slots__ = ("_budget", "_window", "held", "left")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._window = FIRST_WINDOW
        self.left = FIRST_WINDOW
        self.held = 0
        budget.streams += 1

    @property
    def exposure(self) -> int:
        """Bytes that this stream can make us keep."""
        return self.left + self.held

    def came(self, count: int) -> None:
        """Bytes have arrived; raises ProtocolViolation: more than were granted."""
        if count > self.left:
            raise ProtocolViolation(f"{count} bytes were sent on a stream that may send {self.left}")
        self.left -= count
        self.held += count

    def read(self, count: int) -> int:
        """Bytes were read; how many are granted in their place, 0: not yet."""
        before = self.exposure
        self.held -= count
        due = self._window - self.exposure
        if due < self._window // 2:
            self._budget.change(before, self.exposure)
            return 0
        self._window = min(self._window * 2 if not self.held else self._window, self._budget.share())
        most = FIRST_WINDOW + self._budget.left + max(0, before - FIRST_WINDOW)
        grant = max(0, min(self._window, most) - self.exposure)
        self.left += grant
        self._budget.change(before, self.exposure)
        return grant

    def close(self) -> None:
        """The stream is over."""
        self._budget.change(self.exposure, 0)
        self.left = self.held = 0
        self._budget.streams -= 1
