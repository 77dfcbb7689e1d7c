"""
What the audit reads from the database: all of it from one snapshot, so that a pool may go on meanwhile.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import asyncpg

from kettle.audit.walk import Stored
from kettle.eventsourcing.log import Row, Tenure
from kettle.wire.frames import Entry

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_PAGE_ROWS: Final = 2_000
_CONNECT_S: Final = 10.0

_SHARDS: Final = "SELECT id, name, epoch, owner, head, frame FROM log.shard ORDER BY name"
_EVENTS: Final = """
SELECT pos, frame, epoch, at, stream, ver, type, data, meta FROM log.event
 WHERE shard = $1 AND frame > $2 ORDER BY frame, pos
"""
_CURSOR: Final = "SELECT max(frame) FROM log.projection WHERE name = $1 AND shard = $2"
_WORKING_SET: Final = "SELECT stream, ver, state FROM log.working_set WHERE shard = $1"


class Snapshot:
    """
    The log as it was at one moment.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._ids: dict[str, int] = {}

    async def shards(self) -> list[Tenure]:
        """
        All shards, by name.
        """
        rows = await self.connection.fetch(_SHARDS)
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

    async def events(self, shard: str, *, after: int) -> AsyncGenerator[Stored, None]:
        """
        The rows of a shard after a frame, in order.
        """
        async for r in self.connection.cursor(_EVENTS, self._ids[shard], after, prefetch=_PAGE_ROWS):
            at = (r["at"] - _EPOCH) // _MICROSECOND
            entry = Entry(r["stream"], r["ver"], r["type"], r["data"], r["meta"])
            yield Stored(r["pos"], r["frame"], r["epoch"], at, entry)

    async def cursor(self, projection: str, shard: str) -> int | None:
        """
        How far a projection has come; None if it has not begun.
        """
        frame: int | None = await self.connection.fetchval(_CURSOR, projection, self._ids[shard])
        return frame

    async def working_set(self, shard: str) -> dict[str, Row]:
        """
        The rows of a shard's working set.
        """
        rows = await self.connection.fetch(_WORKING_SET, self._ids[shard])
        return {row["stream"]: Row(row["stream"], row["ver"], row["state"]) for row in rows}

    async def has(self, table: str) -> bool:
        """
        Whether there is such a table.
        """
        return await self.connection.fetchval("SELECT to_regclass($1)", table) is not None


@asynccontextmanager
async def snapshot(dsn: str) -> AsyncGenerator[Snapshot, None]:
    """
    Connect and read as of now, as long as the context lasts. Errors are asyncpg's.
    """
    connection = await asyncpg.connect(
        dsn, timeout=_CONNECT_S, server_settings={"application_name": "kettle audit"}
    )
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            yield Snapshot(connection)
    finally:
        connection.terminate()
