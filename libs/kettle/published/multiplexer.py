"""
One end of a tunnel: many streams over one connection, as a state machine without I/O and without a clock.

    bytes that came      `receive` makes `Event` of them, one after the other
    bytes to be sent     `take` gives them: frames of the connection first, then of the streams in turn
    a stream             opened by the gateway's side, answered (or refused) by the job's; each direction ends for itself
    flow control         a side sends what the other has granted (`kettle.published.flow`), the rest waits with it, and who has written
                         it is told when to go on

What is kept here: what was written and may not be sent yet, and one frame that is not DATA; DATA is passed on as it arrives.
What the other side must not do ends the connection (`ProtocolViolation`).
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

from kettle.published import frames
from kettle.published.errors import ProtocolViolation, StreamCode, TunnelClosedError
from kettle.published.flow import BUDGET, Budget, Incoming
from kettle.published.frames import (
    FIRST_WINDOW,
    HEAD,
    HEAD_BYTES,
    LONGEST_CONTROL,
    LONGEST_DATA,
    Announcement,
    FrameKind,
    frame,
)
from kettle.published.services import NAME
from kettle.published.stream_state import StreamState

MOST_STREAMS: Final = 4096
"""Of one tunnel at once."""
QUANTUM: Final = 256 * 1024
"""Bytes that a stream sends before it is another one's turn."""
_MOST_CONTROL: Final = 4 * MOST_STREAMS
"""Frames that wait for a connection which takes none, before another PING or OPEN is too many."""
_MOST_CREDIT: Final = 1 << 31
_MOST_PIECES: Final = 4096
"""Written pieces of a stream that wait, each of which takes some memory besides its bytes."""
_LAST_NUMBER: Final = (1 << 32) - 1


class Asked(msgspec.Struct, frozen=True):
    """The other side opens a stream to this service; to be answered by `accept` or `refuse`."""

    stream: int
    service: str


class Accepted(msgspec.Struct, frozen=True):
    """A stream that we have opened is connected."""

    stream: int


class NotAccepted(msgspec.Struct, frozen=True):
    """A stream that we have opened is not connected, and is over."""

    stream: int
    code: str
    sentence: str


class Came(msgspec.Struct, frozen=True):
    """Bytes of a stream; `read` says that they are not kept any more."""

    stream: int
    data: memoryview


class Ended(msgspec.Struct, frozen=True):
    """The other side sends no more on this stream."""

    stream: int


class WasReset(msgspec.Struct, frozen=True):
    """The other side has broken the stream off."""

    stream: int
    why: str


class Pinged(msgspec.Struct, frozen=True):
    """The other side has answered a ping."""

    payload: bytes


class Announced(msgspec.Struct, frozen=True):
    """The job's side says what it publishes."""

    announcement: Announcement


class Renewed(msgspec.Struct, frozen=True):
    """The job's side shows its next ticket."""

    ticket: str

    def __repr__(self) -> str:
        """Without the secret."""
        return "Renewed()"


class Closed(msgspec.Struct, frozen=True):
    """The other side ends the connection."""

    why: str


Event: TypeAlias = (
    Asked | Accepted | NotAccepted | Came | Ended | WasReset | Pinged | Announced | Renewed | Closed
)


