"""Writes one piece of the log into its files, and proves that the files hold what the database has."""

import datetime as dt
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Final

import msgspec

from kettle.archive.errors import ArchiveError
from kettle.archive.manifest import (
    add_to_manifest,
    directory_of,
    make_directory,
    new_file,
    put_in_place,
    read_manifest,
    settle,
    sha256_of,
)
from kettle.archive.parquet import GROUP, EventsWriter, RowsHash, read_events
from kettle.storage.archived_pieces import FRAME, POSITION, EventRow, Piece, PieceFile
from kettle.storage.database import Connection
from kettle.storage.queries import QUERIES
from kettle.threads.to_the_end import to_the_end

_AT: Final = 4
_FETCH: Final = 2_048
"""Rows per answer of the database: decoding them must not hold up the loop."""


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """A piece as the database has it."""

    id: int
    """The shard's number."""
    shard: str
    piece: int
    first: int
    """Its first position."""
    end: int
    """The position after its last."""


async def write_piece(
    connection: Connection, directory: Path, wanted: Range, *, progress: Callable[[int], None]
) -> Piece:
    """
    Read a piece from the database into files below `directory`, verify them, put them in place and into the manifest.

    A piece that is there already, whole and equal, is left as it is.

    Raises:
        ArchiveError: the files cannot be written, are not equal to the database, or the place is another database's.
    """
    try:
        home = await to_the_end(make_directory, directory, wanted.shard)
        with ExitStack() as files:
            events, events_path = files.enter_context(new_file(home))
            streams, streams_path = files.enter_context(new_file(home))
            with EventsWriter(wanted.shard, events) as writer:
                copy = await _copied(connection, wanted, writer, progress)
            await to_the_end(writer.write_streams, streams)
            await to_the_end(settle, events)
            await to_the_end(settle, streams)
            return await to_the_end(_keep, directory, copy, events_path, streams_path)
    except ConnectionError:
        raise  # the database's
    except OSError as error:
        raise ArchiveError(
            f"piece {wanted.piece} of {wanted.shard} cannot be written below {directory}: "
            f"{error.strerror or error}. It stays in the database."
        ) from error


async def _copied(
    connection: Connection, wanted: Range, writer: EventsWriter, progress: Callable[[int], None]
) -> "_Copy":
    copy = _Copy(wanted)
    async with aclosing(_groups(connection, wanted)) as groups:
        async for rows in groups:
            await to_the_end(writer.add, rows)
            await to_the_end(copy.add, rows)
            progress(copy.hash.rows)
    return copy


async def _groups(connection: Connection, wanted: Range) -> AsyncGenerator[list[EventRow]]:
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        cursor = await connection.cursor(QUERIES["piece"], wanted.id, wanted.first, wanted.end)
        group: list[EventRow] = []
        while rows := await cursor.fetch(min(_FETCH, GROUP - len(group))):
            group += rows
            if len(group) == GROUP:
                yield group
                group = []
        if group:
            yield group


class _Copy:
    """What the database gave."""

    def __init__(self, wanted: Range) -> None:
        self.wanted = wanted
        self.hash = RowsHash()
        self.first: EventRow | None = None
        self.last: EventRow | None = None
        self.times: list[dt.datetime] = []

    def add(self, rows: Sequence[EventRow]) -> None:
        """Take the next rows in."""
        self.hash.add(rows)
        self.first, self.last = self.first or rows[0], rows[-1]
        times = [row[_AT] for row in rows] + self.times
        self.times = [min(times), max(times)]

    def piece(self, events: PieceFile, streams: PieceFile) -> Piece:
        """The entry for the piece; ArchiveError if the database does not have all of it."""
        wanted = self.wanted
        first_position = max(wanted.first, 1)  # positions count from 1
        whole = wanted.end - first_position
        if (
            self.first is None
            or self.last is None
            or (self.first[POSITION], self.last[POSITION], self.hash.rows)
            != (first_position, wanted.end - 1, whole)
        ):
            raise ArchiveError(
                f"the database has {self.hash.rows} of the {whole} events of piece {wanted.piece} of {wanted.shard}: "
                f"it stays there. `kettle log check` tells which are missing."
            )
        return Piece(
            shard=wanted.shard,
            piece=wanted.piece,
            first_position=first_position,
            last_position=wanted.end - 1,
            first_frame=self.first[FRAME],
            last_frame=self.last[FRAME],
            first_at=self.times[0],
            last_at=self.times[1],
            rows_sha256=self.hash.hex(),
            events=events,
            streams=streams,
        )


def _keep(directory: Path, copy: _Copy, events: Path, streams: Path) -> Piece:
    """Compare the files with the database, and put them in place unless equal ones are there."""
    shard, number = copy.wanted.shard, copy.wanted.piece
    files = [
        described(shard, number, kind, path) for kind, path in (("events", events), ("streams", streams))
    ]
    piece = copy.piece(*files)
    read = RowsHash()
    for rows in read_events(events):
        read.add(rows)
    if read.hex() != piece.rows_sha256:
        raise ArchiveError(
            f"{piece}: what was read back has SHA-256 {read.hex()}, the database's rows {piece.rows_sha256}. "
            f"The disk below {directory} is not to be trusted; the piece stays in the database."
        )
    known = read_manifest(directory, shard).piece(number)
    if known is not None and known.rows_sha256 != piece.rows_sha256:
        raise ArchiveError(
            f"{directory / known.events.path} holds other events than {piece}: it is the archive of another "
            f"database. Give this one a directory of its own."
        )
    if known is not None and all(_is_there(directory, file) for file in (known.events, known.streams)):
        return known
    for path, file in zip((events, streams), files, strict=True):
        put_in_place(path, directory / file.path)
    add_to_manifest(directory, piece)
    return piece


def described(shard: str, number: int, kind: str, path: Path) -> PieceFile:
    """
    What there is to say of a file.

    The hash is part of the name, so nothing ever takes the place of a file that somebody relies on.
    """
    digest = sha256_of(path)
    name = f"{directory_of(shard)}/{number:06d}-{digest[:12]}.{kind}.parquet"
    return PieceFile(path=name, bytes=path.stat().st_size, sha256=digest)


def _is_there(directory: Path, file: PieceFile) -> bool:
    path = directory / file.path
    return path.is_file() and sha256_of(path) == file.sha256
