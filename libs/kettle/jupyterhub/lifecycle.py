"""
The server of one person from its order to its end, as a hub sees it.

A hub asks by the id, which is all that it remembers.  What it does not hear it does not guess: as long as the gateway does not answer, or
does not believe the token, a server is where it was.  It is gone when the pool says so.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, Protocol

from kettle.jupyterhub.errors import (
    GatewayRefusedError,
    GatewayUnreachableError,
    HubError,
    NoTokenError,
    ServerFailedError,
)
from kettle.jupyterhub.person_tokens import TokenSource
from kettle.jupyterhub.server_orders import PoolServers, ServerOrder, ServerSeen
from kettle.jupyterhub.waiting import ProgressBoard, line_of
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits

AGAIN: Final = Backoff(first=0.5, longest=10.0)
_NOT_FOUND: Final = 404
_WORDS: Final = 400
"""Characters of what a server has written that are shown when it fails."""

_log: Final = logging.getLogger(__name__)


class Connections(Protocol):
    """How the hub's proxy gets to a server."""

    async def open(self, id_: str) -> str:
        """The address of the server for the proxy, the same as long as this hub runs."""
        ...

    async def close(self, id_: str) -> None:
        """There is no such server any more."""
        ...


class ServerOfPerson:
    """One server; `id_` is empty as long as there is none."""

    def __init__(
        self,
        servers: PoolServers,
        token: TokenSource,
        connections: Connections,
        *,
        id_: str = "",
        backoff: Backoff = AGAIN,
    ) -> None:
        self.id = id_
        self.board: Final = ProgressBoard()
        self._servers = servers
        self._token = token
        self._connections = connections
        self._backoff = backoff

    async def start(self, order: ServerOrder, remember: Callable[[str], None]) -> str:
        """
        Have it, and wait until it is there; its address for the proxy.  `remember` is called with its id as soon as there is one.

        Raises:
            HubError: it does not come up, in one sentence.
        """
        try:
            self.board.tell(line_of(ServerSeen(state="requested")))
            await self._ordered(order)
            remember(self.id)
            await self._until_ready()
            return await self._connections.open(self.id)
        finally:
            self.board.end()

    async def _ordered(self, order: ServerOrder) -> None:
        """A start that is given up while the pool is asked leaves no server."""
        token = await self._token.token()
        begun = asyncio.ensure_future(self._servers.start(order, token))
        try:
            self.id = await asyncio.shield(begun)
        except asyncio.CancelledError:
            await self._servers.stop(await begun, token)
            raise

    async def _until_ready(self) -> None:
        waits = Waits(self._backoff)
        while True:
            try:
                if await self._is_ready(waits):
                    return
            except GatewayUnreachableError as error:
                self.board.tell({"message": f"The pool will be asked again: {error}"})
                await waits.wait()

    async def _is_ready(self, waits: Waits) -> bool:
        """False: the news have ended. Raises ServerFailedError: it never will be."""
        news = self._servers.news(self.id, await self._token.token())
        async with aclosing(news):
            async for seen in news:
                waits.reset()
                self.board.tell(line_of(seen))
                if seen.state == "ready":
                    return True
                if seen.is_over or seen.is_stuck:
                    raise ServerFailedError(await self._failure(seen))
        return False

    async def _failure(self, seen: ServerSeen) -> str:
        said = ""
        try:
            said = await self._servers.last_words(self.id, await self._token.token())
        except (GatewayUnreachableError, GatewayRefusedError) as error:
            _log.info("the last words of %s are not known: %s", self.id, error)
        await self._forget()
        last = " ".join(said.split())[-_WORDS:]
        return f"Your server has not come up: {seen.reason}{f'; its last words: {last}' if last else ''}"

    async def poll(self) -> int | None:
        """None while it runs, or as long as nobody knows; else its exit code."""
        if not self.id:
            return 0
        try:
            token = await self._token.token()
            seen = await self._servers.look(self.id, token)
        except (GatewayUnreachableError, GatewayRefusedError, NoTokenError) as error:
            _log.warning("nothing is known of the server %s now: %s", self.id, error)
            return None
        if not seen.is_over and not seen.is_stuck:
            return None
        _log.info("the server %s has ended: %s", self.id, seen.reason)
        await self._forget()
        return seen.exit_code if seen.is_over else 1

    async def _forget(self) -> None:
        """
        The hub knows of it no longer, and so does the pool: one whose job is on hold would come back without the hub, and what one has
        left would stay for days.
        """
        await self._connections.close(self.id)
        try:
            await self._servers.stop(self.id, await self._token.token())
        except HubError as error:
            _log.info("the server %s is left to the pool: %s", self.id, error)

    async def address(self) -> str:
        """The address for the proxy of a server that runs, also after the hub has started again."""
        return await self._connections.open(self.id)

    async def stop(self) -> None:
        """
        Have it end; one that has ended is no error.

        Raises:
            HubError: it may still run.
        """
        if not self.id:
            return
        try:
            await self._servers.stop(self.id, await self._token.token())
        except GatewayRefusedError as refusal:
            if refusal.status != _NOT_FOUND:
                raise
        await self._connections.close(self.id)
