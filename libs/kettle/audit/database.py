"""What the audit reads from databases: of each, all from one snapshot, so that a pool may go on meanwhile."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import asyncpg
import msgspec

from kettle.audit.event_checks import Recorded
from kettle.eventsourcing.log import StoredEvent, Tenure
from kettle.projections import PROJECTIONS, StoredProjection, follows
from kettle.storage.archived_pieces import FRAME, POSITION, Archives, EventRow, Piece, piece_of
from kettle.storage.queries import QUERIES
from kettle_wire.event_expansion import of_stream, stream_of_many
from kettle_wire.frames import Entry

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_PAGE_ROWS: Final = 2_000
_CONNECT_S: Final = 10.0
_BEYOND: Final = 1 << 62

_SHARDS: Final = "SELECT id, name, epoch, owner, head, frame FROM log.shard ORDER BY name"
_HOLD: Final = "LOCK TABLE log.event IN ACCESS SHARE MODE"
"""
Before the snapshot is taken: a piece that was dropped after it would be in the table no more and in the archive not yet.
"""
_EVENTS: Final = """
SELECT frame, pos, epoch, ver, at, stream, type, data, meta FROM log.event
 WHERE shard = $1 AND frame > $2 ORDER BY frame, pos
"""
_STREAM: Final = """
SELECT pos FROM log.event WHERE shard = $1 AND stream = $2 AND frame <= $3 ORDER BY ver DESC LIMIT 1
"""
_TOGETHER: Final = "SELECT pos, type, data FROM log.event WHERE shard = $1 AND stream = $2 AND frame <= $3"
_BEGINNINGS: Final = (
    "SELECT count(*) FROM log.event WHERE shard = $1 AND ver = 1 AND stream NOT SIMILAR TO 'jobs?/%'"
)
_CURSOR: Final = "SELECT max(frame) FROM log.projection WHERE name = $1 AND shard = $2"
_WORKING_SET: Final = "SELECT stream, ver, state FROM log.working_set WHERE shard = $1"
_USAGE: Final = (
    "SELECT owner, jobs_completed, attempts, wall, slot_time, cpu FROM jobs.usage WHERE shard = $1"
)


class Snapshot:
    """The log as it was at one moment."""

    def __init__(self, connection: Connection, archives: Archives) -> None:
        self._connection = connection
        self._archives = archives
        self._ids: dict[str, int] = {}

    async def shards(self) -> list[Tenure]:
        """All shards, by name."""
        rows = await self._connection.fetch(_SHARDS)
        self._ids = {row["name"]: row["id"] for row in rows}
        return [
            Tenure(
                shard=row["name"],
                epoch=row["epoch"],
                owner=row["owner"],
                head=row["head"],
                frame=row["frame"],
            )
            for row in rows
        ]

    async def events(self, shard: str, *, after: int) -> AsyncGenerator[Recorded, None]:
        """
        The rows of a shard after a frame, in order, from archived pieces and from the table.

        LogError: a file of the archive is not what it has to be.
        """
        for piece in await self._pieces(shard, after=after):
            async for rows in self._archives.events(piece, after=(after, _BEYOND), until=_BEYOND):
                for row in rows:
                    yield _recorded(row)
        async for row in self._connection.cursor(_EVENTS, self._ids[shard], after, prefetch=_PAGE_ROWS):
            yield _recorded(row)

    async def last_of_stream(self, shard: str, stream: str, *, until: int) -> int:
        """The position of the last event of a stream, up to a frame; 0: there is none."""
        if (other := stream_of_many(stream)) is not None and (
            found := await self._last_of_many(shard, stream, other, until)
        ):
            return max(found, await self._last_of(shard, stream, until))
        return await self._last_of(shard, stream, until)

    async def _last_of_many(self, shard: str, stream: str, other: str, until: int) -> int:
        """The last event of many jobs that is one of this job, too."""
        rows = [
            (row["pos"], Entry(other, 1, row["type"], row["data"]))
            for row in await self._connection.fetch(_TOGETHER, self._ids[shard], other, until)
        ]
        for piece in await self._pieces(shard, after=0):
            archived = await self._archives.stream(piece, other)
            rows += [(row[POSITION], _recorded(row).entry) for row in archived if row[FRAME] <= until]
        return max((position for position, entry in rows if of_stream(entry, stream) is not None), default=0)

    async def _last_of(self, shard: str, stream: str, until: int) -> int:
        position = await self._connection.fetchval(_STREAM, self._ids[shard], stream, until)
        if position is not None:
            return int(position)
        for piece in reversed(await self._pieces(shard, after=0)):
            rows = [row for row in await self._archives.stream(piece, stream) if row[FRAME] <= until]
            if rows:
                return int(rows[-1][POSITION])
        return 0

    async def beginnings(self, shard: str) -> int:
        """About how many clusters, claims, machines and cycles there are: those that begin in the table."""
        return int(await self._connection.fetchval(_BEGINNINGS, self._ids[shard]))

    async def cursor(self, projection: str, shard: str) -> int | None:
        """How far a projection has come; None if it has not begun."""
        frame: int | None = await self._connection.fetchval(_CURSOR, projection, shard)
        return frame

    async def working_set(self, shard: str) -> dict[str, StoredEvent]:
        """The rows of a shard's working set."""
        rows = await self._connection.fetch(_WORKING_SET, self._ids[shard])
        return {row["stream"]: StoredEvent(row["stream"], row["ver"], row["state"]) for row in rows}

    async def _pieces(self, shard: str, *, after: int) -> list[Piece]:
        rows = await self._connection.fetch(QUERIES["archived"], self._ids[shard], 0, after + 1)
        return [piece_of(row) for row in rows]


