"""What people ask about jobs in the queue."""

import time
from collections import Counter
from collections.abc import Collection
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.log import Log
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.domain.authorization import sees_all
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.queue.ad_reader import AdReader
from kettle_services.schedd.queue.constraint import Constraint, parsed
from kettle_services.schedd.queue.encoded_ads import EncodedAds
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.selection import LOOK, listed, selected_jobs
from kettle_services.schedd.queue.time_slice import TimeSlice
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import (
    JobAds,
    JobEvents,
    OpenSealed,
    QueryEvents,
    QueryJobs,
    RecordedEvent,
    Unsealed,
)
from kettle_wire.events import FactorySubmitted
from kettle_wire.identity import Identity

PAGE_S: Final = 1.0
"""Seconds of looking after which a page ends, however little was found: its caller waits for it."""


class Queries:
    """Answers query_jobs and query_events."""

    def __init__(
        self,
        log: Log,
        recorder: QueueRecorder,
        factories: Factories,
        seal: AttributeSeal,
        super_users: Collection[str] = (),
    ) -> None:
        self._seal = seal
        self._super_users = super_users
        self._log = log
        self._recorder = recorder
        self._queue = recorder.queue
        self._factories = factories

    @property
    def _shard(self) -> str:
        return self._recorder.shard.name

    async def open_sealed(self, request: OpenSealed, caller: Identity) -> Unsealed:
        """Open what is bound to the caller's name."""
        return Unsealed(values=[self._seal.value(text, caller.name) for text in request.values])

    async def query_jobs(self, request: QueryJobs, caller: Identity) -> JobAds:
        """
        Job ads of a selection, in queue order: everybody may look, but not at everything.

        Raises RefusedError if they are more than the bus carries, and no pages were asked for.
        """
        if request.totals:
            return await self._totals(request)
        select, queue, began = request.select, self._queue, time.monotonic()
        expression = parsed(select.constraint)
        reader = AdReader(queue, self._seal, None if sees_all(caller, self._super_users) else caller.name)
        constraint = None if expression is None else Constraint(queue, expression, time.time(), reader)
        ads = EncodedAds(queue, request.projection, reader)
        jobs = listed(
            queue, jobs=select.jobs, clusters=select.clusters, owners=select.owners, after=request.after
        )
        turn, last, more = TimeSlice(), request.after, None
        for at, job in enumerate(jobs):
            if not at % LOOK:
                if request.page and at and (ads.size >= request.page or time.monotonic() > began + PAGE_S):
                    more = last
                    break
                ads.require_room()
                await turn.yield_if_over()
            last = job
            if job in queue.jobs and (constraint is None or constraint.holds(job)):
                ads.add(job)
                if ads.count == request.limit:
                    break
        return JobAds(
            jobs=ads.encoded(),
            total=ads.count,
            unmade=[] if request.after else self._factories.unmade(select),
            more=more,
        )

    async def _totals(self, request: QueryJobs) -> JobAds:
        """
        How many there are; of all jobs of everybody, or of some owners, that is known, and need not be counted.
        """
        queue, select = self._queue, request.select
        counts: Counter[str]
        if not (select.jobs or select.clusters) and parsed(select.constraint) is None:
            owners = set(select.owners)
            counts = Counter()
            for owner in owners or set(queue.tally.owners.values()):
                counts.update(queue.tally.of_owner(owner))
            attended = (
                claim.job
                for claim in queue.claims.values()
                if claim.job is not None and (not owners or queue.owner(claim.job) in owners)
            )
        else:
            jobs = [job for job in await selected_jobs(queue, select) if job in queue.jobs]
            counts = Counter(queue.jobs[job].job.status for job in jobs)
            attended = (job for job in jobs if queue.jobs[job].job.attempt.suspended)
        still = sum(
            queue.jobs[job].job.status == "running" and queue.jobs[job].job.attempt.suspended
            for job in attended
        )
        counts.update(running=-still, suspended=still)
        return JobAds(
            jobs=[],
            total=counts.total(),
            unmade=self._factories.unmade(select),
            statuses={status: count for status, count in counts.items() if count},
        )

    async def query_events(self, request: QueryEvents, caller: Identity) -> JobEvents:
        """Everything recorded of a job."""
        del caller
        expected = self._factories.expects(request.job)
        # What has become of it may be on its way to the log, which is read here.
        await self._recorder.shard.committed()
        events: list[RecordedEvent] = []
        types: list[str] = []
        for stream in (f"cluster/{request.job.cluster}", job_stream(request.job)):
            for frame, _ in await self._log.stream(self._shard, stream):
                entry = frame.entries[0]
                types.append(entry.type)
                events.append(
                    RecordedEvent(
                        stream=stream, version=entry.version, frame=frame.number, at=frame.at, data=entry.data
                    )
                )
        if not events:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"job {request.job} was never submitted to {self._queue.schedd}"
            )
        never = types == [FactorySubmitted.__struct_config__.tag] and not expected
        return JobEvents(events=events, shard=self._shard, never_made=never)