class Multiplexer:
    """One end; `opens`: it is that of the gateway, which opens streams, and not that of the job."""

    def __init__(
        self, *, opens: bool, budget: Budget | None = None, most_streams: int = MOST_STREAMS
    ) -> None:
        self._opens = opens
        self._budget = budget or Budget()
        self._most = most_streams
        self._streams: dict[int, StreamState] = {}
        self._last = 0
        """The number of the newest stream."""
        self._control: list[bytes] = []
        self._turns: deque[int] = deque()
        """Streams that have something that they may send."""
        self._waiting = 0
        """Bytes of all streams that were written and not sent."""
        self._part = bytearray()
        """A head, or a frame that is not DATA, of which the rest has not come."""
        self._stream = 0
        self._left = 0
        """Of a DATA frame: whose it is, and how much of it has not come."""
        self.drained: list[int] = []
        """
        Streams of which `take` has taken the last that was written, or that may send again; who reads this empties it.
        """

    # -- what came ---------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> Iterator[Event]:
        """
        What these bytes say; the iterator has to be used up before the next bytes are given.

        Raises ProtocolViolation: the connection has to end.
        """
        view, at, size = memoryview(data), 0, len(data)
        while at < size:
            if self._left:
                piece = view[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if self._stream in self._streams:
                    yield Came(self._stream, piece)
                continue
            if not self._part and size - at >= HEAD_BYTES:
                kind, stream, length = HEAD.unpack_from(data, at)
                if kind == FrameKind.DATA:
                    at += HEAD_BYTES
                    self._announced(stream, length)
                    continue
            at += self._collect(view[at:])
            if (complete := self._complete()) is not None:
                event = self._heard(*complete)
                if event is not None:
                    yield event

    def _collect(self, view: memoryview) -> int:
        """Add to the part of a frame what belongs to it; how many bytes that were."""
        missing = HEAD_BYTES - len(self._part)
        if missing <= 0:
            missing = HEAD_BYTES + HEAD.unpack_from(self._part)[2] - len(self._part)
        piece = view[:missing]
        self._part += piece
        return len(piece)

    def _complete(self) -> tuple[FrameKind, int, bytes] | None:
        """The frame in the part, if all of it is there; the head of DATA is enough."""
        if len(self._part) < HEAD_BYTES:
            return None
        kind, stream, length = HEAD.unpack_from(self._part)
        if kind == FrameKind.DATA:
            self._part.clear()
            self._announced(stream, length)
            return None
        if length > LONGEST_CONTROL:
            raise ProtocolViolation(
                f"a frame of kind {kind} has {length} bytes, at most {LONGEST_CONTROL} are read"
            )
        if len(self._part) < HEAD_BYTES + length:
            return None
        payload = bytes(self._part[HEAD_BYTES:])
        self._part.clear()
        try:
            return FrameKind(kind), stream, payload
        except ValueError:
            raise ProtocolViolation(f"there is no frame of kind {kind}") from None

    def _announced(self, stream: int, length: int) -> None:
        """A DATA frame begins."""
        if length > LONGEST_DATA:
            raise ProtocolViolation(f"a DATA frame has {length} bytes, at most {LONGEST_DATA} are read")
        known = self._known(stream)
        if known is not None:
            if known.got_end:
                raise ProtocolViolation(f"DATA came after the END of stream {stream}")
            known.incoming.came(length)
        self._stream, self._left = stream, length

    def _known(self, stream: int) -> StreamState | None:
        """A stream; None: it is over. Raises ProtocolViolation: there was none of this number."""
        if not 0 < stream <= self._last:
            raise ProtocolViolation(f"there was no stream {stream}")
        return self._streams.get(stream)

    def _heard(self, kind: FrameKind, stream: int, payload: bytes) -> Event | None:
        match kind:
            case FrameKind.PING:
                if len(self._control) > _MOST_CONTROL:
                    raise ProtocolViolation("more is asked than is read of the answers")
                self._control.append(frame(FrameKind.PONG, 0, payload[:8]))
                return None
            case FrameKind.PONG:
                return Pinged(payload)
            case FrameKind.CLOSE:
                return Closed(frames.text_of(payload))
            case FrameKind.SERVICES | FrameKind.TICKET if self._opens:
                return _told(kind, payload)
            case FrameKind.OPEN if not self._opens:
                return self._asked(stream, payload)
            case FrameKind.OPENED | FrameKind.REFUSED if self._opens:
                return self._answered(kind, stream, payload)
            case FrameKind.WINDOW | FrameKind.END | FrameKind.RESET:
                known = self._known(stream)
                return self._changed(kind, stream, known, payload) if known is not None else None
            case _:
                raise ProtocolViolation(f"this side takes no {kind.name}")

    def _asked(self, stream: int, payload: bytes) -> Event | None:
        service = payload.decode("ascii", "replace")
        if stream <= self._last or not NAME.fullmatch(service):
            raise ProtocolViolation("an OPEN has a number that was used, or no name of a service")
        if len(self._control) > _MOST_CONTROL:
            raise ProtocolViolation("more is opened than is read of the answers")
        self._last = stream
        if len(self._streams) >= self._most:
            self._control.append(
                frames.refused(
                    stream,
                    StreamCode.TOO_MANY,
                    f"the job has {self._most} connections to its services already",
                )
            )
            return None
        self._streams[stream] = StreamState(Incoming(self._budget))
        return Asked(stream, service)

    def _answered(self, kind: FrameKind, stream: int, payload: bytes) -> Event | None:
        known = self._known(stream)
        if known is None:
            return None  # we have broken it off meanwhile
        if not known.opening:
            raise ProtocolViolation(f"stream {stream} was answered twice")
        known.opening = False
        if kind is FrameKind.OPENED:
            return Accepted(stream)
        self._forget(stream)
        code, _, why = frames.text_of(payload).partition(" ")
        return NotAccepted(stream, code, why)

    def _changed(self, kind: FrameKind, stream: int, known: StreamState, payload: bytes) -> Event | None:
        match kind:
            case FrameKind.WINDOW:
                try:
                    known.credit += frames.granted(payload)
                except ValueError as error:
                    raise ProtocolViolation(str(error)) from error
                if known.credit > _MOST_CREDIT:
                    raise ProtocolViolation(f"stream {stream} was granted more than 2 GiB")
                self._ready(stream, known)
                if not known.waiting:
                    self.drained.append(stream)
                return None
            case FrameKind.END:
                if known.got_end:
                    raise ProtocolViolation(f"stream {stream} has ended twice")
                known.got_end = True
                self._settle(stream, known)
                return Ended(stream)
            case _:
                self._forget(stream)
                return WasReset(stream, frames.text_of(payload))

    # -- what is done ------------------------------------------------------------------------------------------------

    def open(self, service: str) -> int:
        """
        Open a stream; its number.

        Raises TunnelClosedError: there are as many as a tunnel carries, or its connection has taken nothing for a while.
        """
        if len(self._control) > _MOST_CONTROL:
            raise TunnelClosedError("the tunnel's connection takes nothing at the moment")
        if len(self._streams) >= self._most or self._last >= _LAST_NUMBER:
            raise TunnelClosedError(f"the tunnel carries {len(self._streams)} streams, and no more")
        self._last += 1
        self._streams[self._last] = StreamState(Incoming(self._budget))
        self._control.append(frame(FrameKind.OPEN, self._last, service.encode()))
        return self._last

    def accept(self, stream: int) -> None:
        """The service is connected."""
        known = self._streams.get(stream)
        if known is not None and known.opening:
            known.opening = False
            self._control.append(frame(FrameKind.OPENED, stream))

    def refuse(self, stream: int, code: StreamCode, why: str) -> None:
        """It is not, and the stream is over."""
        if stream in self._streams:
            self._forget(stream)
            self._control.append(frames.refused(stream, code, why))

    def write(self, stream: int, data: bytes | memoryview) -> None:
        """Have bytes sent when that is granted; of a stream that is over they are lost."""
        known = self._streams.get(stream)
        if known is not None and not known.ends and len(data):
            known.backlog.append(memoryview(data))
            known.waiting += len(data)
            self._waiting += len(data)
            self._ready(stream, known)

    def end(self, stream: int) -> None:
        """Nothing is written any more."""
        known = self._streams.get(stream)
        if known is not None and not known.ends:
            known.ends = True
            self._ready(stream, known)

    def reset(self, stream: int, why: str) -> None:
        """Break a stream off, in both directions."""
        if stream in self._streams:
            self._forget(stream)
            self._control.append(frame(FrameKind.RESET, stream, frames.sentence(why)))

    def read(self, stream: int, count: int) -> None:
        """Bytes that came are not kept any more."""
        known = self._streams.get(stream)
        if known is None:
            return
        grant = known.incoming.read(count)
        if known.got_end:
            self._settle(stream, known)
        elif grant:
            self._control.append(frames.window(stream, grant))

    def ping(self, payload: bytes) -> None:
        """Ask whether the other side is there; 8 bytes."""
        self._control.append(frame(FrameKind.PING, 0, payload))

    def announce(self, announcement: Announcement) -> None:
        """Say what the job publishes."""
        self._control.append(frames.announced(announcement))

    def renew(self, ticket: str) -> None:
        """Show the next ticket."""
        self._control.append(frame(FrameKind.TICKET, 0, ticket.encode()))

    def close(self, why: str) -> None:
        """Say that the connection is over."""
        self._control.append(frame(FrameKind.CLOSE, 0, frames.sentence(why)))

    # -- what is to be sent ------------------------------------------------------------------------------------------

    def take(self, limit: int) -> list[bytes | memoryview]:
        """
        What is to be sent now, in pieces; of streams not more than about `limit` bytes, a quantum of each in turn.
        """
        taken: list[bytes | memoryview] = list(self._control)
        self._control.clear()
        while self._turns and limit > 0:
            stream = self._turns.popleft()
            known = self._streams.get(stream)
            if known is None:
                continue
            known.queued = False
            limit -= self._turn(stream, known, taken)
        return taken

    def _turn(self, stream: int, known: StreamState, taken: list[bytes | memoryview]) -> int:
        """One stream's turn; how many bytes it has had."""
        size = min(known.credit, known.waiting, QUANTUM)
        if size:
            taken.append(HEAD.pack(FrameKind.DATA, stream, size))
            known.credit -= size
            known.waiting -= size
            self._waiting -= size
            left = size
            while left:
                piece = known.backlog[0]
                if len(piece) <= left:
                    known.backlog.popleft()
                else:
                    known.backlog[0] = piece[left:]
                    piece = piece[:left]
                taken.append(piece)
                left -= len(piece)
            if not known.waiting:
                self.drained.append(stream)
        if known.waiting:
            self._ready(stream, known)
        elif known.ends and not known.sent_end:
            known.sent_end = True
            taken.append(frame(FrameKind.END, stream))
            self._settle(stream, known)
        return size

    def _ready(self, stream: int, known: StreamState) -> None:
        """It is this stream's turn some time, if there is anything that it may send."""
        sends = bool(known.waiting and known.credit) or (
            known.ends and not known.waiting and not known.sent_end
        )
        if sends and not known.queued:
            known.queued = True
            self._turns.append(stream)

    def _settle(self, stream: int, known: StreamState) -> None:
        """A stream that has ended in both directions, and of which everything was read, is over."""
        if known.sent_end and known.got_end and not known.incoming.held:
            self._forget(stream)

    def _forget(self, stream: int) -> None:
        known = self._streams.pop(stream)
        known.incoming.close()
        self._waiting -= known.waiting

    # -- figures -----------------------------------------------------------------------------------------------------

    @property
    def wants_to_send(self) -> bool:
        """Whether `take` would give something."""
        return bool(self._control or self._turns)

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self._streams)

    def waiting(self, stream: int) -> int:
        """Bytes of a stream that were written and not sent."""
        known = self._streams.get(stream)
        return known.waiting if known is not None else 0

    def room(self, stream: int) -> int:
        """
        Bytes of a stream that would not have to wait for a grant; no more than is kept here if the connection takes none, whatever
        the other side has granted.
        """
        known = self._streams.get(stream)
        if known is None or len(known.backlog) >= _MOST_PIECES:
            return 0
        others = self._waiting - known.waiting
        most = FIRST_WINDOW + max(0, BUDGET - others)
        return max(0, min(known.credit, most) - known.waiting)


def _told(kind: FrameKind, payload: bytes) -> Event:
    try:
        if kind is FrameKind.TICKET:
            return Renewed(payload.decode("ascii"))
        return Announced(frames.announcement_of(payload))
    except (ValueError, msgspec.MsgspecError) as error:
        raise ProtocolViolation(f"a {kind.name} frame cannot be read: {error}") from error
