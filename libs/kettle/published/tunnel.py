"""
A tunnel over a connection of asyncio: the pure `Multiplexer` with sockets, timers and the protocols of its streams.

The gateway's side opens streams, as `loop.create_connection` opens sockets; the job's side is asked for each by `answer`.  A `Tunnel`
is the protocol of any transport: after an HTTP upgrade call `transport.set_protocol(tunnel)` and `tunnel.connection_made(transport)`.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Final, TypeVar, cast

from kettle.published.errors import ProtocolViolation, StreamRefusedError, TunnelClosedError
from kettle.published.frames import Announcement
from kettle.published.multiplexer import (
    Accepted,
    Announced,
    Asked,
    Came,
    Closed,
    Ended,
    Event,
    Multiplexer,
    NotAccepted,
    Pinged,
    Renewed,
    WasReset,
)
from kettle.published.tunnel_stream import TunnelStream

Protocol = TypeVar("Protocol", bound=asyncio.BaseProtocol)

PING_S: Final = 15.0
"""Seconds without a word of the other side, after which it is asked whether it is there."""
DEAD_S: Final = 45.0
"""Seconds without a word, after which it is gone."""
OPEN_S: Final = 30.0
"""Seconds for the job's side to connect a stream."""
_HIGH: Final = 1 << 20
"""Bytes that wait in the connection, above which nothing more is given to it."""
_LOW: Final = 256 * 1024
_FLUSH: Final = 512 * 1024
_READ_LIMIT: Final = 64 * 1024


