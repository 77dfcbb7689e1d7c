"""
The queue of one schedd: the fold of everything recorded in its shard, indexed for the questions asked of it.

`apply` is the only way to change it. It is total: what is recorded has happened. For each event it returns which rows
of the working set changed, so that start-up reads those rows instead of history; finished jobs have none.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Final, cast, get_args

import msgspec

from kettle.jobs import apply as apply_to_ad
from kettle_services.schedd.domain.claims.claim import Claim
from kettle_services.schedd.domain.jobs.attempt import DURING_ATTEMPT
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
from kettle_services.schedd.domain.queue.queued_jobs import QueuedJobs
from kettle_services.schedd.domain.queue.routing import Routing, route_of
from kettle_services.schedd.domain.queue.rows import LEFT, NEWEST, Change
from kettle_services.schedd.domain.queue.runs import runs_alike
from kettle_services.schedd.domain.queue.saved_jobs import row_of
from kettle_services.schedd.domain.queue.shared_rows import PAGE, SharedRows
from kettle_services.schedd.domain.queue.tally import StatusTally
from kettle_services.schedd.domain.queue.waiting import DelayedJobs
from kettle_services.schedd.domain.submission.cluster import Cluster, cluster_of, clusters_of
from kettle_services.schedd.domain.submission.departed import DepartedJobs
from kettle_services.schedd.domain.submission.submitted_together import SubmittedTogether, Together
from kettle_wire.ads import Ad
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
    JobEdited,
    JobEvent,
    JobRouted,
    JobsChanged,
    JobUnrouted,
    decode,
)
from kettle_wire.jobs import JobId

JOB: Final = "job/"
"""How the streams of single jobs begin."""
JOB_EVENTS: Final[frozenset[type[JobEvent]]] = frozenset(get_args(JobEvent))


class Unfit(Exception):  # noqa: N818 - says that the log and this code disagree; nothing catches it
    """An event that cannot follow what was folded so far: the log is damaged or this code is wrong."""


_NOTHING: Final[Mapping[JobId, QueuedJob]] = {}
_encode = msgspec.msgpack.Encoder().encode


def job_stream(job: JobId) -> str:
    """The stream of one job's own events."""
    return f"{JOB}{job.cluster}.{job.proc}"


def factory_stream(cluster: int) -> str:
    """The stream of how a cluster's jobs are made, if they are made little by little."""
    return f"factory/{cluster}"


def job_of_stream(stream: str) -> JobId:
    """Inverse of `job_stream`."""
    return JobId.parse(stream.removeprefix(JOB))


