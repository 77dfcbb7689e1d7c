"""
Letting messages gather: a reader for whom a moment more is nothing takes many at once instead of each by itself.

What costs a view is not the event but the transaction, the wake-up and the batch around it.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress


class BatchingDelay:
    """
    How long a reader collects messages, in seconds after the first new one. It does not wait when somebody waits for a
    message, or when more are there already.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._hurried = 0
        self._called = asyncio.Event()

    @contextmanager
    def hurried(self) -> Generator[None]:
        """While somebody waits for what the reader has yet to take."""
        self._hurried += 1
        self._called.set()
        try:
            yield
        finally:
            self._hurried -= 1
            if not self._hurried:
                self._called.clear()

    async def wait(self) -> None:
        """Until it is time to take what has come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                await self._called.wait()


class Pacing(BatchingDelay):
    """
    Lets messages be taken once in so many seconds: the first ones after a pause at once, and together what goes on to come quickly.
    """

    def __init__(
        self, seconds: float, *, at_once: int = 1, wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """
        `at_once`: how often messages may be taken without a wait after a pause of `at_once * seconds`, and once more for each
        `seconds` that none were taken.  `wanted`: whether a moment more is nothing at present.
        """
        super().__init__(seconds)
        self._ahead = (at_once - 1) * seconds
        self._wanted = wanted
        self._next = 0.0
        """When it would be time, had messages always been taken once in so many seconds."""

    async def wait(self) -> None:
        """Until it is time to take what has come."""
        loop = asyncio.get_running_loop()
        if self._wanted():
            await asyncio.sleep(self._next - self._ahead - loop.time())
        now = loop.time()
        self._next = min(max(self._next, now), now + self._ahead) + self._seconds
