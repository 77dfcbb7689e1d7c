"""Moves old pieces of the log from the database to files, and drops them behind the slowest cursor."""

import datetime as dt
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg

from kettle.archive.errors import ArchiveError, ArchiverBusyError
from kettle.archive.parquet import arrow
from kettle.archive.piece_writer import Range, write_piece
from kettle.archive.report import ArchivedPiece, Progress, Report, ShardReport, SlowestCursor, Why
from kettle.eventsourcing.log import LogUnavailableError
from kettle.faults import fault_point
from kettle.retry.deadline import Deadline
from kettle.retry.loop import Waits
from kettle.storage.archived_pieces import Piece, columns_of
from kettle.storage.database import ERRORS, Connection, Database, is_away
from kettle.storage.queries import QUERIES

PATIENCE_S: Final = 60.0
"""How long a drop waits for those who read the piece."""

_LOCK: Final = "SET LOCAL lock_timeout = '100ms'"
"""Appends to the shard wait behind a drop that waits for its lock: no longer than this at a time."""
_LONG_S: Final = 24 * 3600.0
"""For queries that look at every event of a piece."""

_log = logging.getLogger(__name__)


async def archive(
    database: Database,
    directory: Path,
    *,
    older_than: dt.datetime,
    cursors: Sequence[Database] = (),
    shards: Collection[str] | None = None,
    dry_run: bool = False,
    progress: Callable[[Progress], None] = lambda _: None,
    patience: float = PATIENCE_S,
) -> Report:
    """
    Move every piece whose events are all older than a moment and behind every cursor, oldest first.

    Args:
        database: the database with the log.
        directory: the archive directory, which all readers of the log share.
        older_than: pieces with an event at or after it stay.
        cursors: further databases in which projections keep how far they have come in these shards.
        shards: the names of the shards to look at; None: all.
        dry_run: say what would be done, and do nothing.
        progress: called after each group of events that is written.
        patience: how many seconds to wait for those who are reading a piece that is to be dropped.

    Whatever interrupts it, each piece is in the database or in the archive, and the next call goes on.

    Raises:
        ArchiverBusyError: another archiver works on this database.
        ArchiveError: pyarrow is missing, or the files cannot be written or are not equal to the database.
        LogUnavailableError: the database went away.
    """
    arrow()
    report = Report(dry_run=dry_run, older_than=older_than)
    try:
        async with _alone(database) as connection:
            for row in await connection.fetch(QUERIES["archivable"]):
                if shards is None or row["name"] in shards:
                    others = [other for other in cursors if other is not database]
                    archiver = _Archiver(connection, others, directory, row, report, progress, patience)
                    report.shards.append(await archiver.run())
    except ERRORS as error:
        if is_away(error):
            raise LogUnavailableError(f"PostgreSQL is away: {error}") from error
        raise
    return report


@asynccontextmanager
async def _alone(database: Database) -> AsyncGenerator[Connection]:
    """
    A connection that holds the lock of archivers, and on which everything is done: without it nothing is.
    """
    async with database.connection() as connection:
        if not await connection.fetchval(QUERIES["archive_lock"]):
            raise ArchiverBusyError("another archiver is at work on this database; try again when it is done")
        try:
            yield connection
        finally:
            await _let_go(connection)


async def _let_go(connection: Connection) -> None:
    """
    Give the lock back. A connection that cannot do so is ended: back in the pool, it would lock all others out.
    """
    if connection.is_closed():
        return
    try:
        await connection.execute(QUERIES["archive_unlock"])
    except BaseException:
        connection.terminate()
        raise


