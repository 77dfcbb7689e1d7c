"""
The job's end of a tunnel: it is connected with the gateway as long as it is to be, again and again, and its streams are joined with
ports of the job.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from kettle.published.dialing import GatewayRefusedError, dial
from kettle.published.errors import StreamCode, StreamRefusedError, TunnelError
from kettle.published.frames import Announcement
from kettle.published.relay import CHUNK, Relay, SocketSide
from kettle.published.services import Service
from kettle.published.tunnel import Tunnel
from kettle.published.tunnel_stream import TunnelStream
from kettle.retry.backoff import Backoff

_BACKOFF: Final = Backoff(first=0.2, longest=15.0)
_STABLE_S: Final = 5.0
"""Seconds that a tunnel was there, after which the next failure is the first: a gateway that starts again is looked for at once."""
_CONNECT_S: Final = 15.0

Connect: TypeAlias = Callable[[Service, Callable[[], SocketSide]], Awaitable[None]]
"""Connects a protocol with the port of a service; raises StreamRefusedError."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """All that the job's end has to know; each replaces the one before."""

    url: str
    ca: str = ""
    ticket: str
    announcement: Announcement = Announcement()

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Orders({self.url}, {self.announcement})"


class Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the job's end says of itself."""

    connected: bool = False
    services: tuple[Service, ...] = ()
    """What the gateway has now."""
    text: str = ""
    """Why it is not."""
    over: bool = False
    """Whether the gateway has said that it is not to come again with this ticket."""


class JobSide:
    """Keeps the tunnel; `say` is told what happens."""

    def __init__(self, connect: Connect, say: Callable[[Said], object]) -> None:
        self._connect = connect
        self._say = say
        self._orders: Orders | None = None
        self._news = asyncio.Event()
        self._tunnel: Tunnel | None = None
        self._refused = ""
        """The ticket that the gateway does not take."""
        self._buffer = bytearray(CHUNK)
        self._tasks: set[asyncio.Task[None]] = set()

    def order(self, orders: Orders) -> None:
        """What holds from now on."""
        before, self._orders = self._orders, orders
        tunnel = self._tunnel
        if tunnel is not None and before is not None and not tunnel.is_closing:
            if orders.ticket != before.ticket:
                tunnel.renew(orders.ticket)
            if orders.announcement != before.announcement:
                self._announce(tunnel, orders.announcement)
        self._news.set()

    async def run(self) -> None:
        """Keep the tunnel; never returns."""
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            orders = await self._wanted()
            began = loop.time()
            said = await self._connected(orders)
            self._say(said)
            failures = 0 if loop.time() - began > _STABLE_S else failures + 1
            if not said.over:
                await asyncio.sleep(_BACKOFF.delay(failures, random.random()))  # noqa: S311 - a pause

    async def _wanted(self) -> Orders:
        """The orders, as soon as there are some that may succeed."""
        while self._orders is None or self._orders.ticket == self._refused:
            self._news.clear()
            await self._news.wait()
        return self._orders

    async def _connected(self, orders: Orders) -> Said:
        """A tunnel from its beginning to its end."""
        self._tunnel = tunnel = Tunnel(opens=False, answer=self._answer)
        try:
            await dial(orders.url, orders.ca, orders.ticket, tunnel)
        except GatewayRefusedError as error:
            if error.is_final:
                self._refused = orders.ticket
            return Said(text=str(error), over=error.is_final)
        except (OSError, TimeoutError, TunnelError) as error:
            return Said(
                text=f"the gateway at {orders.url} is not reached: {str(error) or 'it does not answer'}"
            )
        assert self._orders is not None
        self._announce(tunnel, self._orders.announcement)
        if self._orders.ticket != orders.ticket:
            tunnel.renew(self._orders.ticket)
        try:
            return Said(text=await tunnel.ended())
        finally:
            tunnel.close("the job's side has ended")

    def _announce(self, tunnel: Tunnel, announcement: Announcement) -> None:
        """
        Say what is published; that the gateway has it, is said when it has answered what was asked after that.
        """
        tunnel.announce(announcement)
        tunnel.ping(lambda: self._say(Said(connected=True, services=announcement.services)))

    def _answer(self, stream: TunnelStream) -> None:
        task = asyncio.get_running_loop().create_task(self._join(stream), name=f"service {stream.service}")
        self._tasks.add(task)

        def settle(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and task.exception() is not None:
                stream.abort()  # the loop's handler says what it was, and nobody is to wait for an answer
                task.result()

        task.add_done_callback(settle)

    async def _join(self, stream: TunnelStream) -> None:
        assert self._orders is not None
        announced = self._orders.announcement
        service = next((each for each in announced.services if each.name == stream.service), None)
        if service is None:
            stream.refuse(
                StreamCode.NO_SUCH_SERVICE, f"the job publishes no service {stream.service} at the moment"
            )
            return
        if announced.suspended:
            stream.refuse(StreamCode.SUSPENDED, "the job is suspended, and its services with it")
            return
        relay = Relay(stream, self._buffer)
        try:
            async with asyncio.timeout(_CONNECT_S):
                await self._connect(service, lambda: relay.of_socket)
        except StreamRefusedError as error:
            stream.refuse(StreamCode(error.code), str(error))
        except (OSError, TimeoutError) as error:
            stream.refuse(
                StreamCode.UNREACHABLE,
                f"port {service.port} of the job cannot be connected to: {str(error) or 'it does not answer'}",
            )
        else:
            stream.accept(relay.of_stream)
