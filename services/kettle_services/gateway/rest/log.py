"""What is asked about the event log: events of all shards of the database, the newest first."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

import asyncpg
import msgspec

from kettle.classad import ClassAdError, parse
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.projections.stored_projection import microseconds
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.filters import AdFilter
from kettle_services.gateway.rest.job_rows import SCHEDD, Viewer
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables, Reading
from kettle_services.gateway.rest.jobs import job_name, no_such_job
from kettle_services.gateway.rest.log_records import (
    cluster_of,
    filter_ad,
    pattern_of,
    read,
    record,
    takes,
)
from kettle_services.gateway.rest.page_tokens import LogPlace, page_token, place_of
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.event_expansion import stream_of_many
from kettle_wire.rest.log import ListLog, LogRecord, LogRecords
from kettle_wire.rest.problem import ProblemCode

_WINDOW: Final = 5_000
"""Frames that are looked through before the time is looked at."""
_ROWS: Final = 500
_BEYOND: Final = 2**62
_OF_MANY: Final = ["jobs.%", "clusters.%"]


class _Span(msgspec.Struct):
    """What is still to be read of a shard: from a place down to a frame."""

    number: int
    shard: str
    streams: list[str] | None
    """None: all."""
    first: int
    """The frame that it goes down to."""
    frame: int
    position: int
    """What is before this place is still to be read."""
    rows: list[asyncpg.Record]
    """That were read and not taken, the newest last."""

    @property
    def is_over(self) -> bool:
        """Nothing is left."""
        return not self.rows and self.frame < self.first

    def took(self, row: asyncpg.Record) -> None:
        """Everything down to this row is taken."""
        self.frame, self.position = row["frame"], row["pos"]


class LogQuestions:
    """Answers them."""

    def __init__(self, tables: JobTables, seal: AttributeSeal, *, most_seconds: float) -> None:
        """
        `seal` opens environments for their owners. `most_seconds`: how long a search may take; what was found until half of it is a page.
        """
        self._tables = tables
        self._seal = seal
        self._most_seconds = most_seconds / 2

    async def list(self, asked: Asked) -> Answer:
        """Recorded events, the newest first."""
        parameters: ListLog = asked.parameters
        wanted = _filter(parameters.filter)
        after = place_of(parameters, parameters.page, LogPlace) if parameters.page else None
        deadline = time.monotonic() + self._most_seconds
        async with self._tables.read() as reading:
            shards = await _shards(reading, parameters)
            spans = [
                span
                for shard in shards
                if (span := await _span(reading, parameters, shard, after)) is not None
            ]
            search = _Search(reading, parameters, wanted, Viewer.of(asked.reader, (), self._seal))
            records = await search.page(spans, deadline)
        left = {span.number: (span.frame, span.position) for span in spans}
        following = None
        if any(not span.is_over for span in spans):
            following = page_token(parameters, LogPlace(left))
        return Answer(LogRecords(records=records, next=following, archived=_archived(shards, spans)))


class _Search:
    """Reads pages."""

    def __init__(self, reading: Reading, asked: ListLog, wanted: AdFilter | None, viewer: Viewer) -> None:
        self._reading = reading
        self._asked = asked
        self._wanted = wanted
        self._viewer = viewer
        self._kinds = [pattern_of(kind) for kind in asked.kind]
        self._likes = [_like(kind) for kind in self._kinds] + (_OF_MANY if self._kinds else [])
        self._owners: dict[tuple[str, int], str] = {}

    async def page(self, spans: Sequence[_Span], deadline: float) -> list[LogRecord]:
        """The next events of all shards by time; the spans say afterwards how far that was."""
        found: list[LogRecord] = []
        while len(found) < self._asked.limit:
            for span in spans:
                while not span.rows and not span.is_over:
                    if time.monotonic() > deadline:
                        return found
                    await self._fill(span)
            there = [span for span in spans if span.rows]
            if not there:
                return found
            newest = max(there, key=lambda span: span.rows[-1]["at"])
            row = newest.rows.pop()
            if (shown := self._shown(newest, row)) is not None:
                found.append(shown)
            newest.took(row)
        return found

    async def _fill(self, span: _Span) -> None:
        """Read the next rows of a span; if there are none in this window, it is behind it then."""
        low = span.first if span.streams is not None else max(span.first, span.frame - _WINDOW)
        arguments = [span.number, low, span.frame, span.position, self._likes or ["%"], _ROWS]
        if span.streams is None:
            rows = await self._reading.fetch(QUERIES["log_window"], *arguments)
        else:
            rows = await self._reading.fetch(QUERIES["log_streams"], *arguments, span.streams)
        if not rows:
            span.frame, span.position = low - 1, _BEYOND
            return
        await self._know_owners(span.shard, rows)
        span.rows = rows[::-1]

    async def _know_owners(self, shard: str, rows: Sequence[asyncpg.Record]) -> None:
        clusters = {
            cluster
            for row in rows
            if (cluster := cluster_of(row["stream"])) is not None and (shard, cluster) not in self._owners
        }
        if not clusters:
            return
        found = await self._reading.fetch(QUERIES["owners"], [shard] * len(clusters), sorted(clusters))
        self._owners |= dict.fromkeys(((shard, cluster) for cluster in clusters), "")
        self._owners |= {(row["shard"], row["cluster"]): row["owner"] for row in found}

    def _shown(self, span: _Span, stored: asyncpg.Record) -> LogRecord | None:
        """The event as it is shown, if it is one of those that are wanted."""
        row = read(span.shard, stored, self._asked.job)
        if row is None or not takes(row, self._kinds):
            return None
        owner = self._owners.get((span.shard, cluster_of(row.stream) or -1), "")
        if self._wanted is not None and not self._wanted.holds(filter_ad(row, self._viewer, owner)):
            return None
        return record(row, self._viewer, owner)


class _Shard(msgspec.Struct, frozen=True):
    number: int
    name: str
    frame: int
    archived: int
    """Up to this frame it is in the archive alone."""
    streams: list[str] | None


async def _shards(reading: Reading, asked: ListLog) -> list[_Shard]:
    """Which shards to read, and which streams of them; raises RequestRefused."""
    rows = await reading.fetch(QUERIES["log_shards"])
    known = [row["name"] for row in rows]
    for name in asked.shard:
        if name not in known:
            raise refused_field(
                "/query/shard", f"nothing is recorded as {name}: there are {', '.join(known)}"
            )
    job = await _job_streams(reading, asked)
    machine = await _machine_streams(reading, asked)
    found: list[_Shard] = []
    for row in rows:
        name = row["name"]
        if asked.shard and name not in asked.shard:
            continue
        named = [streams for streams in (job, machine) if streams is not None]
        streams = set(asked.stream) if asked.stream else None
        for each in named:
            those = each(name)
            streams = those if streams is None else streams & those
        if streams is None or streams:
            found.append(_Shard(row["id"], name, row["frame"], row["archived"], _with_many(streams)))
    return found


def _with_many(streams: set[str] | None) -> list[str] | None:
    """What is recorded of many jobs at once stands in another stream."""
    if streams is None:
        return None
    return sorted(streams | {other for one in streams if (other := stream_of_many(one)) is not None})


async def _job_streams(reading: Reading, asked: ListLog) -> "_StreamsOf | None":
    if asked.job is None:
        return None
    job, schedd = job_name(asked.job)
    schedds = await reading.schedds_of(job, schedd)
    if not schedds:
        raise no_such_job(asked.job)
    if len(schedds) > 1:
        names = ", ".join(f"{job}@{each}" for each in schedds)
        raise RequestRefused(
            409, ProblemCode.AMBIGUOUS, f"several access points have a job {job}: name one of {names}"
        )
    return _StreamsOf(
        {SCHEDD + schedds[0]: {f"job/{job}", f"cluster/{job.cluster}", f"factory/{job.cluster}"}}
    )


async def _machine_streams(reading: Reading, asked: ListLog) -> "_StreamsOf | None":
    if asked.machine is None:
        return None
    rows = await reading.fetch(QUERIES["claims_of_machine"], asked.machine)
    claims = {f"claim/{row['claim']}" for row in rows}
    return _StreamsOf({}, claims | {f"machine/{asked.machine}"})


class _StreamsOf(msgspec.Struct, frozen=True):
    """Which streams of a shard are meant."""

    by_shard: Mapping[str, set[str]]
    everywhere: set[str] = set()

    def __call__(self, shard: str) -> set[str]:
        return self.by_shard.get(shard, set()) | self.everywhere


async def _span(reading: Reading, asked: ListLog, shard: _Shard, after: LogPlace | None) -> _Span | None:
    """What is to be read of a shard; None: it was not there on the first page."""
    if after is None:
        frame, position = shard.frame, _BEYOND
        for moment, included in ((asked.as_of, 0), (asked.until, -1)):
            if moment is not None:
                last = await _frame_at(reading, shard, microseconds(moment) + included)
                frame = min(frame, last)
    elif shard.number in after.shards:
        frame, position = after.shards[shard.number]
    else:
        return None
    first = shard.archived + 1
    if asked.since is not None:
        first = max(first, await _frame_at(reading, shard, microseconds(asked.since) - 1) + 1)
    return _Span(shard.number, shard.name, shard.streams, first, frame, position, [])


async def _frame_at(reading: Reading, shard: _Shard, moment: int) -> int:
    """
    The last frame that is not later, of those that are not archived: the order of frames is the order of time.
    """
    low, high = shard.archived, shard.frame
    while low < high:
        middle = (low + high + 1) // 2
        rows = await reading.fetch(QUERIES["frame_time"], shard.number, middle)
        if not rows or microseconds(rows[0]["at"]) <= moment:
            low = middle
        else:
            high = middle - 1
    return low


def _archived(shards: Sequence[_Shard], spans: Sequence[_Span]) -> dict[str, str]:
    """Where the search came to the end of what is in the database, and the rest is elsewhere."""
    ended = {span.number for span in spans if span.is_over and span.first > 1}
    return {
        shard.name: f"up to frame {shard.archived}: kettle log show {shard.name} --frame 1:{shard.archived}"
        for shard in shards
        if shard.archived and shard.number in ended
    }


def _like(pattern: str) -> str:
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%")


def _filter(text: str) -> AdFilter | None:
    if not text:
        return None
    try:
        return AdFilter(parse(text))
    except ClassAdError as error:
        raise refused_field(
            "/query/filter", f"the filter is no ClassAd expression: {error}", code=ProblemCode.FILTER_INVALID
        ) from error
