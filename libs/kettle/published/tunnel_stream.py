"""A stream of a tunnel as a transport of asyncio, so that every protocol of asyncio can be used over it."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Final, Protocol

from kettle.published.errors import StreamCode
from kettle.published.multiplexer import Multiplexer

LINGER_S: Final = 60.0
"""Seconds after which a stream that was closed here is broken off, if the other side does not end it."""

_PIECE: Final = 64 * 1024
"""Bytes that are kept together."""

ByteData = bytes | bytearray | memoryview


class Carrier(Protocol):
    """The tunnel of a stream."""

    @property
    def multiplexer(self) -> Multiplexer:
        """The state of its streams."""
        ...

    def flush(self) -> None:
        """Send what may be sent."""
        ...

    def forget(self, number: int) -> None:
        """A stream is over on our side."""
        ...


class TunnelStream(asyncio.Transport):
    """
    Bytes in both directions.  What came and was not given to the protocol counts as not read, so that the other side may send no more
    than a window of it; what was written beyond that makes us call `pause_writing`.
    """

    def __init__(self, tunnel: Carrier, number: int, service: str) -> None:
        super().__init__({"service": service})
        self._tunnel = tunnel
        self._mux = tunnel.multiplexer
        self._loop = asyncio.get_running_loop()
        self.number: Final = number
        self.service: Final = service
        """Which the opener has named."""
        self.answered: asyncio.Future[None] | None = None
        """Of the side that has opened it."""
        self._protocol: asyncio.BaseProtocol | None = None
        self._inbox: deque[memoryview | bytearray] = deque()
        self._end_came = False
        self._end_told = False
        self._owed = 0
        """Bytes that the protocol has got, and has paused at: they count as read when it goes on."""
        self._paused = False
        self._delivering = False
        self._writer_paused = False
        self._closing = False
        self._lost = False
        self._linger: asyncio.TimerHandle | None = None

    # -- of the job's side -------------------------------------------------------------------------------------------

    def accept(self, protocol: asyncio.BaseProtocol) -> None:
        """The service is connected, and this protocol is given what comes."""
        if not self._lost:
            self._mux.accept(self.number)
            self._tunnel.flush()
        self.begin(protocol)

    def refuse(self, code: StreamCode, why: str) -> None:
        """It is not."""
        self._lost = True
        self._tunnel.forget(self.number)
        self._mux.refuse(self.number, code, why)
        self._tunnel.flush()

    # -- for the tunnel ----------------------------------------------------------------------------------------------

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """From now on the protocol is given what comes."""
        self._protocol = protocol
        protocol.connection_made(self)
        if self._lost:
            protocol.connection_lost(ConnectionResetError("the connection is over already"))
        else:
            self._deliver()

    def came(self, data: memoryview) -> None:
        """Bytes of the other side."""
        if self._closing or self._lost:
            if not self._lost and self._mux.waiting(self.number):
                self._mux.read(
                    self.number, len(data)
                )  # nobody wants it, and what we have written is still sent
            else:
                self.abort()
            return
        if self._inbox or self._paused or self._delivering or self._protocol is None:
            self._keep(data)
        else:
            self._inbox.append(data)
            self._deliver()

    def _keep(self, data: memoryview) -> None:
        """
        For later: copied, or a few bytes would keep all that came with them, and in large pieces, each of which takes more than its
        bytes.
        """
        last = self._inbox[-1] if self._inbox else None
        if isinstance(last, bytearray) and len(last) < _PIECE:
            last += data
        else:
            self._inbox.append(bytearray(data))

    def ended(self) -> None:
        """The other side sends no more."""
        self._end_came = True
        self._deliver()
        self._settle()

    def drained(self) -> None:
        """All that was written is sent, and more may be."""
        if self._mux.waiting(self.number):
            return
        if self._closing:
            self._finish(None)
            self._settle()
        elif self._writer_paused and self._mux.room(self.number) and self._protocol is not None:
            self._writer_paused = False
            self._protocol.resume_writing()

    def _settle(self) -> None:
        """Nothing more happens on a stream that both sides have ended."""
        if self._closing and self._end_came and not self._mux.waiting(self.number):
            if self._linger is not None:
                self._linger.cancel()
            self._tunnel.forget(self.number)

    def lose(self, error: Exception | None) -> None:
        """The stream is over."""
        if self._linger is not None:
            self._linger.cancel()
        if self.answered is not None and not self.answered.done():
            self.answered.set_exception(error or ConnectionResetError("the connection is over"))
        self._finish(error)

    def _deliver(self) -> None:
        """Give the protocol what it takes."""
        if self._delivering or self._protocol is None:
            return
        self._delivering = True
        try:
            while self._inbox and not self._paused and not self._closing and not self._lost:
                self._give(memoryview(self._inbox.popleft()))
            if self._end_came and not (
                self._inbox or self._paused or self._end_told or self._closing or self._lost
            ):
                self._end_told = True
                keeps = self._protocol.eof_received() if isinstance(self._protocol, _READS) else False
                if not keeps:
                    self.close()
        finally:
            self._delivering = False

    def _give(self, piece: memoryview) -> None:
        protocol, size = self._protocol, len(piece)
        if isinstance(protocol, asyncio.BufferedProtocol):
            while piece and not self._paused and not self._lost:
                buffer = memoryview(protocol.get_buffer(len(piece)))
                count = min(len(buffer), len(piece))
                buffer[:count] = piece[:count]
                piece = piece[count:]
                protocol.buffer_updated(count)
            if piece and not self._closing and not self._lost:  # it has paused in the middle
                self._inbox.appendleft(bytearray(piece))
                size -= len(piece)
        else:
            assert isinstance(protocol, asyncio.Protocol)
            protocol.data_received(bytes(piece))
        if self._paused:
            self._owed += size
        else:
            self._mux.read(self.number, size)
            self._tunnel.flush()

    def _finish(self, error: Exception | None) -> None:
        """The protocol is told that it is over, once."""
        if self._lost:
            return
        self._lost = True
        if self._protocol is not None:
            self._loop.call_soon(self._protocol.connection_lost, error)

    def _break_off(self) -> None:
        self._mux.reset(self.number, "it was closed, and the other side did not end it")
        self._tunnel.forget(self.number)
        self._tunnel.flush()

    # -- of a transport ----------------------------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Another one is given what comes."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who is given what comes."""
        assert self._protocol is not None
        return self._protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """`service`: its name."""
        return super().get_extra_info(name, default)

    def is_reading(self) -> bool:
        """Whether the protocol is given what comes."""
        return not self._paused and not self._closing

    def pause_reading(self) -> None:
        """Keep what comes, at most a window."""
        self._paused = True

    def resume_reading(self) -> None:
        """Give the protocol what has come meanwhile."""
        if not self._paused:
            return
        self._paused = False
        if self._owed:
            owed, self._owed = self._owed, 0
            self._mux.read(self.number, owed)
            self._tunnel.flush()
        self._loop.call_soon(
            self._deliver
        )  # as of other transports: who resumes is not called back meanwhile

    def write(self, data: ByteData) -> None:
        """
        Send it, or keep it until the other side grants that; it is not changed meanwhile if it is `bytes`.
        """
        if self._closing or self._lost or not len(data):
            return
        self._mux.write(self.number, data if isinstance(data, bytes) else bytes(data))
        self._tunnel.flush()
        if not self._mux.room(self.number) and not self._writer_paused and self._protocol is not None:
            self._writer_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[ByteData]) -> None:
        """Send several."""
        self.write(b"".join(list_of_data))

    def room(self) -> int:
        """Bytes that could be written now without being kept here."""
        return self._mux.room(self.number) if not self._writer_paused else 0

    def can_write_eof(self) -> bool:
        """Each direction ends for itself."""
        return True

    def write_eof(self) -> None:
        """Nothing more is written; what comes is still read."""
        self._mux.end(self.number)
        self._tunnel.flush()

    def get_write_buffer_size(self) -> int:
        """Bytes that were written and not sent."""
        return self._mux.waiting(self.number)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Who writes is stopped as soon as anything has to wait."""
        return 0, 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """They are what they are."""

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._closing or self._lost

    def close(self) -> None:
        """Send what was written, then end; what comes is not read any more."""
        if self._closing or self._lost:
            return
        self._closing = True
        kept = sum(len(piece) for piece in self._inbox) + self._owed
        self._inbox.clear()
        self._owed = 0
        if kept:
            self._mux.read(self.number, kept)
        self._mux.end(self.number)
        self._tunnel.flush()
        self._linger = self._loop.call_later(LINGER_S, self._break_off)
        self._settle()
        if not self._mux.waiting(self.number):
            self._finish(None)

    def abort(self) -> None:
        """Break it off, whatever was not sent."""
        if self.number:
            self._closing = True
            self._mux.reset(self.number, "it was broken off")
            self._tunnel.forget(self.number)
            self._tunnel.flush()
        self._finish(None)


_READS: Final = (asyncio.Protocol, asyncio.BufferedProtocol)
