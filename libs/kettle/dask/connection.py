"""
A session as a program knows it: followed for as long as the program wants, through restarts of everything that is asked.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar

import msgspec

from kettle.client.errors import ClientError, CommandRefusedError
from kettle.dask.session_service import SessionService, Situation
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_wire.codes import RefusalCode

Answer = TypeVar("Answer")
Connect = Callable[[], AbstractAsyncContextManager[SessionService]]
_WAIT_S: Final = 15.0
_FINAL: Final = frozenset({RefusalCode.NOT_FOUND, RefusalCode.DENIED})
"""A session that is over for so long that nobody knows it any more, or that is no longer shared with us."""
_AFTER_FAILURE: Final = Backoff(first=0.2, longest=15.0)


def connected_to_pool() -> AbstractAsyncContextManager[SessionService]:
    """To the pool that `kettle` would use."""
    from kettle.dask.pool_sessions import (
        sessions_of_pool,
    )  # the client, which who has another way does without

    return sessions_of_pool()


class SessionLink:
    """Between `open` and `close` its situation is up to date, or `trouble` says why it is not."""

    def __init__(self, service: SessionService, situation: Situation) -> None:
        self.service: Final = service
        self.situation = situation
        self.trouble = ""
        """Why the service cannot be asked at present."""
        self.closed = False
        """Whether the service can no longer be asked here: its connection is let go."""
        self._asking = 0
        self._answered = asyncio.Event()
        self._answered.set()
        self._changed = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, connect: Connect, begin: Callable[[SessionService], Awaitable[Situation]]
    ) -> AsyncGenerator["SessionLink"]:
        """Connect, have `begin` create or find the session, and follow it."""
        async with connect() as service:
            link = cls(service, await begin(service))
            following = asyncio.create_task(link._follow(), name=f"session {link.situation.id}")
            try:
                yield link
            finally:
                link.closed = True
                following.cancel()
                await asyncio.wait((following,))
                await link._answered.wait()

    async def ask(self, question: Callable[[SessionService, str], Awaitable[Answer]]) -> Answer:
        """
        The answer about this session.  The connection lasts until it is there: that the session is stopped may be news before it
        is answered.
        """
        self._asking += 1
        self._answered.clear()
        try:
            return await question(self.service, self.situation.id)
        finally:
            self._asking -= 1
            if not self._asking:
                self._answered.set()

    async def tell(self, situation: Situation) -> None:
        """Hear how it is now, as the answer to a command says; older news are no news."""
        async with self._changed:
            if situation.events >= self.situation.events:
                self.situation = situation
                self._changed.notify_all()

    async def until(self, wanted: Callable[[Situation], bool]) -> Situation:
        """As soon as this is so."""
        async with self._changed:
            await self._changed.wait_for(lambda: wanted(self.situation))
            return self.situation

    async def _follow(self) -> None:
        waits = Waits(_AFTER_FAILURE)
        while True:
            known = self.situation
            try:
                news = await self.service.follow(known.id, known.events, _WAIT_S)
            except ClientError as error:
                if isinstance(error, CommandRefusedError) and error.code in _FINAL:
                    await self.tell(_ended(known, str(error)))
                    return
                self.trouble = str(error)
                await waits.wait()
                continue
            waits.reset()
            self.trouble = ""
            await self.tell(news)
            if news.state == "ended":
                return


def _ended(known: Situation, reason: str) -> Situation:
    return msgspec.structs.replace(known, state="ended", reason=reason, contact="")
