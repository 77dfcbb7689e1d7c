"""
How many calls a provider gets: so many at the same time, and so many in a second, fewer while it says that these are too many.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

from kettle.retry.deadline import Deadline
from kettle_services.provisioner.port import ProviderError
from kettle_wire.leases import ErrorClass

_SLOWEST: Final = 1 / 64
"""Part of the rate that is left at least."""
_RECOVERY: Final = 1.02
"""By so much each call that is not refused makes the next ones faster."""


class NoTurnError(ProviderError):
    """
    The time of a call was over before its turn: nothing was asked, and the provider has not said that anything is too much.
    """

    def __init__(self, within: float, *, retry_after: float = 0.0) -> None:
        super().__init__(
            ErrorClass.RATE, f"no turn within {within:.0f} s: nothing was asked", retry_after=retry_after
        )


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
    async def turn(self, deadline: Deadline) -> AsyncGenerator[None]:
        """
        One call, when it is its turn.

        Raises:
            NoTurnError: that was not before the deadline.
        """
        await self._place(deadline)
        try:
            await self._token(deadline)
            yield
            self._part = min(1.0, self._part * _RECOVERY)
        finally:
            self._at_once.release()

    async def _place(self, deadline: Deadline) -> None:
        """One of the calls at the same time."""
        try:
            async with asyncio.timeout(deadline.left()):
                await self._at_once.acquire()
        except TimeoutError:
            raise NoTurnError(deadline.seconds) from None

    async def _token(self, deadline: Deadline) -> None:
        """The time that the rate gives; none is taken by a call for which it would be too late."""
        now = self._clock()
        self._tokens = min(max(1.0, self.rate), self._tokens + (now - self._at) * self.rate)
        self._at = now
        wait = max(0.0, (1.0 - self._tokens) / self.rate)
        if wait >= deadline.left():
            raise NoTurnError(deadline.seconds, retry_after=wait)
        self._tokens -= 1.0
        if wait:
            await asyncio.sleep(wait)
        if deadline.passed:
            raise NoTurnError(deadline.seconds)

    def slower(self) -> None:
        """The provider says that these are too many calls."""
        self._part = max(_SLOWEST, self._part / 2)
