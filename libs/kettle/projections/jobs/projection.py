"""Frames of a schedd in, rows out. The fold itself is `kettle.jobs.history`."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from kettle.eventsourcing.projection import Decoded, Tx
from kettle.jobs.attempts import Run
from kettle.jobs.history import Changes, Happened, JobHistory, Submission, touched
from kettle.projections.jobs import rows
from kettle.projections.jobs.held_together import HeldTogether, in_parts
from kettle.projections.stored_projection import Sweeper, microseconds
from kettle.storage.queries import load
from kettle_wire import events
from kettle_wire.ads.types import Ad
from kettle_wire.events import ClusterSubmitted
from kettle_wire.jobs import JobId

HERE: Final = Path(__file__).parent
KEPT: Final = timedelta(days=90)
"""How long ended claims and past depths are kept, by the time of the newest frame."""
INLINE: Final = 100
"""Up to so many events are folded on the loop; more would hold it up for others, and go to a thread."""

_REMEMBERED: Final = 256
"""Submissions of many jobs that are kept decoded: such a cluster is spoken of in frame after frame."""
_ALONE: Final = 1_536
"""And those of one job, for the few events that are to come: as many as the nodes of a workflow that wait at a time, and more."""
_PRESENT: Final = 4_096
"""Jobs whose ads are kept between transactions, for the next event of theirs; each takes about 5 KB."""
_QUERIES: Final = load(HERE / "queries.sql")


_EXACT: Final = ("happen", "leave")
"""Statements that must find the row of every job."""


class _Present(msgspec.Struct):
    frame: int
    """The first one that is not in the ads."""
    ads: dict[JobId, Ad]
    runs: dict[JobId, Run]


class _Submissions:
    """Submissions that were spoken of lately, by shard and number."""

    def __init__(self) -> None:
        self._alone: OrderedDict[tuple[str, int], Submission] = OrderedDict()
        self._large: OrderedDict[tuple[str, int], Submission] = OrderedDict()

    def find(self, shard: str, cluster: int) -> Submission | None:
        """One of them; it is spoken of again."""
        for known in (self._alone, self._large):
            if (found := known.get((shard, cluster))) is not None:
                known.move_to_end((shard, cluster))
                return found
        return None

    def keep(self, shard: str, cluster: int, submission: Submission) -> None:
        """Remember one."""
        is_alone = len(submission.event.rows) == 1
        known, most = (self._alone, _ALONE) if is_alone else (self._large, _REMEMBERED)
        known[shard, cluster] = submission
        while len(known) > most:
            known.popitem(last=False)


class MissingRowError(Exception):
    """The tables lack a job that is in the queue: they were changed by somebody else."""


class Jobs:
    """See `StoredProjection`. Version 2: the table attempt; 3: an index of the queue by time."""

    def __init__(self) -> None:
        self.name: Final = "jobs"
        self.version: Final = 3
        self.kinds: Final = ("schedd",)
        self.directory: Final = HERE
        self._present: dict[str, _Present] = {}
        self._submissions = _Submissions()
        self._sweeper = Sweeper(KEPT)

    async def apply(self, tx: Tx, frames: Sequence[Decoded]) -> None:
        """See `Projection.apply`."""
        for part in in_parts(frames):
            if isinstance(part, HeldTogether):
                await self._apply_together(tx, part)
            else:
                await self._apply(tx, part)
        if (day := self._sweeper.due(frames)) is not None:
            shard = frames[0][0].shard
            await tx.execute(_QUERIES["forget_minutes"], shard, day)
            await tx.execute(_QUERIES["forget_claims"], shard, day)

    async def _apply_together(self, tx: Tx, held: HeldTogether) -> None:
        """
        Their rows and the depths of their owners; their ads are read again when somebody speaks of one of them.
        """
        shard, ranges = held.frame.shard, rows.columns(held.ranges())
        if (present := self._present.get(shard)) is not None:
            for job in present.ads.keys() & set(held.jobs):
                del present.ads[job]
                present.runs.pop(job, None)
        counts = await tx.fetch(_QUERIES["statuses"], shard, *ranges)
        done = await tx.execute(_QUERIES["become"], shard, *ranges, *rows.of_all(held))
        _found_all(done, len(held.jobs))
        await tx.execute(_QUERIES["deepen"], shard, *rows.columns(rows.depths_of_all(held, counts)))

    async def _apply(self, tx: Tx, frames: Sequence[Decoded]) -> None:
        shard = frames[0][0].shard
        jobs = set(touched(frame for frame, _ in frames).values())
        clusters = await self._clusters(tx, shard, {job.cluster for job in jobs})
        known = self._take_present(shard, frames[0][0].number)
        present = known.ads
        missing = jobs - present.keys()
        stored = await _jobs(tx, shard, missing) if clusters and missing else {}
        past = JobHistory(shard.partition(".")[2], clusters, stored, present, known.runs)
        if sum(len(frame.entries) for frame, _ in frames) > INLINE:
            statements, changes = await asyncio.to_thread(_folded, past, frames)
        else:
            statements, changes = _folded(past, frames)
        for number, submission in changes.submitted.items():
            self._submissions.keep(shard, number, submission)
        for name, columns in statements:
            done = await tx.execute(_QUERIES[name], shard, *columns)
            if name in _EXACT:
                _found_all(done, len(columns[0]))
        await _depart(tx, shard, changes)
        await _end(tx, shard, changes)
        self._keep_present(shard, _Present(frames[-1][0].number + 1, past.present, past.runs))

    def _take_present(self, shard: str, frame: int) -> _Present:
        """
        Ads as the frames before `frame` have left them, if the fold got as far as that the last time.

        They follow from the log alone: it does not matter whether what was written then was committed, or by whom.
        """
        kept = self._present.pop(shard, None)
        return kept if kept is not None and kept.frame == frame else _Present(frame, {}, {})

    def _keep_present(self, shard: str, now: _Present) -> None:
        for job in list(islice(now.ads, max(0, len(now.ads) - _PRESENT))):  # those that were spoken of first
            del now.ads[job]
            now.runs.pop(job, None)
        self._present[shard] = now

    async def _clusters(self, tx: Tx, shard: str, wanted: set[int]) -> dict[int, Submission]:
        found: dict[int, Submission] = {}
        for cluster in wanted:
            if (known := self._submissions.find(shard, cluster)) is not None:
                found[cluster] = known
        if missing := list(wanted - found.keys()):
            for row in await tx.fetch(_QUERIES["clusters"], shard, missing):
                event = events.decode(row["event"])
                if isinstance(event, ClusterSubmitted):  # nothing else is ever written there
                    submission = Submission(microseconds(row["submitted_at"]), event)
                    found[row["cluster"]] = submission
                    self._submissions.keep(shard, row["cluster"], submission)
        return found


def _found_all(done: str, jobs: int) -> None:
    """Raise if a statement, which has done this, has not found the row of every job."""
    if int(done.rpartition(" ")[2]) != jobs:
        raise MissingRowError(f"of {jobs} jobs that were in the queue, only {done} are in the table live")


async def _jobs(tx: Tx, shard: str, jobs: Iterable[JobId]) -> dict[JobId, list[Happened]]:
    columns = rows.columns((job.cluster, job.proc) for job in jobs)
    found = await tx.fetch(_QUERIES["jobs"], shard, *columns)
    return {JobId(row["cluster"], row["proc"]): rows.unpacked(row["happened"]) for row in found}


async def _depart(tx: Tx, shard: str, changes: Changes) -> None:
    """Write the rows of the history: many of them as a copy, which takes them as they are made."""
    if len(changes.departed) > INLINE:
        history = ((shard, *row) for row in rows.history(changes))
        await tx.copy_records_to_table("history", records=history, columns=["shard", *rows.HISTORY])
    elif changes.departed:
        await tx.execute(_QUERIES["depart"], shard, *rows.columns(rows.history(changes)))


async def _end(tx: Tx, shard: str, changes: Changes) -> None:
    """Write the rows of the attempts that ended, the same two ways."""
    if len(changes.attempts) > INLINE:
        attempts = ((shard, *row) for row in rows.attempts(changes))
        await tx.copy_records_to_table("attempt", records=attempts, columns=["shard", *rows.ATTEMPT])
    elif changes.attempts:
        await tx.execute(_QUERIES["ended"], shard, *rows.columns(rows.attempts(changes)))


def _folded(past: JobHistory, frames: Sequence[Decoded]) -> tuple[list[rows.Statement], Changes]:
    """Fold, and say in SQL what changed and which jobs have left."""
    for frame, decoded in frames:
        past.feed(frame, decoded)
    changes = past.apply_event()
    return [*rows.of_jobs(changes), *rows.of_claims(frames)], changes
