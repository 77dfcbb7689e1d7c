"""Pieces of a shard's events that are no longer in the database, and the port through which they are read."""

import datetime as dt
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import asyncpg
import msgspec

from kettle.eventsourcing.log import LogError
from kettle_wire.frames import Entry

EventRow: TypeAlias = "asyncpg.Record | tuple[Any, ...]"
"""One event as the query `read` gives it: frame, pos, epoch, ver, at, stream, type, data, meta."""


class Stretch(NamedTuple):
    """Events of one frame that follow each other without a gap: all of them, or those that one page holds."""

    frame: int
    epoch: int
    at: dt.datetime
    position: int
    """Of the first."""
    entries: list[Entry]

    @property
    def end(self) -> int:
        """The position behind the last."""
        return self.position + len(self.entries)


FRAME: Final = 0
POSITION: Final = 1
VERSION: Final = 3


class PieceFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a piece."""

    path: str
    """Below the archive directory."""
    bytes: int
    sha256: str


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """
    A range of a shard's positions that is in files alone. It may begin and end in the middle of a frame.
    """

    shard: str
    piece: int
    """
    Counts from 0; multiplied with the shard's `piece_events` it is the first position that may be in it.
    """
    first_position: int
    last_position: int
    first_frame: int
    last_frame: int
    first_at: dt.datetime
    last_at: dt.datetime
    """The latest time, which after a clock was set back is not that of the last event."""
    rows_sha256: str
    """Of the msgpack of every row, in order: equal for equal events, whatever wrote the file."""
    events: PieceFile
    streams: PieceFile
    """Which group of rows of `events` holds which stream."""

    def __str__(self) -> str:
        return f"piece {self.piece} of {self.shard} (positions {self.first_position} to {self.last_position})"


class Archives(Protocol):
    """Reads the files of pieces. What is missing or damaged raises LogError and is never left out."""

    def events(
        self, piece: Piece, *, after: tuple[int, int], until: int
    ) -> AsyncIterator[Sequence[EventRow]]:
        """Rows with `after < (frame, pos)` and `frame <= until`, in order, some at a time."""
        ...

    async def stream(self, piece: Piece, stream: str) -> Sequence[EventRow]:
        """The rows of one stream, in order."""
        ...


class NoArchives:
    """
    For a process that does not know where archived pieces are: it refuses to read, because the log is incomplete
    without them.
    """

    def events(
        self, piece: Piece, *, after: tuple[int, int], until: int
    ) -> AsyncIterator[Sequence[EventRow]]:
        """See `Archives.events`."""
        raise _untold(piece)

    async def stream(self, piece: Piece, stream: str) -> Sequence[EventRow]:
        """See `Archives.stream`."""
        raise _untold(piece)


def _untold(piece: Piece) -> LogError:
    return LogError(
        f"{piece} is in the archive ({piece.events.path}), and this process was not told where that is: "
        f"set archive_directory."
    )


def piece_of(row: asyncpg.Record) -> Piece:
    """What a row of the query `archived` says."""
    return Piece(
        shard=row["name"],
        piece=row["piece"],
        first_position=row["first_pos"],
        last_position=row["last_pos"],
        first_frame=row["first_frame"],
        last_frame=row["last_frame"],
        first_at=row["first_at"],
        last_at=row["last_at"],
        rows_sha256=row["rows_sha256"],
        events=PieceFile(path=row["events_file"], bytes=row["events_bytes"], sha256=row["events_sha256"]),
        streams=PieceFile(path=row["streams_file"], bytes=row["streams_bytes"], sha256=row["streams_sha256"]),
    )


def columns_of(piece: Piece) -> tuple[object, ...]:
    """What the statement `note_archived` takes after the shard's number."""
    return (
        piece.piece,
        piece.first_position,
        piece.last_position,
        piece.first_frame,
        piece.last_frame,
        piece.first_at,
        piece.last_at,
        piece.rows_sha256,
        *(value for file in (piece.events, piece.streams) for value in (file.path, file.bytes, file.sha256)),
    )
