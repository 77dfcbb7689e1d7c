"""
The queue of one schedd: the fold of everything recorded in its shard, indexed for the questions asked of it.

`apply` is the only way to change it. It is total: what is recorded has happened. For each event it returns which rows
of the working set changed, so that start-up reads those rows instead of history; finished jobs have none.
"""

from collections.abc import Iterable, Mapping
from typing import Final, cast, get_args

import msgspec

from kettle.jobs import apply as apply_to_ad
from kettle_services.schedd.domain.claims.claim import Claim
from kettle_services.schedd.domain.jobs.factory import Factory
from kettle_services.schedd.domain.jobs.factory import evolve as evolve_factory
from kettle_services.schedd.domain.jobs.job import evolve
from kettle_services.schedd.domain.jobs.leave_in_queue import LeaveInQueue
from kettle_services.schedd.domain.queue.alike import JobsAlike, QueueIndex, alike, submitter_of, universe_of
from kettle_services.schedd.domain.queue.attendance import Attendance
from kettle_services.schedd.domain.queue.claim_use import ClaimUse
from kettle_services.schedd.domain.queue.demand import JobDemand
from kettle_services.schedd.domain.queue.entry import FRESH, QueuedJob, after
from kettle_services.schedd.domain.queue.job_ads import QueuedJobAds
from kettle_services.schedd.domain.queue.live_reports import LiveReports
from kettle_services.schedd.domain.queue.routing import Routing, route_of
from kettle_services.schedd.domain.queue.rows import LEFT, NEWEST, Change
from kettle_services.schedd.domain.queue.runs import runs_alike
from kettle_services.schedd.domain.queue.saved_jobs import row_of
from kettle_services.schedd.domain.queue.tally import StatusTally
from kettle_services.schedd.domain.queue.waiting import DelayedJobs
from kettle_services.schedd.domain.submission.cluster import Cluster, cluster_of, clusters_of
from kettle_services.schedd.domain.submission.departed import DepartedJobs
from kettle_services.schedd.domain.submission.submitted_together import SubmittedTogether, Together
from kettle_wire.ads import Ad
from kettle_wire.event_expansion import stream_of_cluster
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    FactoryChanged,
    FactoryClosed,
    FactoryEvent,
    FactoryMaterialized,
    JobCheckpointed,
    JobContinued,
    JobDisconnected,
    JobEdited,
    JobEvent,
    JobNodeEnded,
    JobNodeStarted,
    JobOrdered,
    JobReconnected,
    JobRouted,
    JobsChanged,
    JobServed,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobTold,
    JobUnrouted,
    decode,
)
from kettle_wire.jobs import JobId

JOB_EVENTS: Final[frozenset[type[JobEvent]]] = frozenset(get_args(JobEvent))
_DURING_ATTEMPT: Final = frozenset({
    JobCheckpointed, JobContinued, JobDisconnected, JobNodeEnded, JobNodeStarted, JobOrdered, JobReconnected, JobServed,
    JobStarted, JobStepped, JobSuspended, JobTold,
})  # fmt: skip
"""What happens in the life of an attempt: afterwards the job counts as what it was before."""


class Unfit(Exception):  # noqa: N818 - says that the log and this code disagree; nothing catches it
    """An event that cannot follow what was folded so far: the log is damaged or this code is wrong."""


_NOTHING: Final[Mapping[JobId, QueuedJob]] = {}
_encode = msgspec.msgpack.Encoder().encode


def job_stream(job: JobId) -> str:
    """The stream of one job's own events."""
    return f"job/{job.cluster}.{job.proc}"


def factory_stream(cluster: int) -> str:
    """The stream of how a cluster's jobs are made, if they are made little by little."""
    return f"factory/{cluster}"


def job_of_stream(stream: str) -> JobId:
    """Inverse of `job_stream`."""
    return JobId.parse(stream.removeprefix("job/"))


