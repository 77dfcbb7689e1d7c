"""Trying again: what is tried, and how long to wait before a server is asked again."""

import asyncio
import logging
import random
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)


class Backoff:
    """
    Waits that double from `first` to `longest` seconds, each cut by up to half, so that a crowd comes back spread out.
    """

    def __init__(self, first: float = 0.05, longest: float = 5.0) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def delay(self) -> float:
        """The next wait, seconds."""
        length = self._next
        self._next = min(2 * length, self._longest)
        return length * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing

    def reset(self) -> None:
        """The server answered."""
        self._next = self._first

    async def wait(self) -> None:
        """Sleep for `delay()`."""
        await asyncio.sleep(self.delay())


async def attempt(work: Coroutine[Any, Any, T]) -> T:
    """
    What `work` returns or raises. For loops that go on after a failure of work that has a task group.

    Before Python 3.13 a task group forgets that it was cancelled when one of its tasks fails at the same moment: who
    catches that failure and goes on would never end. Here the work has a task of its own, and whoever awaits it ends.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (failure := task.exception()) is not None:
            _log.info("failed while it was ended: %s", failure)
        raise
    return task.result()
