"""
Connections that speak another protocol from some moment on: what came as a request of HTTP goes on as bytes.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, cast

from aiohttp import web

from kettle.published.errors import StreamCode
from kettle.published.frames import PROTOCOL
from kettle.published.relay import CHUNK, Relay, join
from kettle.published.tunnel import Tunnel
from kettle.published.tunnel_stream import TunnelStream
from kettle_services.gateway.published.uses import Use
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode


class Early:
    """Takes what has come behind a head already, in the place of a parser of aiohttp's."""

    def __init__(self) -> None:
        self.data = b""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Keep it."""
        self.data += data
        return False, b""

    def feed_eof(self) -> None:
        """Nothing more comes."""


class Switched(web.StreamResponse):
    """The answer of a request whose connection is no HTTP any more; the web server has nothing to send."""

    def __init__(self) -> None:
        super().__init__(status=101)
        self.force_close()

    @property
    def prepared(self) -> bool:
        """Its head has been sent."""
        return True

    async def prepare(self, request: web.BaseRequest) -> None:
        """Nothing is left to send."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to send."""


def asks_for(request: web.Request, protocol: str) -> bool:
    """
    Whether a request asks for another protocol. The header Connection has to say so too: a proxy in front that was told of none sends
    requests of others over the same connection.
    """
    said = ",".join(request.headers.getall("Connection", ()))
    wants = {each.strip().lower() for each in said.split(",")}
    return "upgrade" in wants and request.headers.get("Upgrade", "").lower() == protocol


def require_upgrade(request: web.Request, protocol: str) -> None:
    """Raises RequestRefused: the request does not ask for this protocol."""
    if request.method != "GET" or not asks_for(request, protocol):
        raise RequestRefused(
            426,
            ProblemCode.REQUEST_MALFORMED,
            f"this path takes GET with the headers Connection: Upgrade and Upgrade: {protocol}",
            headers={"Upgrade": protocol, "Connection": "Upgrade"},
        )
    if request.can_read_body:
        raise RequestRefused(400, ProblemCode.REQUEST_MALFORMED, "a request for another protocol has no body")


def taken(request: web.Request, headers: Mapping[str, str]) -> tuple[asyncio.Transport, bytes]:
    """
    Answer 101; the connection, and what has come by it already.  The caller gives it another protocol at once, and calls `forget` when
    it is over.

    `headers` are those of this process, or as the client of HTTP has read them.  Raises ConnectionResetError: the other side has gone.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the connection is over")
    early = Early()
    request.protocol.set_parser(cast("Any", early))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    transport.write(
        f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{lines}\r\n".encode(
            errors="surrogateescape"
        )
    )
    return transport, early.data


def forget(request: web.Request) -> None:
    """Have the web server forget a connection that was taken, and is over."""
    request.protocol.connection_lost(None)


class Passage:
    """Passes bytes between people and streams of tunnels."""

    def __init__(self) -> None:
        self._buffer: Final = bytearray(CHUNK)
        """One for all: what was read is copied at once."""

    async def answer(
        self,
        request: web.Request,
        use: Use,
        stream: TunnelStream,
        headers: Mapping[str, str],
        early: bytes = b"",
    ) -> web.StreamResponse:
        """
        Answer 101, and pass bytes both ways until both sides have ended; `early`: what has come from the job already.

        Raises ConnectionResetError: the other side has gone.
        """
        try:
            transport, rest = taken(request, headers)
        except ConnectionResetError:
            stream.abort()
            raise
        try:
            transport.write(early)
            await self.joined(transport, use, stream, received=rest, sent=len(early))
        finally:
            stream.abort()
            transport.abort()
            forget(request)
        return Switched()

    async def joined(
        self,
        transport: asyncio.Transport,
        use: Use,
        stream: TunnelStream,
        *,
        received: bytes = b"",
        sent: int = 0,
    ) -> None:
        """
        Pass bytes both ways until both sides have ended; `received`: what was read of the person's side already, `sent`: how much was
        written to it.
        """
        relay = join(stream, transport, self._buffer, received=received)
        use.counted_by(lambda: (relay.received, relay.sent + sent))
        await relay.done

    async def answer_in_frames(
        self, request: web.Request, use: Use, stream: TunnelStream
    ) -> web.StreamResponse:
        """
        Answer 101, and be the other end of a tunnel that has one stream, which is joined with this one.

        Raises ConnectionResetError: the other side has gone.
        """
        try:
            transport, rest = taken(request, {"Upgrade": PROTOCOL})
        except ConnectionResetError:
            stream.abort()
            raise
        relay = Relay(stream, self._buffer)

        def join_with(theirs: TunnelStream) -> None:
            if relay.socket is not None:
                theirs.refuse(StreamCode.TOO_MANY, "a connection to a service has one stream")
                return
            theirs.accept(relay.of_socket)
            relay.begin()

        tunnel = Tunnel(opens=False, answer=join_with)
        try:
            transport.set_protocol(tunnel)
            tunnel.connection_made(transport)
            if rest:
                tunnel.data_received(rest)
            use.counted_by(lambda: (relay.received, relay.sent))
            await tunnel.ended()
        finally:
            stream.abort()
            transport.abort()
            forget(request)
        return Switched()
