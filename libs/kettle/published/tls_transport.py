"""
The server's end of TLS as a transport of asyncio, each of whose directions ends for itself.

TLS of asyncio ends both directions with one: who says that it sends no more, as TLS 1.3 lets it say, gets no answer any more.  Here what
the other side says of its own direction holds for that alone.  It is above one transport, whose protocol it is, and below a protocol
that reads into buffers (`kettle.published.relay`).
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from kettle.published.first_words import FirstWords, FirstWordsError

PIECE: Final = 64 * 1024
"""Bytes that are read at once from the connection below."""
LINGER_S: Final = 5.0
"""For so long the other side may take what was said last: to close at once would take that back if it still sends."""
_RECORD: Final = 16 * 1024

ByteData = bytes | bytearray | memoryview
Connected = Callable[["TlsTransport"], object]


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """
    One connection.  `secured` is there when TLS is up; nothing is given to a protocol before one is set and reading is resumed.
    """

    def __init__(self, context: ssl.SSLContext, buffer: bytearray, connected: Connected) -> None:
        """
        `buffer`: `PIECE` bytes that are read into; one is for all connections of a loop.  `connected` is told when the connection below
        is there.
        """
        super().__init__()
        self._incoming: Final = ssl.MemoryBIO()
        self._outgoing: Final = ssl.MemoryBIO()
        self.engine: Final = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        """What was agreed upon is asked of it."""
        self._buffer: Final = memoryview(buffer)
        self._connected: Final = connected
        self._loop: Final = asyncio.get_running_loop()
        self._first: Final = FirstWords()
        self.secured: Final[asyncio.Future[None]] = self._loop.create_future()
        """Fails with the OSError that has kept TLS from being agreed upon."""
        self.gone: Final = asyncio.Event()
        """Set when the connection below is over."""
        self._below: asyncio.Transport | None = None
        self._protocol: asyncio.BaseProtocol | None = None
        self._kept = b""
        """Came, was decrypted, and was not given yet."""
        self._paused = True
        self._delivering = False
        self._end_came = False
        self._end_told = False
        self._end_said = False
        self._below_ended = False
        self._closing = False
        self._lost = False
        self._failure: OSError | None = None
        self._linger: asyncio.TimerHandle | None = None

    # -- of the connection below -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._below = cast("asyncio.Transport", transport)  # that of uvloop is no subclass
        self._connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to read to."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes have come."""
        if self._closing or self._failure is not None:
            return  # it is read only so that the other side can take what was said last
        data = self._buffer[:nbytes]
        if self.secured.done():
            self._incoming.write(data)
            self._deliver()
            return
        try:
            answer, of_tls = (b"", data) if self._first.over else self._first.hear(bytes(data))
        except FirstWordsError as error:
            self._fail(error)
            return
        if answer and self._below is not None:
            self._below.write(answer)
        if of_tls:
            self._incoming.write(of_tls)
            self._shake()

    def eof_received(self) -> bool:
        """
        It sends no more.  Where TLS has not said so before, whatever was to come is missing, and the job must not take it for the end.
        """
        self._below_ended = True
        if self._closing or self._failure is not None:
            return False
        if not self.secured.done():
            self._fail(ConnectionResetError("it has gone before TLS was agreed upon"))
            return False
        self._incoming.write_eof()
        self._deliver()
        return self._failure is None

    def pause_writing(self) -> None:
        """It takes no more at the moment."""
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """It takes more."""
        if self._protocol is not None:
            self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._lost = True
        self.gone.set()
        if self._linger is not None:
            self._linger.cancel()
        if not self.secured.done():
            self.secured.set_exception(exc or ConnectionResetError("the connection is over"))
        if self._protocol is not None:
            self._protocol.connection_lost(exc or self._failure)

    # -- TLS -------------------------------------------------------------------------------------------------------------

    def _shake(self) -> None:
        try:
            self.engine.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except OSError as error:
            self._fail(error)
            return
        self._flush()
        if self._below is not None:
            self._below.pause_reading()  # until somebody reads what comes
        if not self.secured.done():
            self.secured.set_result(None)

    def _fail(self, error: OSError) -> None:
        """The alert that says why, if there is one, goes out; then it is over."""
        self._failure = error
        if not self.secured.done():
            self.secured.set_exception(error)
            self._flush()
            self._let_go()
        else:
            self._flush()
            self.abort()

    def _flush(self) -> None:
        if self._below is not None and (data := self._outgoing.read()):
            self._below.write(data)

    def _read(self, buffer: memoryview) -> int:
        """Decrypt into a buffer; how much, 0: there is no more now."""
        if self._end_came:
            return 0
        try:
            count = int(self.engine.read(len(buffer), cast("bytearray", buffer)))
        except ssl.SSLWantReadError:
            return 0
        except ssl.SSLZeroReturnError:
            count = 0
        except OSError as error:
            self._fail(
                ConnectionResetError("the other side has gone without an end of TLS")
                if isinstance(error, ssl.SSLEOFError)
                else error
            )
            return 0
        self._end_came = not count
        return count

    def _deliver(self) -> None:
        """Give the protocol what it takes."""
        if self._delivering or self._protocol is None:
            return
        self._delivering = True
        try:
            while not (self._paused or self._closing or self._lost) and self._give(self._protocol):
                pass
        finally:
            self._delivering = False
        if self._closing or self._lost or self._failure is not None:
            return
        self._flush()  # what TLS itself has to answer
        if self._end_came and not (self._kept or self._paused or self._end_told):
            self._end_told = True
            if not cast("asyncio.BufferedProtocol", self._protocol).eof_received():
                self.close()

    def _give(self, protocol: asyncio.BaseProtocol) -> bool:
        """One piece; whether there was one."""
        reader = cast("asyncio.BufferedProtocol", protocol)
        buffer = memoryview(reader.get_buffer(-1))
        if self._kept:
            count = min(len(buffer), len(self._kept))
            buffer[:count] = self._kept[:count]
            self._kept = self._kept[count:]
        else:
            count = self._read(buffer)
        if count:
            reader.buffer_updated(count)
        return bool(count)

    def _say_end(self) -> None:
        """
        That we send no more.  OpenSSL looks for the other side's end at once, and takes bytes that it finds there for an error of the
        protocol: so what has come is taken out before.
        """
        self._end_said = True
        piece = memoryview(bytearray(_RECORD))
        kept = bytearray(self._kept)
        while count := self._read(piece):
            kept += piece[:count]
        self._kept = bytes(kept)
        if self._failure is not None:
            return
        try:
            self.engine.unwrap()
        except ssl.SSLWantReadError:
            pass  # the other side has not said so yet
        except OSError as error:
            self._fail(error)
            return
        self._flush()

    def _let_go(self) -> None:
        """Nothing more is read or written; the other side has a while to take what was said last."""
        self._closing = True
        below = self._below
        if below is None or below.is_closing():
            return
        if self._below_ended:
            below.close()
            return
        if below.can_write_eof():
            below.write_eof()
        below.resume_reading()
        self._linger = self._loop.call_later(LINGER_S, below.abort)

    # -- of a transport --------------------------------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Who is given what comes: one that reads into buffers."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who is given what comes."""
        assert self._protocol is not None
        return self._protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the connection below says."""
        return self._below.get_extra_info(name, default) if self._below is not None else default

    def is_reading(self) -> bool:
        """Whether the protocol is given what comes."""
        return not self._paused and not self._closing

    def pause_reading(self) -> None:
        """Leave it below; a piece that was read already is kept."""
        self._paused = True
        if self._below is not None and not self._closing:
            self._below.pause_reading()

    def resume_reading(self) -> None:
        """Give the protocol what comes."""
        if not self._paused or self._closing or self._below is None:
            return
        self._paused = False
        self._below.resume_reading()
        self._loop.call_soon(
            self._deliver
        )  # as of other transports: who resumes is not called back meanwhile

    def write(self, data: ByteData) -> None:
        """Send it."""
        if self._closing or self._lost or self._end_said:
            return
        left = memoryview(data)
        try:
            while left:
                left = left[self.engine.write(left) :]
        except OSError as error:
            self._fail(error)
            return
        self._flush()

    def writelines(self, list_of_data: Iterable[ByteData]) -> None:
        """Send several."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """Each direction ends for itself."""
        return True

    def write_eof(self) -> None:
        """Nothing more is written; what comes is still read."""
        if not (self._end_said or self._closing or self._lost):
            self._say_end()

    def get_write_buffer_size(self) -> int:
        """Bytes that were written and not sent."""
        return self._below.get_write_buffer_size() if self._below is not None else 0

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """The limits of the connection below."""
        return self._below.get_write_buffer_limits() if self._below is not None else (0, 0)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Of the connection below."""
        if self._below is not None:
            self._below.set_write_buffer_limits(high=high, low=low)

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._closing or self._lost

    def close(self) -> None:
        """Send what was written, then end; what comes is not read any more."""
        if self._closing or self._lost:
            return
        if not self._end_said and self.secured.done() and self._failure is None:
            self._say_end()
        self._kept = b""
        if not self._closing:
            self._let_go()

    def abort(self) -> None:
        """Break it off, whatever was not sent."""
        self._closing = True
        if self._below is not None:
            self._below.abort()
