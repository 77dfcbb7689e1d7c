"""How far projections are behind the log."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import asyncpg
import msgspec

from kettle.eventsourcing.log import Tenure
from kettle.projections.catalog import PROJECTIONS
from kettle.projections.stored_projection import follows
from kettle.storage import Database, PgLog
from kettle.storage.pg_log import WORKING_SET_VERSION
from kettle.storage.queries import QUERIES

_US: Final = 1_000_000
_WORKING_SET: Final = "working_set"


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """Where one projection is in one shard."""

    projection: str
    version: int | None
    """Of its tables; None if there are none."""
    shard: str
    frame: int
    """The last frame that it applied."""
    head: int
    """The last frame of the shard."""
    seconds: float
    """Age of the oldest frame that it has not applied, by this machine's clock."""
    error: str | None = None
    """Why it has stopped, with frame, position and stream."""

    @property
    def frames(self) -> int:
        """How many frames it has not applied."""
        return self.head - self.frame


async def lags(
    database: Database,
    logs: Sequence[PgLog],
    *,
    now: Callable[[], float] = time.time,
) -> list[Lag]:
    """
    Each projection in each shard that it follows, and each shard's working set; by projection, then by shard.

    `database` has the tables, `logs` the shards. Heads are read before cursors: what is behind then, is behind.
    """
    heads: dict[str, tuple[Tenure, PgLog]] = {}
    for log in logs:
        for tenure in await log.shards():
            heads.setdefault(tenure.shard, (tenure, log))
    versions = {row["name"]: row["version"] for row in await _rows(database, "tables_of")}
    cursors = {(r["name"], r["shard"]): r for r in await _rows(database, "cursors")}
    found: list[Lag] = []
    for name, make in sorted(PROJECTIONS.items()):
        projection = make()
        for shard, (tenure, log) in sorted(heads.items()):
            if follows(projection, shard):
                row = cursors.get((name, shard))
                found.append(await _lag(name, versions.get(name), tenure, log, row, now))
    for shard, (tenure, log) in sorted(heads.items()):
        saved = {r["shard"]: r for r in await _rows(log.database, "cursors") if r["name"] == _WORKING_SET}
        if shard in saved:
            found.append(await _lag(_WORKING_SET, WORKING_SET_VERSION, tenure, log, saved[shard], now))
    return found


async def _lag(
    name: str,
    version: int | None,
    tenure: Tenure,
    log: PgLog,
    row: asyncpg.Record | None,
    now: Callable[[], float],
) -> Lag:
    frame = int(row["frame"]) if row else 0
    error = row["error"] if row else None
    seconds = 0.0
    if frame < tenure.frame:
        async for oldest in log.read(tenure.shard, after=frame, until=frame + 1):
            seconds = max(0.0, now() - oldest.at / _US)
    return Lag(
        projection=name,
        version=version,
        shard=tenure.shard,
        frame=min(frame, tenure.frame),
        head=tenure.frame,
        seconds=seconds,
        error=None if error is None else str(error),
    )


async def _rows(database: Database, query: str) -> list[asyncpg.Record]:
    return await database.run(lambda c: c.fetch(QUERIES[query]))
