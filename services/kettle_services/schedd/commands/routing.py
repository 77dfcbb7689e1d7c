"""What a compute entrypoint asks: which jobs have no route, and to record what it has decided."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from kettle.eventsourcing.command_pipeline import Decision, Recording
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.commands.entrypoint_door import EntrypointDoor
from kettle_services.schedd.domain.jobs.commands import Hold
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.domain.queue.routing import VoTally
from kettle_services.schedd.domain.submission import routes
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_services.schedd.domain.submission.vo_limits import VoLimits
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.codes import HoldCode
from kettle_wire.commands.routing import (
    JobsRouted,
    ListUnrouted,
    NotRouted,
    Numbered,
    RouteCount,
    RouteJobs,
    Routing,
    Unrouted,
    UnroutedJob,
    VoCount,
)
from kettle_wire.events import Event, JobEvent
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_ANSWER_BYTES: Final = 4 * 1024 * 1024
_encode: Final = msgspec.msgpack.Encoder().encode


class RoutingCommands:
    """Answers list_unrouted and route_jobs."""

    def __init__(
        self,
        recorder: QueueRecorder,
        seal: AttributeSeal,
        door: EntrypointDoor,
        vos: Mapping[str, VoLimits],
    ) -> None:
        self._door = door
        self._vos = vos
        self._recorder = recorder
        self._queue = recorder.queue
        self._seal = seal
        self._news = asyncio.Event()
        self._known = 0
        self._questions = 0
        """Counts how often it was asked what waits."""
        recorder.on_change(self._on_event)

    def _on_event(self, event: Event) -> None:
        del event
        if self._queue.routing.news != self._known:
            self._known = self._queue.routing.news
            self._news.set()

    async def list_unrouted(self, request: ListUnrouted, caller: Identity) -> Unrouted:
        """
        Jobs that wait; the answer is put off while it would say nothing new.

        Each job is told of once.  An earlier question has nobody who waits for its answer any more, so it takes none.
        """
        del caller
        routing = self._queue.routing
        self._door.draining = request.draining
        self._questions += 1
        question = self._questions
        self._news.set()
        if not request.news:
            routing.tell_again()
        with suppress(TimeoutError):
            async with asyncio.timeout(request.wait):
                while question == self._questions and routing.news == request.news and not routing.untold:
                    self._news.clear()
                    await self._news.wait()
        if question != self._questions:
            return Unrouted(
                news=request.news,
                jobs=[],
                left=[],
                waiting=len(routing.awaiting),
                routes=self._counts(),
                vos=self._vo_counts(),
            )
        jobs: list[UnroutedJob] = []
        size = 0
        while len(jobs) < request.most and size < _ANSWER_BYTES and (found := routing.next_untold(1)):
            jobs.append(self._unrouted(found[0]))
            size += len(_encode(jobs[-1].ad))
        left = [job for job in routing.take_left() if job not in routing.awaiting]
        return Unrouted(
            news=routing.news,
            jobs=jobs,
            left=left,
            waiting=len(routing.awaiting),
            routes=self._counts(),
            vos=self._vo_counts(),
        )

    def _counts(self) -> list[RouteCount]:
        return [
            RouteCount(
                route=name,
                jobs=tally.jobs,
                idle=tally.idle,
                running=tally.running,
                held=tally.held,
                failed=tally.failed,
                failure=tally.failure,
            )
            for name, tally in sorted(self._queue.routing.routes.items())
        ]

    def _vo_counts(self) -> list[VoCount]:
        return [self._vo_count(vo) for vo in sorted({*self._queue.routing.vos, *self._vos})]

    def _vo_count(self, vo: str) -> VoCount:
        tally, limits = self._queue.routing.vos.get(vo, VoTally()), self._vos.get(vo)
        return VoCount(
            vo=vo,
            jobs=tally.jobs,
            idle=tally.idle,
            running=tally.running,
            held=tally.held,
            max_jobs=limits.max_jobs if limits else None,
            max_idle=limits.max_idle if limits else None,
            max_running=limits.max_running if limits else None,
            spooled=tally.spooled,
            max_spool=limits.max_spool or None if limits else None,
        )

    def _unrouted(self, job: JobId) -> UnroutedJob:
        entry = self._queue.jobs[job]
        return UnroutedJob(
            job=job,
            number=routes.said_before(entry),
            ad=self._queue.ad(job),
            reason=str(entry.changed.get("UnroutedReason", "")),
        )

    async def route_jobs(self, request: RouteJobs, caller: Identity) -> Decision[JobsRouted]:
        """Routes of jobs, and reasons why some have none."""
        del caller
        alike: list[tuple[JobId, JobEvent]] = []
        apart: list[tuple[str, Event]] = []
        refused: list[NotRouted] = []
        stale: list[JobId] = []
        for routing in request.routings:
            try:
                routes.check(routing)
            except Unacceptable as refusal:
                refused += [NotRouted(each.job, str(refusal)) for each in routing.jobs]
                continue
            for each in routing.jobs:
                if (said := self._known_to(each)) != each.number - 1:
                    stale += [] if said is None else [each.job]
                    continue
                try:
                    events = self._decided(routing, each)
                except Unacceptable as refusal:
                    refused.append(NotRouted(each.job, str(refusal)))
                    continue
                if len(events) == 1:
                    alike.append((each.job, events[0]))
                else:
                    apart += ((job_stream(each.job), event) for event in events)
        changes: Recording = [*self._recorder.record_grouped(sorted(alike, key=lambda one: one[0])), *apart]
        return Decision(lambda position: JobsRouted(position=position, refused=refused, stale=stale), changes)

    def _known_to(self, each: Numbered) -> int | None:
        """How often the entrypoint has said something of a job; None: it does not wait any more."""
        if each.job not in self._queue.routing.awaiting:
            return None
        return routes.said_before(self._queue.jobs[each.job])

    def _decided(self, routing: Routing, each: Numbered) -> list[JobEvent]:
        """What is to be recorded of one job that waits."""
        if not routing.route:
            return self._without(routing, each)
        owner = self._queue.owner(each.job)
        sealed = msgspec.structs.replace(routing, attributes=self._seal.sealed(routing.attributes, owner))
        ad = self._queue.ad(each.job)
        return [routes.route(ad, {name.lower(): name for name in ad}, sealed, each.number)]

    def _without(self, routing: Routing, each: Numbered) -> list[JobEvent]:
        entry = self._queue.jobs[each.job]
        said = routes.unroute(entry, routing.reason, each.number)
        events: list[JobEvent] = [said] if said is not None else []
        if routing.hold:
            waited = time.time() - self._queue.clusters[each.job.cluster].at / 1e6
            reason = f"no route has taken it for {waited / 60:.0f} minutes: {routing.reason}"
            events += decide(entry.job, Hold(reason=reason, by="", code=HoldCode.SystemPolicy))
        return events