class _Archiver:
    """The archiver of one shard."""

    def __init__(
        self,
        connection: Connection,
        others: Sequence[Database],
        directory: Path,
        row: asyncpg.Record,
        report: Report,
        progress: Callable[[Progress], None],
        patience: float,
    ) -> None:
        self._connection = connection
        self._others = others
        self._directory = directory
        self._id: int = row["id"]
        self._shard: str = row["name"]
        self._head: int = row["head"]
        self._frame: int = row["frame"]
        self._size: int = row["piece_events"]
        self._piece: int = row["piece"]
        self._report = report
        self._progress = progress
        self._patience = patience
        self._archived: list[ArchivedPiece] = []
        self._slowest: SlowestCursor | None = None

    async def run(self) -> ShardReport:
        """Piece by piece, as long as the next one may go."""
        while True:
            wanted = Range(
                id=self._id,
                shard=self._shard,
                piece=self._piece,
                first=self._piece * self._size,
                end=(self._piece + 1) * self._size,
            )
            kept = await self._why_not(wanted)
            if kept is None:
                kept = await self._move(wanted)
            if kept is not None:
                why, because = kept
                return ShardReport(
                    shard=self._shard,
                    archived=self._archived,
                    kept=why,
                    because=f"piece {wanted.piece} {because}",
                    slowest=self._slowest,
                )
            self._piece += 1

    async def _why_not(self, wanted: Range) -> tuple[Why, str] | None:
        """Why a piece has to stay; None if it may go."""
        query = self._connection.fetchrow
        self._slowest = await self._look_at_cursors()
        if wanted.end > self._head:
            return "newest", "is the newest: it always stays"
        span = (wanted.id, wanted.first, wanted.end)
        last = await query(QUERIES["last_of_piece"], *span)
        if last is None:
            raise ArchiveError(
                f"{self._shard}: the database has nothing of piece {wanted.piece}, and no archive of it is recorded"
            )
        limit = self._report.older_than
        if last["at"] >= limit:
            return (
                "young",
                f"has events of {last['at']:%Y-%m-%d %H:%M:%S} UTC, which is not before {limit:%Y-%m-%d %H:%M:%S}",
            )
        if self._slowest is not None and self._slowest.frame < last["frame"]:
            return (
                "needed",
                f"ends with frame {last['frame']}, which {self._slowest.projection} has not seen: {self._slowest}",
            )
        newest = await self._connection.fetchval(QUERIES["newest_in_piece"], *span, timeout=_LONG_S)
        if newest >= limit:
            return (
                "young",
                f"has an event of {newest:%Y-%m-%d %H:%M:%S} UTC, which is not before {limit:%Y-%m-%d %H:%M:%S}",
            )
        if self._report.dry_run:
            self._note(wanted, last["frame"], newest, 0)
        return None

    async def _look_at_cursors(self) -> SlowestCursor | None:
        query, shard = QUERIES["slowest_cursor"], self._shard
        rows = [await self._connection.fetchrow(query, shard)]
        rows += [await other.run(lambda c: c.fetchrow(query, shard)) for other in self._others]
        found = [row for row in rows if row is not None]
        if not found:
            return None
        row = min(found, key=lambda row: int(row["frame"]))
        return SlowestCursor(
            projection=row["name"],
            version=row["version"],
            frame=row["frame"],
            behind=max(0, self._frame - row["frame"]),
            error=row["error"],
        )

    async def _move(self, wanted: Range) -> tuple[Why, str] | None:
        if self._report.dry_run:
            return None
        total = wanted.end - max(wanted.first, 1)

        def progress(events: int) -> None:
            self._progress(Progress(shard=self._shard, piece=wanted.piece, events=events, total=total))

        piece = await write_piece(self._connection, self._directory, wanted, progress=progress)
        fault_point("archive.written")
        if (kept := await self._drop(wanted, piece)) is not None:
            return kept
        fault_point("archive.dropped")
        self._note(wanted, piece.last_frame, piece.last_at, piece.events.bytes + piece.streams.bytes)
        _log.info("%s is in the archive alone", piece)
        return None

    async def _drop(self, wanted: Range, piece: Piece) -> tuple[Why, str] | None:
        """
        Record and drop in one transaction, as soon as nothing reads the piece; returns why not, if that is impossible.
        """
        waits, deadline = Waits(), Deadline(self._patience)
        while True:
            try:
                async with self._connection.transaction():
                    self._slowest = await self._look_at_cursors()
                    if self._slowest is not None and self._slowest.frame < piece.last_frame:
                        return "needed", f"is needed since a moment ago: {self._slowest}"
                    await self._connection.execute(_LOCK)
                    await self._connection.execute(QUERIES["note_archived"], wanted.id, *columns_of(piece))
                    await self._connection.execute(QUERIES["drop_piece"], wanted.id, wanted.piece)
                return None
            except asyncpg.LockNotAvailableError:
                if deadline.passed:
                    return "read", "is being read by a long transaction; it goes when that is over"
                await waits.wait()

    def _note(self, wanted: Range, frame: int, at: dt.datetime, size: int) -> None:
        self._archived.append(
            ArchivedPiece(
                piece=wanted.piece,
                first_position=max(wanted.first, 1),
                last_position=wanted.end - 1,
                last_frame=frame,
                last_at=at,
                bytes=size,
            )
        )
