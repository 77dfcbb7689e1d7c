"""
Rebuilds the tables of a projection from the log, beside those in use, and swaps them in one transaction.

Readers and writers of the tables continue meanwhile, and afterwards with the new ones. The next rebuild drops what a
killed one leaves.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import msgspec

from kettle.eventsourcing.log import LogError, LogUnavailableError, ReadableLog
from kettle.eventsourcing.projection import Decoded, OvertakenError, decoded_events, grouped
from kettle.faults import fault_point
from kettle.projections.stored_projection import INDEXES, SCHEMA, StoredProjection, follows, statements
from kettle.storage import Database
from kettle.storage.cursors import move
from kettle.storage.database import ERRORS, Connection, is_away
from kettle.storage.queries import load
from kettle_wire.frames import Frame

T = TypeVar("T")

GROUP: Final = 20_000
"""Events in one transaction, about."""
NEAR: Final = 1_000
"""Frames that may be left for the transaction that swaps, which holds up those who fill the tables."""

QUERIES: Final = load(Path(__file__).parent / "sql" / "queries.sql")

Report: TypeAlias = Callable[[int, int], None]
"""Receives how many frames are applied, and how many there are so far."""


class RebuildError(LogError):
    """The tables cannot be rebuilt; those in use are unchanged."""


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild has done."""

    projection: str
    version: int
    shards: int
    frames: int
    events: int
    seconds: float


async def prepare(
    projection: StoredProjection,
    database: Database,
    logs: Sequence[ReadableLog],
    *,
    report: Report | None = None,
) -> Rebuilt | None:
    """
    Make the tables if there are none, rebuild them if an older release made them; None if they are right.

    Raises:
        RebuildError: a newer release made them, or another process is making them now.
    """
    version = await database.run(lambda c: c.fetchval(QUERIES["version"], projection.name))
    if version == projection.version:
        return None
    if version is not None and version > projection.version:
        raise RebuildError(
            f"the tables of {projection.name} are of version {version}, this release has {projection.version}: "
            f"start the newer release, or go back with `kettle log rebuild {projection.name}`"
        )
    return await rebuild(projection, database, logs, report=report)


async def rebuild(
    projection: StoredProjection,
    database: Database,
    logs: Sequence[ReadableLog],
    *,
    report: Report | None = None,
) -> Rebuilt:
    """
    Rebuild the tables from the first frame of each shard on, then swap.

    `projection` has applied nothing yet. `database` has the tables, `logs` all shards that they follow.

    Raises:
        RebuildError: another rebuild is under way, a shard is in none of the logs, or an event cannot be applied.
        LogUnavailableError: the database connection was lost; start again.
    """
    began = time.monotonic()
    try:
        async with _alone(database, projection.name) as connection:
            work = _Rebuilding(projection, connection, await _sources(projection, connection, logs), report)
            await work.run()
    except ERRORS as error:
        if is_away(error):
            raise LogUnavailableError(
                f"PostgreSQL went away while {projection.name} was rebuilt; begin again: {error}"
            ) from error
        raise
    return Rebuilt(
        projection=projection.name,
        version=projection.version,
        shards=len(work.cursors),
        frames=sum(work.cursors.values()),
        events=work.events,
        seconds=time.monotonic() - began,
    )


@asynccontextmanager
async def _alone(database: Database, name: str) -> AsyncGenerator[Connection, None]:
    """
    A connection that holds the lock on rebuilds of a projection. It ends with its connection, however that ends.
    """
    async with database.connection() as connection:
        if not await connection.fetchval(QUERIES["begin_alone"], name):
            raise RebuildError(f"{name} is being rebuilt by somebody else; wait until that has ended")
        try:
            if owner := await connection.fetchval(QUERIES["owner"], name):
                await connection.execute(QUERIES["become"], owner)
            yield connection
            await connection.execute("RESET search_path; RESET role")
            await connection.fetchval(QUERIES["end_alone"], name)
        except BaseException:
            connection.terminate()
            raise


async def _sources(
    projection: StoredProjection, connection: Connection, logs: Sequence[ReadableLog]
) -> dict[str, ReadableLog]:
    """Which log has which shard."""
    found = await shards_of(projection, logs)
    rows = await connection.fetch(QUERIES["followed"], projection.name)
    if missing := sorted({str(row["shard"]) for row in rows} - found.keys()):
        raise RebuildError(
            f"the tables of {projection.name} follow {', '.join(missing)}, in none of the databases given: name the "
            f"one that has it, as the setting `databases` of accounting does"
        )
    return found


async def shards_of(projection: StoredProjection, logs: Sequence[ReadableLog]) -> dict[str, ReadableLog]:
    """The shards that a projection follows, each with its log; that of the first one that has it."""
    found: dict[str, ReadableLog] = {}
    for log in logs:
        for tenure in await log.shards():
            if follows(projection, tenure.shard):
                found.setdefault(tenure.shard, log)
    return found


