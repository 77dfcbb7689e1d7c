"""A fresh fold of a projection beside the stored one, in temporary tables of one connection."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from kettle.eventsourcing.log import Log
from kettle.eventsourcing.projection import Decoded, Tx, decoded_events, grouped
from kettle.projections.rebuilding import GROUP, QUERIES
from kettle.projections.stored_projection import SCHEMA, StoredProjection, statements

_HERE: Final = "pg_temp"

Only: TypeAlias = Mapping[str, Sequence[int | str]]
"""Values by column."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A row that is not what the log says."""

    table: str
    """The name for people, `jobs.history`."""
    key: dict[str, object]
    """Its primary key."""
    stored: dict[str, object] | None
    """Its columns as they are stored; None: it is not there. Bytes are text, as PostgreSQL writes them."""
    folded: dict[str, object] | None
    """Its columns as the log says; None: it should not be there."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns that differ; none if one side has no such row."""
        if self.stored is None or self.folded is None:
            return []
        return [name for name, value in self.folded.items() if self.stored.get(name) != value]

    def __str__(self) -> str:
        row = f"{self.table} ({', '.join(f'{name} {value}' for name, value in self.key.items() if name != 'shard')})"
        if self.stored is None:
            return f"{row} is missing"
        if self.folded is None:
            return f"{row} should not be there"
        return f"{row} has another {', '.join(self.columns)}"


class Refold:
    """
    Folds frames of one shard into temporary tables. `projection` has applied nothing yet.

    The connection's transaction is the caller's, and must allow temporary tables (it is not `readonly`); the search
    path is as it was after each call.
    """

    def __init__(self, connection: Tx, projection: StoredProjection, shard: str) -> None:
        self._connection = connection
        self._projection = projection
        self._shard = shard

    async def begin(self) -> None:
        """Make empty tables; those of an earlier fold on this connection are dropped."""
        for name, _ in await _tables(self._connection, self._projection.name):
            await self._connection.execute(f'DROP TABLE IF EXISTS {_HERE}."{name}"')
        before = await self._turn(_HERE)
        await self._connection.execute(statements(self._projection, SCHEMA))
        await self._turn(before)

    async def feed(self, frames: Sequence[Decoded]) -> None:
        """Fold the next frames, in order; errors are those of the projection."""
        before = await self._turn(_HERE)
        await self._projection.apply(self._connection, frames)
        await self._turn(before)

    async def differences(self, *, limit: int = 10, only: Only | None = None) -> list[Difference]:
        """
        The first rows of each table that are not what the log says, by primary key.

        The stored rows must follow the shard up to the last frame that was fed: compare the cursor, in this snapshot.
        `only` is for a fold of some streams: the values of key columns whose rows are compared, see `differences`.
        """
        return await differences(self._connection, self._projection, self._shard, limit=limit, only=only)

    async def _turn(self, path: str) -> str:
        (row,) = await self._connection.fetch("SELECT current_setting('search_path') AS path")
        await self._connection.execute(QUERIES["search_path"], path)
        return str(row["path"])


async def refold(connection: Tx, projection: StoredProjection, shard: str, upto: int, *, log: Log) -> int:
    """
    Fold a shard from its first frame up to frame `upto` into temporary tables; returns the number of events.
    """
    fold = Refold(connection, projection, shard)
    await fold.begin()
    events = 0
    async for frames in grouped(log.read(shard, until=upto), most_frames=GROUP, most_events=GROUP):
        decoded = [decoded_events(frame) for frame in frames]
        await fold.feed(decoded)
        events += sum(len(one) for _, one in decoded)
    return events


async def differences(
    connection: Tx, projection: StoredProjection, shard: str, *, limit: int = 10, only: Only | None = None
) -> list[Difference]:
    """
    Where the stored tables and those of `refold` differ: the first rows of each table, by primary key.

    `only`: tables without such a column in their key are left out, and of the others the rows with other values.
    """
    found: list[Difference] = []
    for name, key in await _tables(connection, projection.name):
        column = next((column for column in key if column in (only or {})), None)
        if only is not None and column is None:
            continue
        wanted = [] if only is None or column is None else [list(only[column])]
        some = f'AND "{column}" = ANY ($3)' if wanted else ""
        columns = ", ".join(f'"{column}"' for column in key)
        rows = await connection.fetch(
            f"SELECT to_jsonb(s)::text AS stored, to_jsonb(f)::text AS folded "  # noqa: S608 - our schema.sql's names
            f'  FROM (SELECT * FROM "{projection.name}"."{name}" WHERE shard = $1 {some}) s '
            f'  FULL JOIN (SELECT * FROM {_HERE}."{name}" WHERE shard = $1 {some}) f USING ({columns}) '
            f" WHERE s IS DISTINCT FROM f ORDER BY {columns} LIMIT $2",
            shard,
            limit,
            *wanted,
        )
        found += [_difference(f"{projection.name}.{name}", key, row["stored"], row["folded"]) for row in rows]
    return found


def _difference(table: str, key: Sequence[str], stored: str | None, folded: str | None) -> Difference:
    sides = [
        None if side is None else msgspec.json.decode(side, type=dict[str, object])
        for side in (stored, folded)
    ]
    row = sides[0] if sides[0] is not None else sides[1]
    assert row is not None, "a full join has at least one side"
    return Difference(table=table, key={name: row[name] for name in key}, stored=sides[0], folded=sides[1])


async def _tables(connection: Tx, schema: str) -> list[tuple[str, list[str]]]:
    return [(row["name"], list(row["key"])) for row in await connection.fetch(QUERIES["tables"], schema)]
