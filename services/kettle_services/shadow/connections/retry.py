"""Repeats a message until it is confirmed: every message of a shadow is harmless to repeat."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kettle.bus.ports import BusError, RefusedError
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.codes import NOT_NOW

_log: Final = logging.getLogger(__name__)

T = TypeVar("T")


class Peer:
    """A peer that answers, and may have to be asked again because it died before the answer."""

    def __init__(self, settings: ShadowSettings) -> None:
        self._settings = settings
        self._back = asyncio.Event()

    def came_back(self) -> None:
        """The peer has restarted: earlier requests are lost."""
        self._back.set()

    async def ask(self, what: str, question: Callable[[], Awaitable[T]]) -> T:
        """
        Ask until there is an answer: at once when he came back, else with jittered back-off.

        Raises RefusedError, which no repeat would change; that somebody is busy is no refusal of the question.
        """
        wait = self._settings.retry
        while True:
            self._back.clear()
            try:
                return await self._unless_back(question)
            except RefusedError as refusal:
                if refusal.code not in NOT_NOW:
                    raise
                _log.info("busy: %s", what, extra={"cause": str(refusal)})
            except BusError as error:
                _log.info("not heard yet: %s", what, extra={"cause": str(error)})
            if not await self.came_back_within(wait):
                wait = min(wait * 2, self._settings.retry_ceiling)

    async def came_back_within(self, seconds: float) -> bool:
        """Wait about so long, or until the peer has restarted."""
        pause = seconds * random.uniform(0.5, 1.0)  # noqa: S311 - spreads repeats, guards nothing
        try:
            async with asyncio.timeout(pause):
                await self._back.wait()
        except TimeoutError:
            return False
        return True

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
