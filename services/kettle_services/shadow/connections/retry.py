"""Repeats a message until it is confirmed: every message of a shadow is harmless to repeat."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kettle.bus.ports import BusError
from kettle.bus.retryable import unless_refused
from kettle.retry.backoff import Backoff, steady
from kettle.retry.loop import retry, slept
from kettle_services.shadow.settings import ShadowSettings

_log: Final = logging.getLogger(__name__)

T = TypeVar("T")


class Peer:
    """A peer that answers, and may have to be asked again because it died before the answer."""

    def __init__(self, settings: ShadowSettings) -> None:
        self._backoff = Backoff(first=settings.retry, longest=settings.retry_ceiling)
        self._back = asyncio.Event()

    def came_back(self) -> None:
        """The peer has restarted: earlier requests are lost."""
        self._back.set()

    async def ask(self, what: str, question: Callable[[], Awaitable[T]]) -> T:
        """
        Ask until there is an answer: at once when he came back, else with jittered back-off.

        Raises RefusedError, which no repeat would change; that somebody is busy is no refusal of the question.
        """

        def failed(error: Exception, pause: float) -> None:
            _log.info("not heard yet: %s", what, extra={"cause": str(error), "pause_s": pause})

        async def ask() -> T:
            self._back.clear()
            return await self._unless_back(question)

        return await retry(ask, self._backoff, retryable=unless_refused, wake=self._back, failed=failed)

    async def wait_after_refusal(self) -> None:
        """Wait for about the longest pause between repeats, or until the peer has restarted."""
        await slept(steady(self._backoff.longest).delay(0, random.random()), self._back)  # noqa: S311 - spreads load

    async def _unless_back(self, question: Callable[[], Awaitable[T]]) -> T:
        asking = asyncio.ensure_future(question())
        back = asyncio.ensure_future(self._back.wait())
        try:
            await asyncio.wait({asking, back}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise BusError("it was restarted before it answered")
        finally:
            asking.cancel()
            back.cancel()