class Where(msgspec.Struct, frozen=True):
    """How far a projection has come in a shard."""

    version: int
    """Of its tables."""
    frame: int
    error: str | None
    """Why it does not come further."""


class Tables:
    """The tables of projections as they were at one moment, and room for temporary ones."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def projections(self, shard: str) -> list[StoredProjection]:
        """Those that follow a shard and have tables here."""
        rows = await self.connection.fetch(QUERIES["tables_of"])
        named = {str(row["name"]) for row in rows}
        made = [make() for name, make in PROJECTIONS.items() if name in named]
        return [projection for projection in made if follows(projection, shard)]

    async def place(self, projection: str, shard: str) -> Where:
        """How far one of them has come."""
        row = await self.connection.fetchrow(QUERIES["place"], projection, shard)
        assert row is not None, "it has tables"
        return Where(row["version"], row["frame"], row["error"])

    async def usage(self, shard: str) -> list[tuple[str, Sequence[int]]]:
        """By owner: jobs completed, attempts, and microseconds of wall-clock, slot and processor time."""
        rows = await self.connection.fetch(_USAGE, shard)
        return [(row["owner"], list(row.values())[1:]) for row in rows]

    async def seal(self) -> None:
        """From now on nothing but temporary tables can be written."""
        await self.connection.execute("SET TRANSACTION READ ONLY")


@asynccontextmanager
async def snapshot(dsn: str, archives: Archives) -> AsyncGenerator[Snapshot, None]:
    """Connect and read as of now, as long as the context lasts. Errors are asyncpg's."""
    async with (
        _connected(dsn) as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        await connection.execute(_HOLD)
        yield Snapshot(connection, archives)


@asynccontextmanager
async def tables(dsn: str) -> AsyncGenerator[Tables, None]:
    """Check the tables of projections in the same way."""
    async with (
        _connected(dsn, temp_buffers="64MB") as connection,
        connection.transaction(isolation="repeatable_read"),
    ):
        yield Tables(connection)


@asynccontextmanager
async def _connected(dsn: str, **settings: str) -> AsyncGenerator[Connection, None]:
    connection = await asyncpg.connect(
        dsn,
        timeout=_CONNECT_S,
        server_settings={"application_name": "kettle audit", "jit": "off", **settings},
    )
    try:
        yield connection
    finally:
        connection.terminate()


def _recorded(row: EventRow) -> Recorded:
    frame, position, epoch, version, at, stream, kind, data, meta = row
    return Recorded(
        position, frame, epoch, (at - _EPOCH) // _MICROSECOND, Entry(stream, version, kind, data, meta)
    )
