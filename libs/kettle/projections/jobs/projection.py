"""
Frames of a schedd in, rows out. The fold itself is `kettle.jobs.past`.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from kettle.eventsourcing.projection import Decoded, Tx
from kettle.jobs.past import Happened, Past, Submission, touched
from kettle.projections.jobs import rows
from kettle.projections.stored import Sweeper, microseconds
from kettle.storage.queries import load
from kettle.wire import events
from kettle.wire.events import ClusterSubmitted
from kettle.wire.jobs import JobId

HERE: Final = Path(__file__).parent
KEPT: Final = timedelta(days=90)
"""How long ended claims and past depths are kept, by the time of the newest frame."""
INLINE: Final = 100
"""Up to so many events are folded on the loop; more would hold it up for others, and go to a thread."""

_REMEMBERED: Final = 256
"""Submissions that are kept decoded: a cluster of many jobs is spoken of in frame after frame."""
_QUERIES: Final = load(HERE / "queries.sql")


class MissingRowError(Exception):
    """
    The tables lack a job that is in the queue: they were changed by somebody else.
    """


class Jobs:
    """
    See `StoredProjection`. Version 1.
    """

    def __init__(self) -> None:
        self.name: Final = "jobs"
        self.version: Final = 1
        self.kinds: Final = ("schedd",)
        self.directory: Final = HERE
        self._submissions: OrderedDict[tuple[str, int], Submission] = OrderedDict()
        self._sweeper = Sweeper(KEPT)

    async def apply(self, tx: Tx, frames: Sequence[Decoded]) -> None:
        """
        See `Projection.apply`.
        """
        shard = frames[0][0].shard
        jobs = touched(frame for frame, _ in frames)
        clusters = await self._clusters(tx, shard, {job.cluster for job in jobs})
        past = Past(shard.partition(".")[2], clusters, await _jobs(tx, shard, jobs) if clusters else {})
        if sum(len(frame.entries) for frame, _ in frames) > INLINE:
            statements = await asyncio.to_thread(_statements, past, frames)
        else:
            statements = _statements(past, frames)
        for name, columns in statements:
            done = await tx.execute(_QUERIES[name], shard, *columns)
            if name == "happen" and int(done.rpartition(" ")[2]) != len(columns[0]):
                raise MissingRowError(
                    f"of {len(columns[0])} jobs that are in the queue, only {done} are in the table live"
                )
        if (day := self._sweeper.due(frames)) is not None:
            await tx.execute(_QUERIES["forget_minutes"], shard, day)
            await tx.execute(_QUERIES["forget_claims"], shard, day)

    async def _clusters(self, tx: Tx, shard: str, wanted: set[int]) -> dict[int, Submission]:
        found: dict[int, Submission] = {}
        for cluster in wanted:
            known = self._submissions.get((shard, cluster))
            if known is not None:
                self._submissions.move_to_end((shard, cluster))
                found[cluster] = known
        if missing := list(wanted - found.keys()):
            for row in await tx.fetch(_QUERIES["clusters"], shard, missing):
                event = events.decode(row["event"])
                if isinstance(event, ClusterSubmitted):  # nothing else is ever written there
                    submission = Submission(microseconds(row["submitted_at"]), event)
                    found[row["cluster"]] = self._submissions[shard, row["cluster"]] = submission
        while len(self._submissions) > _REMEMBERED:
            self._submissions.popitem(last=False)
        return found


async def _jobs(tx: Tx, shard: str, jobs: Iterable[JobId]) -> dict[JobId, list[Happened]]:
    columns = rows.columns((job.cluster, job.proc) for job in jobs)
    found = await tx.fetch(_QUERIES["jobs"], shard, *columns)
    return {JobId(row["cluster"], row["proc"]): rows.unpacked(row["happened"]) for row in found}


def _statements(past: Past, frames: Sequence[Decoded]) -> list[rows.Statement]:
    """
    Fold, and say in SQL what changed: everything that takes time and needs no database.
    """
    for frame, decoded in frames:
        past.feed(frame, decoded)
    return [*rows.of_jobs(past.take()), *rows.of_claims(frames)]
