"""
How many calls a provider gets: so many at the same time, and so many in a second, fewer while it says that these are too many.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

_SLOWEST: Final = 1 / 64
"""Part of the rate that is left at least."""
_RECOVERY: Final = 1.02
"""By so much each call that is not refused makes the next ones faster."""


class Pace:
    """The turns of one provider."""

    def __init__(self, *, at_once: int, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`rate`: calls in a second; as many as that may come together after a pause."""
        self._at_once = asyncio.Semaphore(at_once)
        self._rate: Final = rate
        self._part = 1.0
        self._tokens = max(1.0, rate)
        self._clock = clock
        self._at = clock()

    @property
    def rate(self) -> float:
        """Calls in a second, as things are."""
        return self._rate * self._part

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """One call, when it is its turn."""
        async with self._at_once:
            await self._token()
            yield
            self._part = min(1.0, self._part * _RECOVERY)

    async def _token(self) -> None:
        now = self._clock()
        self._tokens = min(max(1.0, self.rate), self._tokens + (now - self._at) * self.rate)
        self._at = now
        self._tokens -= 1.0
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self.rate)

    def slower(self) -> None:
        """The provider says that these are too many calls."""
        self._part = max(_SLOWEST, self._part / 2)
