"""
Connections that speak another protocol from some moment on: what came as a request of HTTP goes on as bytes.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from aiohttp import web

from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode


class _Rest:
    """Takes what came behind the request already."""

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


class _Onward(asyncio.Protocol):
    """Passes everything on to a protocol, and has the web server forget the connection when it is over."""

    def __init__(self, protocol: asyncio.Protocol, before: asyncio.Protocol) -> None:
        self._protocol = protocol
        self._before = before
        self.data_received = protocol.data_received  # type: ignore[method-assign] - each byte comes by here
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over for both."""
        try:
            self._protocol.connection_lost(exc)
        finally:
            self._before.connection_lost(exc)


def require_upgrade(request: web.Request, protocol: str) -> None:
    """Raises RequestRefused: the request does not ask for this protocol."""
    wants = {each.strip().lower() for each in request.headers.get("Connection", "").split(",")}
    if (
        request.method != "GET"
        or "upgrade" not in wants
        or request.headers.get("Upgrade", "").lower() != protocol
    ):
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
    Answer 101; the connection, and what has come by it already.  The caller gives it another protocol at once, and has the web server
    forget it when it is over (`request.protocol.connection_lost`).

    `headers` are printable, as this process or a checked answer has them.  Raises ConnectionResetError: the other side has gone.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the connection is over")
    rest = _Rest()
    request.protocol.set_parser(cast("Any", rest))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    transport.write(
        f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{lines}\r\n".encode("latin-1")
    )
    return transport, rest.data


def switch(request: web.Request, protocol: asyncio.Protocol, headers: Mapping[str, str]) -> None:
    """Answer 101, and have the connection go on with a protocol; raises ConnectionResetError: the other side has gone."""
    transport, rest = taken(request, headers)
    transport.set_protocol(_Onward(protocol, request.protocol))
    protocol.connection_made(transport)
    if rest:
        protocol.data_received(rest)


_PAIRS: Final = "a connection has one other side"


class Coupled(asyncio.Protocol):
    """
    One of two connections that are one for those at their ends: what comes by one leaves by the other, as fast as that takes it, and
    the end of one direction is the end of that direction only.
    """

    def __init__(self, count: Callable[[int], None] = lambda _bytes: None) -> None:
        """`count` is told of each piece that has come by this one."""
        self.transport: asyncio.Transport | None = None
        self.over: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._count = count
        self._other: Coupled | None = None
        self._early: list[bytes] = []
        self._ended = False
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self.transport = cast("asyncio.Transport", transport)
        if self._other is None:
            self.transport.pause_reading()

    def join(self, other: "Coupled") -> None:
        """Let bytes pass from now on, both ways."""
        for one, another in ((self, other), (other, self)):
            assert one._other is None, _PAIRS
            one._other = another
        for one in (self, other):
            for data in one._early:
                one._pass_on(data)
            one._early.clear()
            if one._ended:
                one._end_other()
            if one._lost:
                one._close_other()
            if one.transport is not None:
                one.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._other is None:
            self._early.append(data)
            return
        self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        other = self._other
        if other is not None and other.transport is not None and not other._lost:
            self._count(len(data))
            other.transport.write(data)

    def eof_received(self) -> bool:
        """See `asyncio.Protocol`: the other direction goes on, where the connection has two."""
        self._ended = True
        if self._other is not None:
            self._end_other()
        return self.transport is not None and self.transport.can_write_eof()

    def _end_other(self) -> None:
        assert self._other is not None, _PAIRS
        other = self._other.transport
        if other is None or other.is_closing():
            return
        if other.can_write_eof():
            other.write_eof()
        else:
            other.close()
        if self._other._ended and self.transport is not None:  # nothing comes any more from either side
            self.transport.close()
            other.close()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`: who sends to this one waits."""
        if self._other is not None and self._other.transport is not None and not self._other._lost:
            self._other.transport.pause_reading()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self._other is not None and self._other.transport is not None and not self._other._lost:
            self._other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        del exc
        self._lost = True
        if self._other is not None:
            self._close_other()
        if not self.over.done():
            self.over.set_result(None)

    def _close_other(self) -> None:
        assert self._other is not None, _PAIRS
        if self._other.transport is not None:
            self._other.transport.close()

    def abort(self) -> None:
        """End both at once."""
        for each in (self, self._other):
            if each is not None and each.transport is not None:
                each.transport.abort()
