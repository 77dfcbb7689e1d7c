"""The loop that calls something until it succeeds, and the waits of loops that do more than that."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline

T = TypeVar("T")

HINT_SPREAD: Final = 0.5
"""
A service that says when to come back is asked no sooner, and up to this share later: it said the same to a crowd.
"""

DEFAULT: Final = Backoff(first=0.05, longest=5.0)
"""For a server that is away for a moment, or for a while."""

_log: Final = logging.getLogger(__name__)


async def slept(seconds: float, wake: asyncio.Event | None = None) -> bool:
    """Wait; ends at once, with false, when `wake` is set."""
    if wake is None:
        await asyncio.sleep(seconds)
        return True
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return True
    return False


class Sleep(Protocol):
    """`slept`, or what a test has in its place."""

    async def __call__(self, seconds: float, wake: asyncio.Event | None = None) -> bool:
        """Whether all that time has passed."""
        ...


class Waits:
    """The waits of one row of failures."""

    def __init__(self, backoff: Backoff = DEFAULT, *, draw: Callable[[], float] = random.random) -> None:
        self._backoff = backoff
        self._draw = draw
        self.failures = 0
        """How many there were in a row."""

    def delay(self) -> float:
        """There was a failure: the wait after it, seconds."""
        delay = self._backoff.delay(self.failures, self._draw())
        self.failures += 1
        return delay

    def reset(self) -> None:
        """It succeeded: the row is over."""
        self.failures = 0

    async def wait(self) -> None:
        """Sleep for `delay()`."""
        await asyncio.sleep(self.delay())


def no_hint(error: Exception) -> float:
    """An error says nothing about when to come back."""
    del error
    return 0.0


def untold(error: Exception, pause: float) -> None:
    """Nobody is told of failures."""
    del error, pause


async def retry(
    call: Callable[[], Awaitable[T]],
    backoff: Backoff = DEFAULT,
    *,
    retryable: Callable[[Exception], bool],
    deadline: Deadline | None = None,
    wake: asyncio.Event | None = None,
    hint: Callable[[Exception], float] = no_hint,
    failed: Callable[[Exception, float], None] = untold,
    draw: Callable[[], float] = random.random,
    sleep: Sleep = slept,
) -> T:
    """
    What `call` returns, as soon as it does; it must be harmless to repeat.

    `retryable` says whether a failure may pass, `hint` in how many seconds at the soonest (0: nobody knows). `failed` is
    told of each failure that is followed by another try, and of the wait. When `wake` is set a wait ends at once, and the
    next is no longer for that.

    Raises what `call` raises if that is not retryable, or if the wait would last beyond the deadline.
    """
    failures = 0
    while True:
        try:
            return await call()
        except Exception as error:
            if not retryable(error):
                raise
            wanted, entropy = hint(error), draw()
            pause = wanted * (1.0 + HINT_SPREAD * entropy) if wanted else backoff.delay(failures, entropy)
            if deadline is not None and pause >= deadline.left():
                raise
            failed(error, pause)
        if await sleep(pause, wake):
            failures += 1


async def attempt(work: Coroutine[Any, Any, T]) -> T:
    """
    What `work` returns or raises. For loops that go on after a failure of work that has a task group.

    Before Python 3.13 a task group forgets that it was cancelled when one of its tasks fails at the same moment: who
    catches that failure and goes on would never end. Here the work has a task of its own, and its caller ends.
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
