"""
The transport of a command that asks once and ends: without an event loop, unless something is out of the ordinary.

To load an event loop and the driver of the bus takes several times as long as a question.  So each request is sent by
`kettle.bus.single_request` first, which blocks.  A coroutine that asks only in this way never waits for anything, and runs
from its beginning to its end in one step.  Where that does not do, the very same coroutine is carried on inside an event
loop, over a connection that then serves all that it still asks.  See docs/decisions/0072.
"""

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from kettle.bus.ports import RefusedError, Rep, Req
from kettle.bus.single_request import UnusualError, ask_once
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.transport import TRY_S, Waiting
from kettle.client.errors import CommandRefusedError
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import bearer, user
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from kettle.bus.ports import Bus
    from kettle.client.connections.pool_connection import ConnectedTransport

T = TypeVar("T")


class ShortTransport:
    """
    A `Transport`.  What asks through it is driven by `run`, and uses nothing of an event loop before it has asked for a
    `connection`.
    """

    def __init__(self, pool: PoolFile, patience: float, *, quiet: bool = False) -> None:
        """`quiet`: whatever happens to the connection, nothing is logged to standard error."""
        self.waiting: Waiting | None = None
        self._pool = pool
        self._patience = patience
        self._quiet = quiet
        self._stack: AsyncExitStack | None = None
        """What ends with the event loop; None while there is none."""
        self._connected: ConnectedTransport | None = None

    @property
    def patience(self) -> float:
        """See `Transport.patience`."""
        return self._patience

    async def call(
        self,
        endpoint: Endpoint[Req, Rep],
        name: str,
        request: Req,
        *,
        patience: float | None = None,
        deadline: float = TRY_S,
        absent: float | None = None,
    ) -> Rep:
        """See `Transport.call`."""
        if self._connected is None:
            try:
                within = self._patience if patience is None else patience
                return self._ask_once(endpoint, name, request, min(deadline, within))
            except RefusedError as error:
                raise CommandRefusedError(error.code, str(error)) from error
            except UnusualError:
                pass  # asked again over a connection, which says what there is to say about it
        ordinary = await self._ordinary()
        ordinary.waiting = self.waiting
        return await ordinary.call(
            endpoint, name, request, patience=patience, deadline=deadline, absent=absent
        )

    async def token(self) -> str:
        """See `Transport.token`."""
        return await (await self._ordinary()).token() if self._pool.token else ""

    async def connection(self) -> "Bus | None":
        """See `Transport.connection`."""
        return await (await self._ordinary()).connection()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns that asks through this."""
        try:
            work.send(None)
        except StopIteration as returned:
            value: T = returned.value
            return value
        import asyncio

        return asyncio.run(self._go_on(work))

    def _ask_once(self, endpoint: Endpoint[Req, Rep], name: str, request: Req, within: float) -> Rep:
        return ask_once(
            self._pool.nats_url,
            endpoint,
            name,
            request,
            subjects=Subjects(self._pool.pool),
            identity=bearer(self._pool.user) if self._pool.token else user(self._pool.user),
            credentials=self._pool.credentials,
            token=self._token(),
            ca=self._pool.ca,
            within=within,
        )

    def _token(self) -> str:
        if not self._pool.token:
            return ""
        from kettle.client.connections.credentials import token_of  # only where tokens are taken

        return token_of(self._pool)

    async def _ordinary(self) -> "ConnectedTransport":
        """The transport over a connection, which is made now if there is none."""
        if self._connected is None:
            from kettle.client.connections.pool_connection import connect_pool

            if self._stack is None:
                await _event_loop()
            assert self._stack is not None
            connecting = connect_pool(self._pool, self._patience)
            self._connected = await self._stack.enter_async_context(connecting)
        return self._connected

    async def _go_on(self, work: Coroutine[Any, Any, T]) -> T:
        from contextlib import AsyncExitStack

        if self._quiet:
            _be_quiet()
        try:
            async with AsyncExitStack() as self._stack:
                return await _resumed(work)
        finally:
            self._stack = self._connected = None


@coroutine
def _event_loop() -> Generator[None, None, None]:
    """Stop here, until `ShortTransport.run` goes on inside an event loop."""
    yield


@coroutine
def _resumed(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Go on with a coroutine where it has stopped."""
    return (yield from work.__await__())


def _be_quiet() -> None:
    """
    Programs take any line of standard error for the command's own, and that says in one sentence what went wrong.
    """
    import logging

    for package in ("kettle", "kettle_services"):
        logging.getLogger(package).addHandler(logging.NullHandler())
