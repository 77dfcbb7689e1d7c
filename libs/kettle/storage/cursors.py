"""
The cursors of projections in PostgreSQL, moved in the transaction that writes their rows.

The tables of a projection are in the schema of its name, which is the whole search path of such a transaction.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kettle.eventsourcing.log import LogUnavailableError
from kettle.eventsourcing.projection import OvertakenError, SupersededError, Tx
from kettle.storage.database import ERRORS, Connection, Database, is_away
from kettle.storage.queries import QUERIES


class PgCursors:
    """See `Cursors`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def cursor(self, projection: str, version: int, shard: str) -> int:
        """See `Cursors.cursor`."""
        return (await self._place(projection, version, shard))[0]

    async def stopped(self, projection: str, version: int, shard: str) -> str | None:
        """
        Why the projection does not come further in a shard; None if nothing was noted, or it was taken away since.
        """
        return (await self._place(projection, version, shard))[1]

    async def stop(self, projection: str, version: int, shard: str, *, at: int, why: str) -> None:
        """See `Cursors.stop`."""

        async def attempt(connection: Connection) -> None:
            if not at:
                await connection.execute(QUERIES["start_cursor"], projection, version, shard)
            await connection.execute(QUERIES["stop_cursor"], projection, version, shard, at, why)

        await self._database.run(attempt)

    @asynccontextmanager
    async def advance(
        self, projection: str, version: int, shard: str, *, was: int, now: int
    ) -> AsyncGenerator[Tx, None]:
        """See `Cursors.advance`."""
        try:
            async with self._database.connection() as connection, connection.transaction():
                await move(connection, projection, version, shard, was=was, now=now)
                yield connection
        except ERRORS as error:
            if is_away(error):
                raise LogUnavailableError(f"PostgreSQL is away: {error}") from error
            raise

    async def _place(self, projection: str, version: int, shard: str) -> tuple[int, str | None]:
        row = await self._database.run(lambda c: c.fetchrow(QUERIES["place"], projection, shard))
        if row is None or row["version"] != version:
            raise SupersededError(
                f"the tables of {projection} are of version {row['version'] if row else 'none'}, "
                f"this release has version {version}"
            )
        return row["frame"], row["error"]


async def move(
    connection: Connection, projection: str, version: int, shard: str, *, was: int, now: int
) -> None:
    """In a transaction: move a cursor, and turn to the projection's tables; raises OvertakenError."""
    if not was:
        await connection.execute(QUERIES["start_cursor"], projection, version, shard)
    if await connection.fetchrow(QUERIES["move_cursor"], projection, version, shard, was, now) is None:
        raise OvertakenError(f"{projection}/{version} of {shard} is not at frame {was} any more")
