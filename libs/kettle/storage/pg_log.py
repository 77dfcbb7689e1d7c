"""
The event log in PostgreSQL: an append is one guarded statement, and its lost answer is resolved by repeating it.
"""

import datetime as dt
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import asyncpg

from kettle.eventsourcing.log import (
    IMPORTED,
    Answered,
    FencedError,
    LogError,
    StoredEvent,
    Tenure,
    not_taken,
)
from kettle.storage.archived_pieces import Archives, EventRow, NoArchives, Stretch
from kettle.storage.database import Connection, Database
from kettle.storage.event_reader import PAGE_ROWS, ShardKey, events, stream_of
from kettle.storage.migration import migrate
from kettle.storage.queries import QUERIES
from kettle_wire.event_expansion import stream_of_many, with_those_of_many
from kettle_wire.frames import Entry, Frame

PIECE: Final = 1 << 24
"""Positions in a piece of a new shard's events."""
AHEAD: Final = 1 << 22
"""The next piece is made when the head is this near to it; a quarter of a piece if that is less."""
WORKING_SET_VERSION: Final = 1

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


class PgLog:
    """Holds no state but the ids of shards; every guard is in the database."""

    def __init__(
        self, database: Database, *, archives: Archives | None = None, piece_events: int = PIECE
    ) -> None:
        """
        `archives` reads the pieces that are not in the database any more; `piece_events` is for shards yet to be made.
        """
        self.database = database
        self._archives = archives or NoArchives()
        self._piece_events = piece_events
        self._keys: dict[str, ShardKey] = {}
        self._pieces: dict[str, int] = {}
        self._observe: Callable[[float, int], None] | None = None

    def observe_by(self, observe: Callable[[float, int], None]) -> None:
        """Tell this, from now on, of each append: the seconds that it took, and how many events it has."""
        self._observe = observe

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        dsn: str,
        *,
        patience: float | None = None,
        archives: Archives | None = None,
        piece_events: int = PIECE,
    ) -> AsyncGenerator["PgLog", None]:
        """Connect and bring the schema up to date, waiting up to `patience` seconds (None: without limit)."""
        async with Database.connect(dsn, patience=patience) as database:
            # Older services may still run: what they cannot work with is for the master, or `kettle upgrade finish`.
            await database.run(partial(migrate, stages=("pre",)))
            yield cls(database, archives=archives, piece_events=piece_events)

    async def take(self, shard: str, *, owner: str) -> Tenure:
        """See `Log.take`. The working set's cursor changes hands in the same transaction."""

        async def attempt(connection: Connection) -> asyncpg.Record:
            async with connection.transaction():
                row = (
                    await connection.fetchrow(QUERIES["raise_epoch"], shard, owner, IMPORTED)
                    or await connection.fetchrow(QUERIES["make_shard"], shard, owner, self._piece_events)
                    or await connection.fetchrow(QUERIES["raise_epoch"], shard, owner, IMPORTED)
                )
                if row is None:  # a shard is never deleted
                    raise not_taken(shard, owner)
                await connection.execute(
                    QUERIES["fence_working_set"], row["id"], row["epoch"], WORKING_SET_VERSION
                )
                key = _key(row)
                await connection.execute(
                    QUERIES["make_pieces"],
                    key.id,
                    (row["head"] + 1) // key.piece_events,
                    _ahead(key, row["head"]),
                )
                return row

        row = await self.database.run(attempt)
        key = self._keys[shard] = _key(row)
        self._pieces[shard] = _ahead(key, row["head"])
        return _tenure(row)

    async def append(self, frame: Frame, answers: Sequence[Answered] = ()) -> None:
        """See `Log.append`."""
        began = time.monotonic()
        key = await self._key(frame.shard)
        query, arguments = _statement(key.id, frame, answers)
        if frame.head // key.piece_events > self._pieces.get(frame.shard, 0):
            await self._make_room(key, frame)
        attempts = 0

        async def attempt(connection: Connection) -> Any:
            nonlocal attempts
            attempts += 1
            return await connection.fetchval(query, *arguments)

        written = await self.database.run(attempt)
        if not written and not (attempts > 1 and await self._is_committed(frame)):
            raise FencedError(await self._why(frame))
        if self._observe is not None:
            self._observe(time.monotonic() - began, len(frame.entries))
        if _ahead(key, frame.head) > self._pieces.get(frame.shard, 0):
            await self._make_room(key, frame)

    async def tenure(self, shard: str) -> Tenure | None:
        """See `Log.tenure`."""
        row = await self.database.run(lambda c: c.fetchrow(QUERIES["shard"], shard))
        return _tenure(row) if row else None

    async def shards(self) -> list[Tenure]:
        """See `Log.shards`."""
        return [_tenure(row) for row in await self.database.run(lambda c: c.fetch(QUERIES["shards"]))]

    async def read(self, shard: str, *, after: int = 0, until: int | None = None) -> AsyncIterator[Frame]:
        """See `Log.read`."""
        tenure = await self.tenure(shard)
        if tenure is None:
            return
        last = tenure.frame if until is None else min(until, tenure.frame)
        unfinished: Stretch | None = None
        key = await self._key(shard)
        async for page in events(self.database, self._archives, key, after=after, until=last):
            for stretch in page:
                if unfinished is not None and unfinished.frame == stretch.frame:
                    unfinished.entries.extend(stretch.entries)
                    continue
                if unfinished is not None:
                    yield _frame(shard, unfinished)
                unfinished = stretch
        if unfinished is not None:
            yield _frame(shard, unfinished)

    async def stream(self, shard: str, stream: str) -> list[tuple[Frame, int]]:
        """See `Log.stream`."""
        if await self.tenure(shard) is None:
            return []
        key, other = await self._key(shard), stream_of_many(stream)
        rows = await stream_of(self.database, self._archives, key, stream)
        own = [_single(shard, row) for row in rows]
        if other is None:
            return own
        together = [_single(shard, row) for row in await stream_of(self.database, self._archives, key, other)]
        return with_those_of_many(own, together, stream)

    async def answers(self, shard: str, *, newest: int) -> list[Answered]:
        """See `Log.answers`."""
        if await self.tenure(shard) is None:
            return []
        number = (await self._key(shard)).id
        rows = await self.database.run(lambda c: c.fetch(QUERIES["answers"], number, newest))
        return [Answered(id=row["id"], frame=row["frame"], reply=row["reply"]) for row in reversed(rows)]

    async def forget_answers(self, shard: str, *, keep: int) -> None:
        """See `Log.forget_answers`. Answers of the same frame are kept or dropped together."""
        number = (await self._key(shard)).id
        await self.database.run(lambda c: c.execute(QUERIES["forget_answers"], number, max(keep, 1)))

    async def _key(self, shard: str) -> ShardKey:
        if shard not in self._keys:
            row = await self.database.run(lambda c: c.fetchrow(QUERIES["shard"], shard))
            if row is None:
                raise FencedError(f"there is no shard {shard}: nobody took it")
            self._keys[shard] = _key(row)
        return self._keys[shard]

    async def _is_committed(self, frame: Frame) -> bool:
        """
        An attempt whose answer was lost did write: under our epoch nobody else can have moved the head there.
        """
        now = await self.tenure(frame.shard)
        number = frame.number if frame.entries else frame.number - 1
        return now is not None and (now.epoch, now.frame, now.head) == (frame.epoch, number, frame.head)

    async def _why(self, frame: Frame) -> str:
        now = await self.tenure(frame.shard)
        if now is not None and now.epoch != frame.epoch:
            return (
                f"{frame.shard} belongs to {now.owner} now, in epoch {now.epoch}; "
                f"frame {frame.number} of epoch {frame.epoch} was not written"
            )
        return (
            f"{frame.shard}: frame {frame.number} of epoch {frame.epoch} at position {frame.position} "
            f"does not follow what the database has: {now}"
        )

    async def _make_room(self, key: ShardKey, frame: Frame) -> None:
        first, last = frame.position // key.piece_events, _ahead(key, frame.head)
        await self.database.run(lambda c: c.execute(QUERIES["make_pieces"], key.id, first, last))
        self._pieces[frame.shard] = last


