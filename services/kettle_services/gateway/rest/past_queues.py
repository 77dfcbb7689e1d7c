"""
Lists of the queues as they were at a time of the past.

Who was there is in the tables: a job that was submitted by then, and had not left.  How it was is folded of what is recorded of it: of a
job in a queue the tables have that, of one that has left since the log.
"""

from collections.abc import Sequence
from typing import Final

import asyncpg
import msgspec

from kettle.jobs.recorded_ad import after as ad_after
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
from kettle_wire.commands.schedd import RecordedEvent
from kettle_wire.event_expansion import of_job, stands_for_many, stream_of_cluster
from kettle_wire.events import UnknownEventError
from kettle_wire.frames import Entry
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import Job, ListJobs

_TRIED: Final = 200
"""Jobs whose state of then is made at once, where a filter or a state may leave most of them out."""
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
        ads: dict[JobId, Ad | None] = {_job(row): None for row in rows}
        of: dict[str, list[JobId]] = {}
        for job in ads:
            for stream in (f"cluster/{job.cluster}", f"job/{job}", stream_of_cluster(job.cluster)):
                of.setdefault(stream, []).append(job)
        schedd = shard.removeprefix(SCHEDD)
        for row in await self._reading.fetch(QUERIES["log_until"], known.number, list(of), self._moment):
            for job in of[row["stream"]]:
                if (event := _event_of(job, row)) is not None:
                    ads[job] = ad_after(ads[job], job, schedd, event)
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


def _event_of(job: JobId, row: asyncpg.Record) -> RecordedEvent | None:
    """What a stored event says of a job; None: it is about others."""
    entry = Entry(row["stream"], row["ver"], row["type"], row["data"])
    if stands_for_many(entry):
        try:
            alone = of_job(entry, f"job/{job}")
        except UnknownEventError:
            return None
        if alone is None:
            return None
        entry = alone
    return RecordedEvent(
        stream=entry.stream,
        version=entry.version,
        frame=row["frame"],
        at=microseconds(row["at"]),
        data=entry.data,
    )


def _job(row: asyncpg.Record) -> JobId:
    return JobId(row["cluster"], row["proc"])


def _name(row: asyncpg.Record) -> str:
    return f"{row['cluster']}.{row['proc']}@{row['shard'].removeprefix(SCHEDD)}"


def _place(row: asyncpg.Record) -> RowPlace:
    return RowPlace(microseconds(row["submitted_at"]), row["shard"], row["cluster"], row["proc"])
