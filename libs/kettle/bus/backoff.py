"""
How long to wait before a server is asked again.
"""

import asyncio
import random


class Backoff:
    """
    Waits that double from `first` to `longest` seconds, each cut by up to half, so that a crowd comes back spread out.
    """

    def __init__(self, first: float = 0.05, longest: float = 5.0) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def delay(self) -> float:
        """
        The next wait, seconds.
        """
        length = self._next
        self._next = min(2 * length, self._longest)
        return length * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing

    def reset(self) -> None:
        """
        The server answered.
        """
        self._next = self._first

    async def wait(self) -> None:
        """
        Sleep for `delay()`.
        """
        await asyncio.sleep(self.delay())
