"""What people ask about jobs in the queue."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.log import Log
from kettle.jobs.private_attributes import for_others
from kettle_services.schedd.claims.refusals import Refusals
from kettle_services.schedd.domain.jobs import deferral
from kettle_services.schedd.domain.jobs.universes import at_home
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.jobs.local_universe import LocalUniverse
from kettle_services.schedd.queue.constraint import Constraint, parsed
from kettle_services.schedd.queue.encoded_ads import EncodedAds
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.selection import LOOK, listed, selected_jobs
from kettle_services.schedd.queue.time_slice import TimeSlice
from kettle_wire.ads import Ad
from kettle_wire.codes import JobStatus, RefusalCode
from kettle_wire.commands.schedd import (
    Explain,
    Explanation,
    JobAds,
    JobEvents,
    QueryEvents,
    QueryJobs,
    RecordedEvent,
)
from kettle_wire.events import FactorySubmitted
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

PAGE_S: Final = 1.0
"""Seconds of looking after which a page ends, however little was found: its caller waits for it."""


class Queries:
    """Answers query_jobs, query_events and explain."""

    def __init__(
        self,
        log: Log,
        recorder: QueueRecorder,
        home_jobs: LocalUniverse,
        factories: Factories,
        limits: QueueLimits,
        refusals: Refusals,
        elsewhere: Callable[[JobId], str] = lambda _job: "",
        super_users: Collection[str] = (),
    ) -> None:
        """`elsewhere`: what other pools are to an idle job, as a sentence."""
        self._super_users = super_users
        self._elsewhere = elsewhere
        self._log = log
        self._recorder = recorder
        self._queue = recorder.queue
        self._home_jobs = home_jobs
        self._factories = factories
        self._limits = limits
        self._refusals = refusals

    @property
    def _shard(self) -> str:
        return self._recorder.shard.name

    async def query_jobs(self, request: QueryJobs, caller: Identity) -> JobAds:
        """
        Job ads of a selection, in queue order: everybody may look, but not at everything.

        Raises RefusedError if they are more than the bus carries, and no pages were asked for.
        """
        if request.totals:
            return await self._totals(request)
        select, queue, began = request.select, self._queue, time.monotonic()
        expression = parsed(select.constraint)
        constraint = None if expression is None else Constraint(queue, expression, time.time())
        ads = EncodedAds(queue, request.projection, None if self._sees_all(caller) else caller.name)
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
            for owner in owners or set(queue.owners.values()):
                counts.update(queue.owned(owner))
            attended = (
                claim.job
                for claim in queue.claims.values()
                if claim.job is not None and (not owners or queue.owner(claim.job) in owners)
            )
        else:
            jobs = [job for job in await selected_jobs(queue, select) if job in queue.jobs]
            counts = Counter(queue.jobs[job].job.status for job in jobs)
            attended = (job for job in jobs if queue.jobs[job].job.suspended)
        still = sum(
            queue.jobs[job].job.status == "running" and queue.jobs[job].job.suspended for job in attended
        )
        counts.update(running=-still, suspended=still)
        return JobAds(
            jobs=[],
            total=counts.total(),
            unmade=self._factories.unmade(select),
            statuses={status: count for status, count in counts.items() if count},
        )

    def _sees_all(self, caller: Identity) -> bool:
        """Services and super users of the queue see all of everybody's jobs."""
        return caller.kind != "user" or caller.name in self._super_users

    async def query_events(self, request: QueryEvents, caller: Identity) -> JobEvents:
        """Everything recorded of a job."""
        del caller
        expected = self._expected(request.job)
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

    def _expected(self, job: JobId) -> bool:
        """Whether the job is in the queue, or will be."""
        made = self._queue.factory(job.cluster)
        return job in self._queue.jobs or (made is not None and made.made <= job.proc < made.size)

    async def explain(self, request: Explain, caller: Identity) -> Explanation:
        """Why a job is where it is, as far as the queue knows."""
        entry = self._queue.jobs.get(request.job)
        if entry is None and self._expected(request.job):
            raise RefusedError(RefusalCode.REFUSED, self._factories.why_not(request.job.cluster))
        if entry is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"job {request.job} is not in the queue of {self._queue.schedd}"
            )
        ad = self._queue.ad(request.job)
        own = self._sees_all(caller) or self._queue.owner(request.job) == caller.name
        return Explanation(
            job=request.job,
            status=entry.job.status,
            reason=self._reason(request.job, ad),
            submitter=self._queue.submitter(request.job),
            autocluster=self._queue.autocluster(request.job) if entry.job.runnable else None,
            ad=ad if own else for_others(ad),
            ordered=entry.job.orders.standing,
        )

    def _reason(self, job: JobId, ad: Ad) -> str:
        state = self._queue.jobs[job].job
        if job in self._queue.deferred:
            return deferral.waits(ad, time.time())
        if job in self._queue.cooling:
            return (
                f"its last {state.failures} attempts failed, so it waits {state.cooling:g} s; the last one because: "
                f"{ad.get('VacateReason', 'unknown')}"
            )
        if state.runnable and at_home(self._queue.universe(job)):
            return self._home_jobs.explain(job)
        if state.runnable:
            key = self._queue.submitter(job), self._queue.autocluster(job)
            said = (
                self._limits.limit_in_force(key[0]) or self._refusals.last_refusal(key),
                self._elsewhere(job),
            )
            return "; ".join(filter(None, said))
        return _reason(state.status, ad)


def _reason(status: str, ad: Ad) -> str:
    match status:
        case "held":
            return str(ad.get("HoldReason", ""))
        case "removed":
            return str(ad.get("RemoveReason", ""))
        case "running":
            how = "suspended" if ad.get("JobStatus") == JobStatus.SUSPENDED else "running"
            return f"{how} on {ad.get('RemoteHost', 'a claimed slot')}"
        case _:
            return ""