def _key(row: asyncpg.Record) -> ShardKey:
    return ShardKey(row["id"], row["name"], row["piece_events"])


def _ahead(key: ShardKey, head: int) -> int:
    """The newest piece that is to be there when the head is where it is."""
    return (head + min(AHEAD, key.piece_events // 4)) // key.piece_events


def _statement(shard: int, frame: Frame, answers: Sequence[Answered]) -> tuple[str, tuple[object, ...]]:
    if len(frame.entries) > AHEAD:
        raise LogError(f"{frame.shard}: a frame of {len(frame.entries)} events; the most is {AHEAD}")
    guard = (shard, frame.epoch, frame.number, frame.position, _EPOCH + frame.at * _MICROSECOND)
    stored = ([a.id for a in answers], [a.reply for a in answers])
    if not frame.entries:
        return QUERIES["answer"], (*guard, *stored)
    entries = frame.entries
    columns = (
        [e.stream for e in entries],
        [e.version for e in entries],
        [e.type for e in entries],
        [e.data for e in entries],
        [e.meta for e in entries],
    )
    return QUERIES["append"], (*guard, *columns, *stored)


def _tenure(row: asyncpg.Record) -> Tenure:
    return Tenure(
        shard=row["name"], epoch=row["epoch"], owner=row["owner"], head=row["head"], frame=row["frame"]
    )


def _frame(shard: str, whole: Stretch) -> Frame:
    at = (whole.at - _EPOCH) // _MICROSECOND
    return Frame(shard, whole.epoch, whole.frame, whole.position, at, whole.entries)


def _single(shard: str, row: EventRow) -> tuple[Frame, int]:
    number, position, epoch, version, at, stream, kind, data, meta = row
    entry = Entry(stream, version, kind, data, meta)
    return _frame(shard, Stretch(number, epoch, at, position, [entry])), position


class PgWorkingSet:
    """
    The working sets of all shards of one database. `take` hands the cursor to the new owner, so a stale one saves
    nothing, also if it was paused in the middle.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, shard: str) -> tuple[int, list[StoredEvent]]:
        """See `WorkingSet.load`: cursor and rows from one snapshot."""

        async def attempt(connection: Connection) -> tuple[int, list[StoredEvent]]:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                at = await connection.fetchval(QUERIES["cursor"], "working_set", WORKING_SET_VERSION, shard)
                cursor = connection.cursor(QUERIES["working_set"], shard, prefetch=PAGE_ROWS)
                return at or 0, [StoredEvent(r["stream"], r["ver"], r["state"]) async for r in cursor]

        return await self._database.run(attempt)

    async def save(
        self, shard: str, *, epoch: int, was: int, now: int, put: Sequence[StoredEvent], drop: Sequence[str]
    ) -> None:
        """See `WorkingSet.save`."""
        attempts = 0

        async def attempt(connection: Connection) -> bool:
            nonlocal attempts
            attempts += 1
            row = await connection.fetchrow(QUERIES["shard"], shard)
            if row is None:
                return False
            columns = ([r.stream for r in put], [r.version for r in put], [r.state for r in put], list(drop))
            moved = await connection.fetchval(
                QUERIES["save_working_set"], row["id"], WORKING_SET_VERSION, epoch, was, now, *columns
            )
            if not moved and attempts > 1 and row["epoch"] == epoch:
                at = await connection.fetchval(QUERIES["cursor"], "working_set", WORKING_SET_VERSION, shard)
                return bool(at == now)  # an attempt whose answer was lost did write
            return bool(moved)

        if not await self._database.run(attempt):
            raise FencedError(f"{shard}: the working set is not at frame {was} of epoch {epoch} any more")
