"""
Lists of the queues as they were at a time of the past.

Who was there is in the tables: a job that was submitted by then, and had not left.  How it was is folded of what is recorded of it: of a
job in a queue the tables have that, of one that has left since the log.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

import asyncpg
import msgspec

from kettle.jobs.ad import apply
from kettle.jobs.history import Submission
from kettle.projections.stored_projection import microseconds
from kettle_services.gateway.rest.filters import AdFilter
from kettle_services.gateway.rest.job_past import past_job
from kettle_services.gateway.rest.job_rows import SCHEDD, Viewer
from kettle_services.gateway.rest.job_statements import past_statement
from kettle_services.gateway.rest.job_tables import QUERIES, Found, Reading
from kettle_services.gateway.rest.page_tokens import RowPlace
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.event_expansion import many, stands_for_many, stream_of_cluster, stream_of_span
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    JobEvent,
    JobsChanged,
    UnknownEventError,
    decode,
)
from kettle_wire.frames import Entry
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import Job, ListJobs

_TRIED: Final = 200
"""Jobs whose state of then is made at once, where a filter or a state may leave most of them out."""
_TOGETHER: Final = 200
"""Events that are read at once."""
_SORTS: Final = frozenset({"submitted", "-submitted"})


def require_listed(asked: ListJobs) -> None:
    """Raises RequestRefused: the queues of the past are not listed like this."""
    if asked.sort not in _SORTS:
        raise refused_field(
            "/query/sort", f"queues of the past are sorted by submitted or -submitted, not by {asked.sort}"
        )
    if asked.explain:
        raise refused_field("/query/explain", "how queues of the past are looked for is not explained")


class PastQueues:
    """Reads pages of such a list."""

    def __init__(self, reading: Reading, asked: ListJobs, viewer: Viewer) -> None:
        self._reading = reading
        self._asked = asked
        self._viewer = viewer
        assert asked.as_of is not None
        self._moment = asked.as_of
        self._shards: dict[str, _Shard] = {}

    async def page(self, wanted: AdFilter | None, after: RowPlace | None) -> Found:
        """
        The next jobs behind a place; fewer than there could be where the search takes too long.

        Raises RequestRefused: what was recorded of one is in the archive.
        """
        asked = self._asked
        tried = bool(asked.state) or wanted is not None
        most = max(_TRIED, asked.limit + 1) if tried else asked.limit + 1
        found: list[Job] = []
        while True:
            statement = past_statement(asked, after, most)
            rows = await self._reading.fetch(statement.text, *statement.arguments)
            for row, ad in zip(rows, await self._ads(rows), strict=True):
                if len(found) == asked.limit:
                    return Found(found, after)
                after = _place(row)
                if ad is None:
                    continue  # it came into the queue after its submission, and after this moment
                if wanted is not None and not self._viewer.finds(wanted, ad, row["owner"]):
                    continue
                shown = past_job(_name(row), ad, self._viewer)
                if not asked.state or shown.state in asked.state:
                    found.append(shown if asked.fields else msgspec.structs.replace(shown, attributes=None))
            if len(rows) < most:
                return Found(found, None)
            if self._reading.is_late:
                return Found(found, after)

    async def _ads(self, rows: Sequence[asyncpg.Record]) -> list[Ad | None]:
        """As they were then."""
        ads = await self._reading.ads_of_queued(rows, until=microseconds(self._moment))
        left: dict[str, list[asyncpg.Record]] = {}
        for row in rows:
            if row["happened"] is None:
                left.setdefault(row["shard"], []).append(row)
        recorded = {shard: await self._recorded(shard, those) for shard, those in left.items()}
        return [
            recorded[row["shard"]][_job(row)] if row["happened"] is None else ad
            for row, ad in zip(rows, ads, strict=True)
        ]

    async def _recorded(self, shard: str, rows: Sequence[asyncpg.Record]) -> dict[JobId, Ad | None]:
        """The ads of jobs of one queue that have left it, by what is recorded of them."""
        known = await self._shard(shard)
        schedd = shard.removeprefix(SCHEDD)
        recorded = RecordedJobs(schedd, [_job(row) for row in rows])
        happened = await self._reading.fetch(
            QUERIES["log_until"], known.number, recorded.streams, self._moment
        )
        for number, row in enumerate(happened, 1):
            recorded.take(Entry(row["stream"], row["ver"], row["type"], row["data"]), microseconds(row["at"]))
            if not number % _TOGETHER:
                await asyncio.sleep(0)  # of a large cluster there may be very many, and others ask meanwhile
        ads = recorded.ads
        if known.archived and (missing := [job for job, ad in ads.items() if ad is None]):
            raise RequestRefused(
                410,
                RefusalCode.GONE,
                f"what is recorded of job {missing[0]}@{schedd} up to then is in the archive: kettle log show {shard} --frame 1:{known.archived}; "
                "counts of this moment are had with group_by",
            )
        return ads

    async def _shard(self, name: str) -> "_Shard":
        if name not in self._shards:
            rows = await self._reading.fetch(QUERIES["log_shards"])
            self._shards = {row["name"]: _Shard(row["id"], row["archived"]) for row in rows}
        if name not in self._shards:
            raise RequestRefused(
                410, RefusalCode.GONE, f"the records of {name} are in no database that is read here"
            )
        return self._shards[name]


class _Shard(msgspec.Struct, frozen=True):
    number: int
    archived: int
    """Up to this frame it is in the archive alone."""


class RecordedJobs:
    """
    Ads of jobs of one queue, by what is recorded of them: each event is read once, however many of the jobs it is about.
    """

    def __init__(self, schedd: str, jobs: Sequence[JobId]) -> None:
        self.ads: dict[JobId, Ad | None] = dict.fromkeys(jobs)
        """None: not there yet."""
        self._schedd = schedd
        self._procs: dict[int, list[int]] = {}
        """By cluster, in order."""
        for job in sorted(self.ads, key=lambda each: (each.cluster, each.proc)):
            self._procs.setdefault(job.cluster, []).append(job.proc)

    @property
    def streams(self) -> list[str]:
        """Where it is recorded."""
        clusters = {
            stream
            for each in self._procs
            for stream in (f"cluster/{each}", stream_of_span(each), stream_of_cluster(each))
        }
        return [*sorted(clusters), *(f"job/{job}" for job in self.ads)]

    def take(self, entry: Entry, at: int) -> None:
        """The next event of these streams, recorded at a time, microseconds since the epoch."""
        if stands_for_many(entry):
            try:
                together = many(entry)
            except UnknownEventError:
                return
            if isinstance(together, ClustersSubmitted):
                last = together.first + len(together.rows)
                for cluster in self._procs:
                    if together.first <= cluster < last:
                        self._submitted(together.one(cluster), at)
                return
            self._apply([*self._among(together)], decode(bytes(together.data)), at)
            return
        event = decode(entry.data)
        if isinstance(event, ClusterSubmitted):
            self._submitted(event, at)
        elif entry.stream.startswith("job/"):
            self._apply([JobId.parse(entry.stream.removeprefix("job/"))], event, at)

    def _submitted(self, event: ClusterSubmitted, at: int) -> None:
        submission = Submission(at, event)
        for proc in self._procs[event.cluster]:
            self.ads[JobId(event.cluster, proc)] = submission.ads(proc, self._schedd)

    def _among(self, together: JobsChanged) -> Iterator[JobId]:
        ours = self._procs[together.cluster]
        for procs in together.jobs:
            first = bisect_left(ours, procs.first)
            for proc in ours[first : bisect_left(ours, procs.first + procs.count, first)]:
                yield JobId(together.cluster, proc)

    def _apply(self, jobs: Iterable[JobId], event: Event, at: int) -> None:
        for job in jobs:
            ad = self.ads[job]
            if ad is not None:
                apply(ad, cast("JobEvent", event), at)


def _job(row: asyncpg.Record) -> JobId:
    return JobId(row["cluster"], row["proc"])


def _name(row: asyncpg.Record) -> str:
    return f"{row['cluster']}.{row['proc']}@{row['shard'].removeprefix(SCHEDD)}"


def _place(row: asyncpg.Record) -> RowPlace:
    return RowPlace(microseconds(row["submitted_at"]), row["shard"], row["cluster"], row["proc"])