class Tunnel(asyncio.Protocol):
    """One end of a tunnel; `opens`: that of the gateway."""

    def __init__(
        self,
        *,
        opens: bool,
        answer: Callable[[TunnelStream], object] | None = None,
        on_announcement: Callable[[Announcement], object] = lambda _: None,
        on_ticket: Callable[[str], object] = lambda _: None,
        ping_s: float = PING_S,
        dead_s: float = DEAD_S,
    ) -> None:
        """
        `answer` is called for each stream that the other side opens, and is to have it accepted or refused; the other two when the
        job's side has said what it publishes, or shown its next ticket.
        """
        self._mux = Multiplexer(opens=opens)
        self._answer = answer
        self._on_announcement = on_announcement
        self._on_ticket = on_ticket
        self._ping_s, self._dead_s = ping_s, dead_s
        self._streams: dict[int, TunnelStream] = {}
        self._transport: asyncio.Transport | None = None
        self._blocked = False
        self._flushing = False
        self._heard = 0.0
        self._pings: dict[bytes, tuple[Callable[[], object], float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[str] = self._loop.create_future()
        self._why = ""
        self.announcement = Announcement()
        """What the job's side has said last."""
        self.round_trip: float | None = None
        """Seconds that the last PING has taken."""
        self.received = 0
        """Bytes of frames."""

    # -- of the connection -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        transport = cast("asyncio.Transport", transport)  # that of uvloop is no subclass
        self._transport = transport
        transport.set_write_buffer_limits(high=_HIGH, low=_LOW)
        self._heard = self._loop.time()
        self._timer = self._loop.call_later(self._ping_s, self._look)
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Frames, or parts of them."""
        self._heard = self._loop.time()
        self.received += len(data)
        self._flushing = True  # once, after all of it
        try:
            for event in self._mux.receive(data):
                self._hear(event)
        except ProtocolViolation as error:
            self._flushing = False
            self.close(f"the other side breaks the protocol: {error}")
            return
        finally:
            self._flushing = False
        self.flush()

    def eof_received(self) -> bool:
        """The other side sends no more frames, so the tunnel is over."""
        return False

    def pause_writing(self) -> None:
        """The connection takes no more at the moment."""
        self._blocked = True

    def resume_writing(self) -> None:
        """It takes more."""
        self._blocked = False
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        why = self._why or (f"the connection broke: {exc}" if exc else "the other side has closed it")
        for stream in list(self._streams.values()):
            stream.lose(TunnelClosedError(f"the tunnel is over: {why}"))
        self._streams.clear()
        if not self._over.done():
            self._over.set_result(why)

    async def ended(self) -> str:
        """Wait for the end of the connection; why it has ended."""
        return await asyncio.shield(self._over)

    @property
    def is_closing(self) -> bool:
        """Whether it carries no new streams."""
        return self._transport is None or self._transport.is_closing()

    def close(self, why: str) -> None:
        """End the connection, and say why to the other side."""
        self._why = self._why or why
        if self._transport is None or self._transport.is_closing():
            return
        self._mux.close(why)
        self._transport.writelines(self._mux.take(0))
        if self._blocked:  # what it does not take now it may never take
            self._transport.abort()
        else:
            self._transport.close()

    # -- streams -----------------------------------------------------------------------------------------------------

    async def create_connection(
        self, factory: Callable[[], Protocol], service: str, *, patience: float = OPEN_S
    ) -> tuple[TunnelStream, Protocol]:
        """
        Open a stream to a service of the job; `patience`: seconds for the other side's answer.

        Raises:
            StreamRefusedError: it is not connected.
            TunnelClosedError: the tunnel is over, or carries no more streams.
            TimeoutError: there was no answer.
        """
        if self.is_closing:
            raise TunnelClosedError(f"the tunnel is over: {self._why or 'its connection has ended'}")
        number = self._mux.open(service)
        stream = TunnelStream(self, number, service)
        self._streams[number] = stream
        stream.answered = self._loop.create_future()
        self.flush()
        try:
            async with asyncio.timeout(patience):
                await stream.answered
        except (TimeoutError, asyncio.CancelledError):
            stream.abort()
            raise
        protocol = factory()
        stream.begin(protocol)
        return stream, protocol

    async def open_connection(
        self, service: str, *, patience: float = OPEN_S
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """
        A stream to a service, as a reader and a writer of asyncio; raises what `create_connection` does.
        """
        reader = asyncio.StreamReader(limit=_READ_LIMIT)

        def factory() -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(reader)

        stream, protocol = await self.create_connection(factory, service, patience=patience)
        return reader, asyncio.StreamWriter(stream, protocol, reader, self._loop)

    def announce(self, announcement: Announcement) -> None:
        """Say to the gateway what the job publishes."""
        self._mux.announce(announcement)
        self.flush()

    def renew(self, ticket: str) -> None:
        """Show the next ticket to the gateway."""
        self._mux.renew(ticket)
        self.flush()

    def ping(self, answered: Callable[[], object]) -> None:
        """
        Ask the other side whether it is there; `answered` is called when it has answered, and has taken all that was said before.
        """
        payload = os.urandom(8)
        self._pings[payload] = answered, self._loop.time()
        self._mux.ping(payload)
        self.flush()

    def _ponged(self, payload: bytes) -> None:
        answered, at = self._pings.pop(payload, (None, 0.0))
        if answered is not None:
            self.round_trip = self._loop.time() - at
            answered()

    @property
    def open_streams(self) -> int:
        """How many there are."""
        return self._mux.streams

    # -- for its streams ---------------------------------------------------------------------------------------------

    @property
    def multiplexer(self) -> Multiplexer:
        """The state of its streams."""
        return self._mux

    def forget(self, number: int) -> None:
        """A stream is over on our side."""
        self._streams.pop(number, None)

    def flush(self) -> None:
        """
        Give the connection what may be sent, as long as it takes it; then have streams go on that have waited for that.
        """
        if self._flushing or self._transport is None:
            return
        self._flushing = True
        try:
            while not self._blocked and self._mux.wants_to_send and not self._transport.is_closing():
                self._transport.writelines(self._mux.take(_FLUSH))
                self._go_on()
            self._go_on()
        finally:
            self._flushing = False

    def _go_on(self) -> None:
        drained, self._mux.drained = self._mux.drained, []
        for number in drained:
            if (stream := self._streams.get(number)) is not None:
                stream.drained()

    # -- what came ---------------------------------------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        match event:
            case Came(stream=number, data=data):
                if (stream := self._streams.get(number)) is not None:
                    stream.came(data)
                else:
                    self._mux.read(number, len(data))
            case Asked(stream=number, service=service):
                self._asked(number, service)
            case Ended() | WasReset() | Accepted() | NotAccepted():
                if (stream := self._streams.get(event.stream)) is not None:
                    self._changed(stream, event)
            case _:
                self._told(event)

    def _changed(self, stream: TunnelStream, event: Ended | WasReset | Accepted | NotAccepted) -> None:
        match event:
            case Ended():
                stream.ended()
            case WasReset(why=why):
                stream.lose(ConnectionResetError(f"the other side has broken the connection off: {why}"))
                self.forget(stream.number)
            case _:
                self._answered(stream, event)

    def _told(self, event: Event) -> None:
        match event:
            case Pinged(payload=payload):
                self._ponged(payload)
            case Announced(announcement=announcement):
                self.announcement = announcement
                self._on_announcement(announcement)
            case Renewed(ticket=ticket):
                self._on_ticket(ticket)
            case Closed(why=why):
                self._why = self._why or why
                if self._transport is not None:
                    self._transport.close()
            case _:
                raise AssertionError(f"{type(event).__name__} is of a stream")

    def _asked(self, number: int, service: str) -> None:
        assert self._answer is not None, "who does not open streams answers for them"
        stream = TunnelStream(self, number, service)
        self._streams[number] = stream
        self._answer(stream)

    def _answered(self, stream: TunnelStream, event: Accepted | NotAccepted) -> None:
        answered = stream.answered
        assert answered is not None
        if isinstance(event, NotAccepted):
            self.forget(stream.number)
            if not answered.done():
                answered.set_exception(StreamRefusedError(event.code, event.sentence))
        elif not answered.done():
            answered.set_result(None)

    def _look(self) -> None:
        """It was quiet for a while, perhaps."""
        silent = self._loop.time() - self._heard
        if silent >= self._dead_s:
            self._why = self._why or f"nothing was heard for {silent:.0f} s"
            if self._transport is not None:
                self._transport.abort()
            return
        if silent >= self._ping_s:
            self.ping(lambda: None)
        self._timer = self._loop.call_later(self._ping_s, self._look)

    def __repr__(self) -> str:
        """How many streams it has."""
        return f"Tunnel({self._mux.streams} streams)"