async def groups(frames: AsyncIterator[Frame]) -> AsyncGenerator[list[Decoded], None]:
    """Frames with their events, as many as one transaction takes."""
    async for group in grouped(frames, most_frames=GROUP, most_events=GROUP):
        yield [decoded_events(frame) for frame in group]


async def ahead(items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield the items; the next one is made while the caller processes one."""
    async with aclosing(items):
        coming = asyncio.ensure_future(anext(items, None))
        try:
            while (item := await coming) is not None:
                coming = asyncio.ensure_future(anext(items, None))
                yield item
        finally:
            if coming.cancel():
                await asyncio.wait({coming})


class _Rebuilding:
    def __init__(
        self,
        projection: StoredProjection,
        connection: Connection,
        sources: dict[str, ReadableLog],
        report: Report | None,
    ) -> None:
        self._projection = projection
        self._connection = connection
        self._sources = sources
        self._report = report
        self._name = projection.name
        self._next = f"{projection.name}_next"
        self._old = f"{projection.name}_old"
        self.cursors = dict.fromkeys(sources, 0)
        self.events = 0

    async def run(self) -> None:
        await self._drop_leavings()
        await self._make()
        await self._catch_up(near=0)
        await self._index()
        fault_point("rebuild.filled")
        while await self._catch_up(near=NEAR) > NEAR:
            pass
        await self._swap()
        fault_point("rebuild.swapped")
        await self._connection.execute(f'DROP SCHEMA IF EXISTS "{self._old}" CASCADE')

    async def _drop_leavings(self) -> None:
        async with self._connection.transaction():
            for query in ("forget_version", "forget_cursors"):
                await self._connection.execute(QUERIES[query], self._next)
            for schema in (self._next, self._old):
                await self._connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')

    async def _make(self) -> None:
        async with self._connection.transaction():
            await self._connection.execute(f'CREATE SCHEMA "{self._next}"')
            await self._connection.execute(QUERIES["search_path"], f'"{self._next}"')
            await self._connection.execute(statements(self._projection, SCHEMA))
            await self._connection.execute(QUERIES["note_version"], self._next, self._projection.version)

    async def _index(self) -> None:
        async with self._connection.transaction():
            await self._connection.execute(QUERIES["search_path"], f'"{self._next}"')
            await self._connection.execute(statements(self._projection, INDEXES))
        for row in await self._connection.fetch(QUERIES["tables"], self._next):
            await self._connection.execute(f'ANALYZE "{self._next}"."{row["name"]}"')

    async def _catch_up(self, *, near: int) -> int:
        """Apply what the logs have by now; returns how many frames that were."""
        heads = {t.shard: t.frame for log in set(self._sources.values()) for t in await log.shards()}
        applied = 0
        for shard, log in self._sources.items():
            total = sum(heads[known] for known in self._sources)
            frames = log.read(shard, after=self.cursors[shard], until=heads[shard])
            async for decoded in ahead(groups(frames)):
                async with self._connection.transaction():
                    # The swap is committed durably, and with it all that was written before.
                    await self._connection.execute("SET LOCAL synchronous_commit TO off")
                    await self._apply(shard, decoded)
                applied += len(decoded)
                if self._report is not None:
                    self._report(sum(self.cursors.values()), total)
        return applied

    async def _apply(self, shard: str, decoded: list[Decoded]) -> None:
        now = decoded[-1][0].number
        try:
            await move(
                self._connection,
                self._next,
                self._projection.version,
                shard,
                was=self.cursors[shard],
                now=now,
            )
            await self._projection.apply(self._connection, decoded)
        except OvertakenError as error:
            raise RebuildError(f"{self._name}: another rebuild has taken the place of this one") from error
        except ERRORS:
            raise
        except Exception as error:
            raise RebuildError(
                f"{self._name}: frames {decoded[0][0].number} to {now} of {shard} cannot be applied: {error}"
            ) from error
        self.cursors[shard] = now
        self.events += sum(len(events) for _, events in decoded)

    async def _swap(self) -> None:
        connection = self._connection
        async with connection.transaction():
            for query in ("hold_version", "hold_cursors"):
                await connection.fetch(QUERIES[query], self._name)
            for shard, log in self._sources.items():
                async for frames in grouped(log.read(shard, after=self.cursors[shard])):
                    await self._apply(shard, [decoded_events(frame) for frame in frames])
            for query in ("forget_version", "forget_cursors"):
                await connection.execute(QUERIES[query], self._name)
            for query in ("rename_version", "rename_cursors"):
                await connection.execute(QUERIES[query], self._next, self._name)
            if await connection.fetchval(QUERIES["has_schema"], self._name):
                await connection.execute(f'ALTER SCHEMA "{self._name}" RENAME TO "{self._old}"')
            await connection.execute(f'ALTER SCHEMA "{self._next}" RENAME TO "{self._name}"')