class Queue:
    """
    Clusters, jobs and claims of one schedd, and what is asked of them so often that it is counted along.

    An index is told of jobs that become what they are (`enter`), and that they are that no longer (`leave`).
    """

    def __init__(self, schedd: str, *, significant: Iterable[str] = ()) -> None:
        self.schedd = schedd
        self.significant: tuple[str, ...] = tuple(significant)
        """Attributes that decide a job's autocluster, besides those that always do."""
        self.clusters: dict[int, Cluster] = {}
        self.jobs: dict[JobId, QueuedJob] = {}
        self.claims: dict[str, Claim] = {}
        self.newest_cluster = 0
        self.unmade: Final[set[int]] = set()
        """Clusters of which jobs are still to be made."""
        self.together: Final = SubmittedTogether()
        self.claim_use: Final = ClaimUse(self.claims)
        self.tally: Final = StatusTally()
        self.attendance: Final = Attendance()
        self.staying: Final = LeaveInQueue()
        """Jobs that want to be in the queue after their end."""
        self.routing: Final = Routing()
        """Jobs that an entrypoint routes."""
        self.waiting: Final = DelayedJobs()
        self.demand: Final = JobDemand(self.waiting, self.routing)
        self._indexes: Final[tuple[QueueIndex, ...]] = (
            self.claim_use,
            self.tally,
            self.attendance,
            self.staying,
            self.routing,
            self.demand,
        )
        self.live = LiveReports()
        """Not recorded and not folded: it is only shown in ads."""

    # -- questions ---------------------------------------------------------------------------------------------------

    def ad(self, job: JobId) -> Ad:
        """The whole ad of a job in the queue; who looks at many of them takes `QueuedJobAds`."""
        return QueuedJobAds(self).ad(job)

    def factory(self, number: int) -> Factory | None:
        """What makes the jobs of a cluster, if there are some to be made."""
        return self.clusters[number].factory if number in self.unmade else None

    def owner(self, job: JobId) -> str:
        """Whose job it is."""
        return self.clusters[job.cluster].submitted.owner

    def submitter(self, job: JobId) -> str:
        """Who is charged for the job: the owner, or the owner within an accounting group."""
        return submitter_of(self.clusters[job.cluster], job.proc)

    def autocluster(self, job: JobId) -> int:
        """The autocluster of a job in the queue."""
        return self.clusters[job.cluster].autocluster(job.proc, self.jobs[job].edited)

    def priority(self, job: JobId) -> int:
        """JobPrio."""
        return self.clusters[job.cluster].priority(job.proc, self.jobs[job].edited)

    def universe(self, job: JobId) -> int:
        """JobUniverse of a job in the queue."""
        return universe_of(self.clusters[job.cluster], self.jobs[job], job.proc)

    # -- changes -----------------------------------------------------------------------------------------------------

    def apply(self, stream: str, event: Event, at: int) -> list[Change]:
        """Fold one event, recorded at `at` microseconds; returns the changed rows of the working set."""
        if type(event) in JOB_EVENTS:  # of a struct, to find that it is none of fourteen others takes long
            return self._job(stream, cast("JobEvent", event), at)
        match event:
            case ClusterSubmitted():
                return self._submitted(stream, event, at)
            case ClustersSubmitted():
                return self._submitted_together(event, at)
            case FactoryMaterialized() | FactoryChanged() | FactoryClosed():
                return self._factory(event)
            case JobsChanged():
                return self._jobs(stream, event, at)
            case ClaimGranted():
                self.claim_use.granted(event, at)
                return [Change(stream, _encode((event, at)))]
            case ClaimEnded():
                self.claim_use.ended(event.claim)
                return [Change(stream, None)]
            case _:
                raise Unfit(f"an event {type(event).__name__} does not belong into the shard of a schedd")

    def _submitted(self, stream: str, event: ClusterSubmitted, at: int) -> list[Change]:
        self.admit(event, at)
        return [Change(stream, _encode((event, at))), Change(NEWEST, _encode(self.newest_cluster))]

    def _submitted_together(self, event: ClustersSubmitted, at: int) -> list[Change]:
        among, rows = self.together.submitted(event, at)
        self.admit_together(event, at, among)
        return [*rows, Change(NEWEST, _encode(self.newest_cluster))]

    def admit_together(
        self,
        event: ClustersSubmitted,
        at: int,
        among: Together,
        known: Mapping[JobId, QueuedJob] = _NOTHING,
    ) -> None:
        """Add those submissions of an event whose jobs have not left; the jobs in `known` have a past."""
        places = list(among.gone.among(among.count))
        for cluster in clusters_of(event, at, places, self.significant):
            cluster.among = among
            self._admit(cluster, known)

    def admit(
        self,
        event: ClusterSubmitted,
        at: int,
        *,
        gone: DepartedJobs | None = None,
        known: Mapping[JobId, QueuedJob] = _NOTHING,
        factory: Factory | None = None,
    ) -> None:
        """Add a submission; the jobs in `gone` have left the queue already, those in `known` have a past."""
        self._admit(cluster_of(event, at, gone or DepartedJobs(), factory, self.significant), known)

    def _admit(self, cluster: Cluster, known: Mapping[JobId, QueuedJob]) -> None:
        event = cluster.submitted
        self.clusters[event.cluster] = cluster
        self.newest_cluster = max(self.newest_cluster, event.cluster)
        self.staying.note(event.cluster, event.ad, event.columns)
        if cluster.factory is not None and cluster.factory.unmade:
            self.unmade.add(event.cluster)
        fresh: list[JobId] = []
        for job in cluster.jobs():
            entry = self.jobs[job] = known.get(job, FRESH)
            if entry is FRESH:
                fresh.append(job)
            else:
                cluster.edit(entry.edited)
                self.staying.note(event.cluster, entry.edited)
                self._enter(alike(cluster, entry, [job]))
        if fresh:
            self._enter(alike(cluster, FRESH, fresh))

    def _factory(self, event: FactoryEvent) -> list[Change]:
        cluster = self.clusters.get(event.cluster)
        if cluster is None or cluster.factory is None:
            raise Unfit(
                f"{type(event).__name__} of cluster {event.cluster}, which has no factory in the queue"
            )
        before = cluster.factory
        cluster.factory = evolve_factory(before, event)
        if not cluster.factory.unmade:
            self.unmade.discard(event.cluster)
        for proc in range(before.made, cluster.factory.made):
            job = JobId(event.cluster, proc)
            self.jobs[job] = FRESH
            self._enter(alike(cluster, FRESH, [job]))
        stream = factory_stream(event.cluster)
        return self._forget(event.cluster) if cluster.empty else [Change(stream, _encode(cluster.factory))]

    def _job(self, stream: str, event: JobEvent, at: int) -> list[Change]:
        job = job_of_stream(stream)
        entry = self._become([job], self._known(job, event), event, at)
        if entry.job.over:
            return [Change(stream, None), *self._left(job)]
        return [Change(stream, row_of(entry))]

    def _jobs(self, stream: str, event: JobsChanged, at: int) -> list[Change]:
        """
        The single event of each of many jobs: the same as one after the other, but jobs that are alike are worked out once
        and share their entry, which nobody changes.
        """
        single = cast("JobEvent", decode(bytes(event.data)))
        if type(single) not in JOB_EVENTS:
            raise Unfit(f"an event {event.type} does not belong into the stream of a job")
        all_of_them = (
            (JobId(event.cluster, proc), procs.version)
            for procs in event.jobs
            for proc in range(procs.first, procs.first + procs.count)
        )
        rows: list[Change] = []
        pages = dict[str, Change]()
        known = ((job, self._known(job, single), version) for job, version in all_of_them)
        for before, jobs, versions in runs_alike(
            known, lambda job: self.clusters[job.cluster].base(job.proc)
        ):
            self.clusters[event.cluster].together = True
            entry = self._become(jobs, before, single, at)
            if entry.job.over:
                rows += (Change(job_stream(job), None) for job in jobs)
                pages.update((change.stream, change) for job in jobs for change in self._left(job))
            else:
                state = row_of(entry)
                rows += (
                    Change(job_stream(job), state, version)
                    for job, version in zip(jobs, versions, strict=True)
                )
        if event.cluster in self.clusters:
            rows.append(Change(stream, _encode(None)))
        return [*rows, *pages.values()]

    def _known(self, job: JobId, event: JobEvent) -> QueuedJob:
        if (entry := self.jobs.get(job)) is None:
            raise Unfit(f"{type(event).__name__} of job {job}, which is not in the queue")
        return entry

    def _become(self, jobs: list[JobId], before: QueuedJob, event: JobEvent, at: int) -> QueuedJob:
        """Jobs of one cluster that were alike are alike again."""
        cluster = self.clusters[jobs[0].cluster]
        changed = dict(before.changed) or cluster.base(jobs[0].proc)
        apply_to_ad(changed, event, at)
        if isinstance(event, JobEdited | JobRouted | JobUnrouted):
            cluster.edit(event.attributes)
            self.staying.note(jobs[0].cluster, event.attributes)
        entry = after(before, evolve(before.job, event), changed, event)
        if type(event) in _DURING_ATTEMPT and before.job.claim and not cluster.routed:
            self.jobs.update(dict.fromkeys(jobs, entry))
            return entry
        were = alike(cluster, before, jobs)
        for index in self._indexes:
            index.leave(were)
        if entry.job.over:
            for job in jobs:
                del self.jobs[job]
        else:
            self.jobs.update(dict.fromkeys(jobs, entry))
            self._enter(were.after(entry))
            if isinstance(event, JobUnrouted) and not route_of(before):
                self.routing.told(jobs)
        return entry

    def _enter(self, jobs: JobsAlike) -> None:
        for index in self._indexes:
            index.enter(jobs)

    def _left(self, job: JobId) -> list[Change]:
        cluster = self.clusters[job.cluster]
        cluster.gone.add(job.proc)
        if cluster.empty:
            return self._forget(job.cluster)
        end, row = cluster.gone.row(job.proc)
        return [Change(f"cluster/{job.cluster}{LEFT}{end}", row)]

    def _forget(self, number: int) -> list[Change]:
        """A cluster of which no job is in the queue, nor will be."""
        cluster, stream = self.clusters.pop(number), f"cluster/{number}"
        self.staying.clusters.discard(number)
        if cluster.among is not None:
            rows = self.together.left(cluster.among, number, self.newest_cluster)
        else:
            rows = [
                Change(stream, None),
                *(Change(f"{stream}{LEFT}{end}", None) for end in cluster.gone.rows),
            ]
        if cluster.together:
            rows.append(Change(stream_of_cluster(number), None))
        return rows if cluster.factory is None else [*rows, Change(factory_stream(number), None)]

    def cooled(self, job: JobId) -> None:
        """The job has waited long enough after its failures."""
        if job in self.waiting.cooling:
            self.demand.cooled(alike(self.clusters[job.cluster], self.jobs[job], [job]))

    def due(self, job: JobId) -> None:
        """The time of a job that waited for it has come."""
        if job in self.waiting.deferred:
            self.demand.due(alike(self.clusters[job.cluster], self.jobs[job], [job]))
