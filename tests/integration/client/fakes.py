"""
A pool without machines: the services that a client asks, over a real bus, with jobs that a test moves by hand.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kettle.bus.ports import Bus, RefusedError, Served, StreamSpec
from kettle.classad import ClassAd, evaluate, is_true, parse
from kettle.jobs import apply, ended, job_ad
from kettle_wire import events, frames
from kettle_wire.ads.types import Ad
from kettle_wire.commands import accounting, collector, negotiator, schedd
from kettle_wire.commands.accounting import History, OwnerUsage, QueryHistory, QueryUsage, UsageReport
from kettle_wire.commands.collector import Ads, QueryAds
from kettle_wire.commands.negotiator import Verdict, Why
from kettle_wire.commands.schedd import (
    Act,
    Acted,
    Explain,
    Explanation,
    JobAds,
    JobEvents,
    JobOutcome,
    OutcomeRun,
    QueryEvents,
    QueryJobs,
    RecordedEvent,
    Select,
    Submit,
    Submitted,
)
from kettle_wire.endpoint import Position
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobHeld,
    JobLeft,
    JobOrdered,
    JobReleased,
    JobRemoved,
    JobUnrouted,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

SHARD = "schedd.schedd"
STATUS = {1: "idle", 2: "running", 3: "removed", 4: "completed", 5: "held"}


class FakePool:
    """
    `record` is how a test makes something happen; `silent` loses the live frames, `commands` counts ids.
    """

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects
        self.recorded: list[RecordedEvent] = []
        self.jobs: dict[JobId, Ad] = {}
        self.finished: dict[JobId, Ad] = {}
        self.commands: dict[str, list[bytes]] = {}
        self.answers: dict[str, msgspec.Struct] = {}
        self.stalls = 0
        self.silent = False
        self.history_works = True
        self.clock: Callable[[], float] = time.time
        """When what is recorded happens, seconds since the epoch."""
        self.verdict = Verdict(cycle=None, at=0.0)
        self.ads: list[Ad] = []
        self.asked: list[QueryJobs] = []
        self._frame = 0
        self._stream = StreamSpec(name=subjects.event_stream(SHARD), subjects=[subjects.events(SHARD)])

    @property
    def payload_limit(self) -> int:
        return self._bus.payload_limit

    async def serve(self) -> None:
        """Answer from now on."""
        await self.serve_schedd()
        await self._bus.serve(
            "accounting",
            "accounting",
            [
                Served(accounting.QUERY_HISTORY, self.query_history),
                Served(accounting.QUERY_USAGE, self.query_usage),
            ],
            version="1.0.0",
        )
        await self._bus.serve("negotiator", "negotiator", [Served(negotiator.WHY, self.why)], version="1.0.0")
        await self._bus.serve(
            "collector", "collector", [Served(collector.QUERY_ADS, self.query_ads)], version="1.0.0"
        )

    async def serve_schedd(self) -> None:
        """Answer as the schedd alone."""
        await self._bus.serve(
            "schedd",
            "schedd",
            [
                Served(schedd.SUBMIT, self.submit),
                Served(schedd.ACT, self.act),
                Served(schedd.QUERY_JOBS, self.query_jobs),
                Served(schedd.QUERY_EVENTS, self.query_events),
                Served(schedd.EXPLAIN, self.explain),
            ],
            version="1.0.0",
        )

    async def record(self, *changes: tuple[str, Event]) -> Position:
        """Something happened: on the record, in the ads, and on the bus."""
        self._frame += 1
        at = int(self.clock() * 1e6)
        entries: list[Entry] = []
        for stream, event in changes:
            version = 1 + sum(one.stream == stream for one in self.recorded)
            data = events.encode(event)
            self.recorded.append(
                RecordedEvent(stream=stream, version=version, frame=self._frame, at=at, data=data)
            )
            entries.append(Entry(stream, version, events.tag_of(event), data))
            self._fold(stream, event, at)
        frame = Frame(SHARD, 1, self._frame, len(self.recorded) - len(entries) + 1, at, entries)
        if not self.silent:
            data = frames.encode(frame)
            if len(data) > self._bus.payload_limit:
                data = frames.encode(frames.hollow(frame))
            last = await self._bus.ensure_stream(self._stream)
            await self._bus.append(self._subjects.events(SHARD), data, expect_last=last)
        return Position(SHARD, self._frame)

    def _fold(self, stream: str, event: Event, at: int) -> None:
        if isinstance(event, ClusterSubmitted):
            for proc in range(len(event.rows)):
                self.jobs[JobId(event.cluster, proc)] = job_ad(event, at, proc, schedd="schedd")
            return
        job = JobId.parse(stream.partition("/")[2])
        apply(self.jobs[job], event, at)  # type: ignore[arg-type]
        if ended(self.jobs[job]):
            self.finished[job] = self.jobs.pop(job)

    async def _once(self, request: Any) -> msgspec.Struct | None:
        self.commands.setdefault(request.id, []).append(msgspec.msgpack.encode(request))
        if self.stalls:
            self.stalls -= 1
            raise RefusedError("busy", "not now")
        return self.answers.get(request.id)

    async def submit(self, request: Submit, caller: Identity) -> Submitted:
        if (first := await self._once(request)) is not None:
            assert isinstance(first, Submitted)
            return first
        cluster = 1 + max((job.cluster for job in (*self.jobs, *self.finished)), default=0)
        event = ClusterSubmitted(
            cluster=cluster, owner=caller.name, ad=request.ad, columns=request.columns, rows=request.rows
        )
        position = await self.record((f"cluster/{cluster}", event))
        answer = Submitted(cluster=cluster, count=len(request.rows), position=position)
        self.answers[request.id] = answer
        return answer

    async def act(self, request: Act, caller: Identity) -> Acted:
        if (first := await self._once(request)) is not None:
            assert isinstance(first, Acted)
            return first
        outcomes: list[JobOutcome] = []
        changes: list[tuple[str, Event]] = []
        for job in self._selected(request.select):
            status = STATUS[int(str(self.jobs[job]["JobStatus"]))]
            if request.action != "remove" and (request.action == "release") != (status == "held"):
                outcomes.append(JobOutcome(job, "bad_status", status))
                continue
            changes.append((f"job/{job}", _event(request, caller)))
            outcomes.append(JobOutcome(job, "done", status))
        known = {one.job for one in outcomes}
        outcomes += [JobOutcome(job, "not_found") for job in request.select.jobs if job not in known]
        runs = [OutcomeRun(one.job.cluster, one.job.proc, 1, one.outcome, one.status) for one in outcomes]
        answer = Acted(runs=runs, position=await self.record(*changes))
        self.answers[request.id] = answer
        return answer

    async def query_jobs(self, request: QueryJobs, caller: Identity) -> JobAds:
        self.asked.append(request)
        jobs = [self.jobs[job] for job in self._selected(request.select)]
        wanted = {name.lower() for name in request.projection}
        shown = [{n: v for n, v in ad.items() if not wanted or n.lower() in wanted} for ad in jobs]
        return JobAds(jobs=shown[: request.limit or None], total=len(jobs))

    async def query_events(self, request: QueryEvents, caller: Identity) -> JobEvents:
        streams = {f"cluster/{request.job.cluster}", f"job/{request.job}"}
        found = [event for event in self.recorded if event.stream in streams]
        if not found:
            raise RefusedError("not_found", f"job {request.job} was never submitted")
        return JobEvents(events=found, shard=SHARD)

    async def explain(self, request: Explain, caller: Identity) -> Explanation:
        ad = self.jobs.get(request.job)
        if ad is None:
            raise RefusedError("not_found", "gone")
        status = STATUS[int(str(ad["JobStatus"]))]
        return Explanation(
            job=request.job,
            status=status,
            reason=str(ad.get("HoldReason", "")),
            submitter=str(ad["Owner"]),
            autocluster=1 if status == "idle" else None,
            ad=ad,
        )

    async def query_history(self, request: QueryHistory, caller: Identity) -> History:
        if not self.history_works:
            raise RefusedError("broken", "no history today")
        select = Select(jobs=request.jobs, clusters=request.clusters, owners=request.owners)
        found = [ad for job, ad in self.finished.items() if _named(job, ad, select)]
        return History(jobs=found[::-1][: request.limit])

    async def query_usage(self, request: QueryUsage, caller: Identity) -> UsageReport:
        usage = OwnerUsage(owner="ada", jobs_completed=3, attempts=4, wall=5.0, slot_time=6.0, cpu=7.0)
        return UsageReport(owners=[usage])

    async def why(self, request: Why, caller: Identity) -> Verdict:
        return self.verdict

    async def query_ads(self, request: QueryAds, caller: Identity) -> Ads:
        return Ads(ads=[ad for ad in self.ads if request.type in {"", ad["MyType"]}])

    def _selected(self, select: Select) -> Sequence[JobId]:
        constraint = parse(select.constraint or "true")
        return [
            job
            for job, ad in sorted(self.jobs.items())
            if _named(job, ad, select) and is_true(evaluate(constraint, my=ClassAd.from_wire(ad)))
        ]


def _event(request: Act, caller: Identity) -> Event:
    match request.action:
        case "hold":
            return JobHeld(code=1, reason=request.reason, by=caller.name)
        case "release":
            return JobReleased(reason=request.reason, by=caller.name)
        case "remove":
            return JobRemoved(reason=request.reason, by=caller.name)
        case "remove_x":
            return JobLeft(reason=request.reason, by=caller.name)
        case "unroute":
            return JobUnrouted(number=1, reason=request.reason, by=caller.name)
        case order:
            return JobOrdered(attempt=1, order=order, reason=request.reason, by=caller.name)


def _named(job: JobId, ad: Ad, select: Select) -> bool:
    if not (select.jobs or select.clusters or select.owners):
        return True
    return job in select.jobs or job.cluster in select.clusters or ad["Owner"] in select.owners


async def settle() -> None:
    """Let what was published arrive."""
    await asyncio.sleep(0.05)
