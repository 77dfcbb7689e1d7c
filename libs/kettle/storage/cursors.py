"""
The cursors of projections in PostgreSQL, moved in the transaction that writes their rows.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kettle.eventsourcing.log import LogUnavailableError
from kettle.eventsourcing.projection import OvertakenError, Tx
from kettle.storage.database import ERRORS, Connection, Database, is_away
from kettle.storage.queries import QUERIES


class PgCursors:
    """
    See `Cursors`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def cursor(self, projection: str, version: int, shard: str) -> int:
        """
        See `Cursors.cursor`.
        """
        frame = await self._database.run(
            lambda connection: connection.fetchval(QUERIES["cursor"], projection, version, shard)
        )
        return int(frame or 0)

    @asynccontextmanager
    async def advance(
        self, projection: str, version: int, shard: str, *, was: int, now: int
    ) -> AsyncGenerator[Tx, None]:
        """
        See `Cursors.advance`.
        """
        try:
            async with self._database.connection() as connection, connection.transaction():
                if not await _move(connection, projection, version, shard, was, now):
                    raise OvertakenError(f"{projection}/{version} of {shard} is not at frame {was} any more")
                yield connection
        except ERRORS as error:
            if is_away(error):
                raise LogUnavailableError(f"PostgreSQL is away: {error}") from error
            raise


async def _move(
    connection: Connection, projection: str, version: int, shard: str, was: int, now: int
) -> bool:
    if not was:
        await connection.execute(QUERIES["start_cursor"], projection, version, shard)
    return await connection.fetchrow(QUERIES["move_cursor"], projection, version, shard, was, now) is not None