class Queue:
    """
    Clusters, jobs and claims of one schedd, and what is asked of them so often that it is counted along.

    An index is told of jobs that become what they are (`enter`), and that they are that no longer (`leave`).
    """

    def __init__(self, schedd: str, *, significant: Iterable[str] = (), saved: bool = True) -> None:
        """
        `saved`: somebody saves the rows that `apply` returns; without, there are none but of what has left.
        """
        self.schedd = schedd
        self._saved = saved
        self.significant: tuple[str, ...] = tuple(significant)
        """Attributes that decide a job's autocluster, besides those that always do."""
        self.clusters: dict[int, Cluster] = {}
        self.jobs: Final = QueuedJobs()
        self.claims: dict[str, Claim] = {}
        self.newest_cluster = 0
        self.changed_together: Final[set[int]] = set()
        """Clusters of which something was recorded of many jobs at once."""
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

    def version(self, job: JobId) -> int:
        """
        The version of the stream of a job of which the last was recorded together with others; 0: of others it is not known here.
        """
        cluster, entry = self.clusters.get(job.cluster), self.jobs.find(job)
        if cluster is None or cluster.together is None or entry is None:
            return 0
        return cluster.together.version(job.proc, entry)

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
                return [Change(stream, _encode((event, at)))] if self._saved else []
            case ClaimEnded():
                self.claim_use.ended(event.claim)
                return [Change(stream, None)]
            case _:
                raise Unfit(f"an event {type(event).__name__} does not belong into the shard of a schedd")

    def _submitted(self, stream: str, event: ClusterSubmitted, at: int) -> list[Change]:
        self.admit(event, at)
        if not self._saved:
            return []
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
        together: SharedRows | None = None,
        factory: Factory | None = None,
    ) -> None:
        """
        Add a submission; the jobs in `gone` have left the queue already, those in `known` have a past, and others have it `together`.
        """
        cluster = cluster_of(event, at, gone or DepartedJobs(), factory, self.significant)
        cluster.together = together
        self._admit(cluster, known)

    def _admit(self, cluster: Cluster, known: Mapping[JobId, QueuedJob]) -> None:
        event = cluster.submitted
        self.clusters[event.cluster] = cluster
        self.newest_cluster = max(self.newest_cluster, event.cluster)
        self.staying.note(event.cluster, event.ad, event.columns)
        if cluster.factory is not None and cluster.factory.unmade:
            self.unmade.add(event.cluster)
        if cluster.together is not None:
            self.changed_together.add(event.cluster)
        past = partial(_past, cluster, known)
        for _, run in groupby(cluster.jobs(), key=lambda job: id(past(job))):
            jobs = list(run)
            entry = past(jobs[0])
            self.jobs.put_all(jobs, entry)
            if entry is not FRESH:
                cluster.edit(entry.edited)
                self.staying.note(event.cluster, entry.edited)
            self._enter(alike(cluster, entry, jobs))

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
            self.jobs.put(job, FRESH)
            self._enter(alike(cluster, FRESH, [job]))
        if cluster.empty:
            return self._forget(event.cluster)
        return [Change(factory_stream(event.cluster), _encode(cluster.factory))] if self._saved else []

    def _job(self, stream: str, event: JobEvent, at: int) -> list[Change]:
        job = job_of_stream(stream)
        entry = self._become([job], self._known(job, event), event, at)
        if entry.job.over:
            return [Change(stream, None), *self._left(job.cluster, [job])]
        return [Change(stream, row_of(entry))] if self._saved else []

    def _jobs(self, stream: str, event: JobsChanged, at: int) -> list[Change]:
        """
        The single event of each of many jobs: the same as one after the other, but jobs that are alike are worked out once
        and share their entry, which nobody changes.
        """
        single = cast("JobEvent", decode(bytes(event.data)))
        if type(single) not in JOB_EVENTS:
            raise Unfit(f"an event {event.type} does not belong into the stream of a job")
        number = event.cluster
        if (cluster := self.clusters.get(number)) is None:
            raise Unfit(f"{type(single).__name__} of cluster {number}, which is not in the queue")
        shared = cluster.together = cluster.together or SharedRows(number)
        self.changed_together.add(number)
        rows: list[Change] = []
        pages: set[int] = set()
        for run in runs_alike(self.jobs, cluster, event.jobs):
            jobs = run.jobs(number)
            before = self._known(jobs[0], single) if run.before is None else run.before
            if before is not FRESH:
                own = (job for job in jobs if not shared.version(job.proc, before))
                rows += (Change(job_stream(job), None) for job in own)
            entry = self._become(jobs, before, single, at, like=shared.newest(run.version))
            if entry.job.over:
                rows += self._left(number, jobs)
            else:
                shared.change(run.ranges, entry, run.version)
                for first, count in run.ranges:
                    pages.update(range(first // PAGE, (first + count - 1) // PAGE + 1))
        if number in self.clusters and self._saved:
            rows += (Change(*shared.row(page)) for page in sorted(pages))
            rows.append(Change(stream, _encode(None)))
        return rows

    def _known(self, job: JobId, event: JobEvent) -> QueuedJob:
        if (entry := self.jobs.get(job)) is None:
            raise Unfit(f"{type(event).__name__} of job {job}, which is not in the queue")
        return entry

    def _become(
        self, jobs: list[JobId], before: QueuedJob, event: JobEvent, at: int, *, like: QueuedJob | None = None
    ) -> QueuedJob:
        """
        Jobs of one cluster that were alike are alike again, and as others are, if they are `like` those.
        """
        cluster = self.clusters[jobs[0].cluster]
        if isinstance(event, JobEdited | JobRouted | JobUnrouted):
            cluster.edit(event.attributes)
            self.staying.note(jobs[0].cluster, event.attributes)
        state = evolve(before.job, event)
        if state.over:  # nobody sees what the event would change of an ad that is not in the queue any more
            entry = QueuedJob(state)
        else:
            changed = dict(before.changed) or cluster.base(jobs[0].proc)
            apply_to_ad(changed, event, at)
            entry = after(before, state, changed, event)
            if like is not None and entry == like:
                entry = like
        if type(event) in DURING_ATTEMPT and before.job.claim and not cluster.routed:
            self.jobs.put_all(jobs, entry)
            return entry
        were = alike(cluster, before, jobs)
        for index in self._indexes:
            index.leave(were)
        if entry.job.over:
            self.jobs.remove(jobs)
        else:
            self.jobs.put_all(jobs, entry)
            self._enter(were.after(entry))
            if isinstance(event, JobUnrouted) and not route_of(before):
                self.routing.told(jobs)
        return entry

    def _enter(self, jobs: JobsAlike) -> None:
        for index in self._indexes:
            index.enter(jobs)

    def _left(self, number: int, jobs: list[JobId]) -> list[Change]:
        """Jobs of a cluster are in the queue no more."""
        cluster = self.clusters[number]
        for job in jobs:
            cluster.gone.add(job.proc)
        if cluster.empty:
            return self._forget(number)
        if not self._saved:
            return []
        return [Change(f"cluster/{number}{LEFT}{end}", row) for end, row in cluster.gone.rows_of(jobs)]

    def _forget(self, number: int) -> list[Change]:
        """A cluster of which no job is in the queue, nor will be."""
        cluster, stream = self.clusters.pop(number), f"cluster/{number}"
        self.jobs.forget(number)
        self.staying.clusters.discard(number)
        if cluster.among is not None:
            rows = self.together.left(cluster.among, number, self.newest_cluster)
        else:
            rows = [
                Change(stream, None),
                *(Change(f"{stream}{LEFT}{end}", None) for end in cluster.gone.rows),
            ]
        if cluster.together is not None:
            self.changed_together.discard(number)
            rows += (Change(name, None) for name in cluster.together.rows)
        return rows if cluster.factory is None else [*rows, Change(factory_stream(number), None)]

    def cooled(self, job: JobId) -> None:
        """The job has waited long enough after its failures."""
        if job in self.waiting.cooling:
            self.demand.cooled(alike(self.clusters[job.cluster], self.jobs[job], [job]))

    def due(self, job: JobId) -> None:
        """The time of a job that waited for it has come."""
        if job in self.waiting.deferred:
            self.demand.due(alike(self.clusters[job.cluster], self.jobs[job], [job]))


def _past(cluster: Cluster, known: Mapping[JobId, QueuedJob], job: JobId) -> QueuedJob:
    """What a job of a cluster is that comes into the queue."""
    entry = known.get(job)
    if entry is None and cluster.together is not None:
        entry = cluster.together.entry(job.proc)
    return FRESH if entry is None else entry
