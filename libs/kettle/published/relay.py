"""
A stream of a tunnel joined with a connection: what comes on one is written on the other, no faster than the slower one takes it, and
each direction ends for itself.
"""

import asyncio
from typing import Final, cast

from kettle.published.tunnel_stream import TunnelStream

CHUNK: Final = 256 * 1024
"""Bytes that are read at once."""


class Waiting(asyncio.Protocol):
    """
    Has a stream keep what comes until another protocol takes it: a service may speak before its stream is joined with anything.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The stream is there, and not read yet."""
        cast("asyncio.Transport", transport).pause_reading()


class Relay:
    """The two protocols, which know each other; `done` is there when both connections are over."""

    def __init__(self, stream: TunnelStream, buffer: bytearray) -> None:
        """
        `buffer`: `CHUNK` bytes that are read into; one is for all relays of a loop, because what was read is copied at once.
        """
        self.stream = stream
        self.socket: asyncio.Transport | None = None
        self.buffer = memoryview(buffer)
        self.of_stream: Final = StreamSide(self)
        self.of_socket: Final = SocketSide(self)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sent = 0
        """Bytes from the stream to the socket."""
        self.received = 0
        """Bytes from the socket to the stream."""
        self._open = 2
        self._ended: set[str] = set()

    def begin(self) -> None:
        """Take what comes on the stream, which was made with `Waiting`, and may be over already."""
        self.stream.set_protocol(self.of_stream)
        if self.stream.is_closing():
            self.of_stream.connection_lost(ConnectionResetError("the connection is over already"))
        else:
            self.stream.resume_reading()

    def ended(self, side: str) -> None:
        """One of them sends no more; nothing else would close them when both have said so."""
        self._ended.add(side)
        if len(self._ended) == 2:
            if self.socket is not None and not self.socket.is_closing():
                self.socket.close()
            self.stream.close()

    def lost(self) -> None:
        """One of them is over."""
        self._open -= 1
        if self._open == 0 and not self.done.done():
            self.done.set_result(None)


class StreamSide(asyncio.Protocol):
    """What comes out of the tunnel goes to the socket."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def data_received(self, data: bytes) -> None:
        """Bytes of the other end of the tunnel."""
        relay = self._relay
        if relay.socket is not None:
            relay.sent += len(data)
            relay.socket.write(data)

    def eof_received(self) -> bool:
        """The other end sends no more."""
        socket = self._relay.socket
        if socket is not None and not socket.is_closing():
            if socket.can_write_eof():
                socket.write_eof()
            else:
                socket.close()  # TLS cannot end one direction alone
        self._relay.ended("stream")
        return True

    def pause_writing(self) -> None:
        """The tunnel takes no more at the moment."""
        if self._relay.socket is not None:
            self._relay.socket.pause_reading()

    def resume_writing(self) -> None:
        """It takes more."""
        if self._relay.socket is not None:
            self._relay.socket.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The stream is over."""
        socket = self._relay.socket
        if socket is not None and not socket.is_closing():
            if exc is None:
                socket.close()
            else:
                socket.abort()
        self._relay.lost()


class SocketSide(asyncio.BufferedProtocol):
    """What comes from the socket goes into the tunnel."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        transport = cast("asyncio.Transport", transport)  # that of uvloop is no subclass
        transport.set_write_buffer_limits(high=0)
        self._relay.socket = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to read to: no more than the other end of the tunnel lets us send."""
        room = self._relay.stream.room()
        return self._relay.buffer[: max(1, room)]

    def buffer_updated(self, nbytes: int) -> None:
        """That has come."""
        relay = self._relay
        relay.received += nbytes
        relay.stream.write(bytes(relay.buffer[:nbytes]))

    def eof_received(self) -> bool:
        """It sends no more."""
        self._relay.stream.write_eof()
        self._relay.ended("socket")
        return True

    def pause_writing(self) -> None:
        """The socket takes no more at the moment."""
        self._relay.stream.pause_reading()

    def resume_writing(self) -> None:
        """It takes more."""
        self._relay.stream.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        stream = self._relay.stream
        if not stream.is_closing():
            if exc is None:
                stream.close()
            else:
                stream.abort()
        self._relay.lost()


def join(
    stream: TunnelStream, transport: asyncio.Transport, buffer: bytearray, *, received: bytes = b""
) -> Relay:
    """
    Join a stream that was opened with a connection that is there, of which `received` has been read already.

    `buffer`: see `Relay`. The stream is to have been made with `Waiting`; from now on the relay's protocols are in their places.
    """
    relay = Relay(stream, buffer)
    relay.of_socket.connection_made(transport)
    transport.set_protocol(relay.of_socket)
    if received:
        relay.received += len(received)
        stream.write(received)
    relay.begin()
    if not transport.is_closing():
        transport.resume_reading()
    return relay
