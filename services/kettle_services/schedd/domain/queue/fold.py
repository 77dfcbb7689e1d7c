"""
The queue of one schedd: the fold of everything recorded in its shard, indexed for the questions asked of it.

`apply` is the only way to change it. It is total: what is recorded has happened. For each event it returns which rows
of the working set changed, so that start-up reads those rows instead of history; finished jobs have none.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast, get_args

import msgspec

from kettle.jobs import apply as apply_to_ad
from kettle_services.schedd.domain.claims.claim import Claim
from kettle_services.schedd.domain.jobs import universes
from kettle_services.schedd.domain.jobs.factory import Factory
from kettle_services.schedd.domain.jobs.factory import evolve as evolve_factory
from kettle_services.schedd.domain.jobs.gang import Gang
from kettle_services.schedd.domain.jobs.job import Job, evolve
from kettle_services.schedd.domain.jobs.leave_in_queue import LeaveInQueue
from kettle_services.schedd.domain.negotiation.concurrency_limits import LimitsInUse
from kettle_services.schedd.domain.queue.entry import FRESH, QueuedJob, after
from kettle_services.schedd.domain.queue.job_ads import QueuedJobAds
from kettle_services.schedd.domain.queue.routing import Routing, route_of, routed_universe
from kettle_services.schedd.domain.queue.rows import LEFT, NEWEST, Change
from kettle_services.schedd.domain.queue.runnable import Order, Runnable
from kettle_services.schedd.domain.queue.runs import runs_alike
from kettle_services.schedd.domain.submission.cluster import Cluster, cluster_of
from kettle_services.schedd.domain.submission.departed import DepartedJobs
from kettle_wire.ads import Ad
from kettle_wire.event_expansion import stream_of_cluster
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    FactoryChanged,
    FactoryClosed,
    FactoryEvent,
    FactoryMaterialized,
    JobAssigned,
    JobCompleted,
    JobEdited,
    JobEvent,
    JobRouted,
    JobsChanged,
    JobUnrouted,
    JobVacated,
    Usage,
    decode,
)
from kettle_wire.flocking import pool_of
from kettle_wire.jobs import JobId

JOB_EVENTS: Final[frozenset[type[JobEvent]]] = frozenset(get_args(JobEvent))
_ENDS_OR_BEGINS: Final = frozenset({JobAssigned, JobVacated, JobCompleted})


class Unfit(Exception):  # noqa: N818 - says that the log and this code disagree; nothing catches it
    """An event that cannot follow what was folded so far: the log is damaged or this code is wrong."""


_NOTHING: Final[Mapping[JobId, QueuedJob]] = {}
_encode = msgspec.msgpack.Encoder().encode
_WAITING: Final = frozenset({"idle", "held"})
"""The statuses that a factory's `max_idle` counts."""


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
    """Clusters, jobs and claims of one schedd."""

    def __init__(self, schedd: str, *, significant: Iterable[str] = ()) -> None:
        self.schedd = schedd
        self.clusters: dict[int, Cluster] = {}
        self.jobs: dict[JobId, QueuedJob] = {}
        self.claims: dict[str, Claim] = {}
        self.abroad: dict[str, str] = {}
        """Claims of machines of other pools -> the pool."""
        self.limits = LimitsInUse()
        """Concurrency limits that claims use."""
        self.newest_cluster = 0
        self.unmade: set[int] = set()
        """Clusters of which jobs are still to be made."""
        self.demand: dict[str, dict[int, Runnable]] = {}
        """Submitter -> autocluster -> jobs that may run now, on machines that are matched."""
        self.at_home: dict[str, dict[int, Runnable]] = {}
        """Submitter -> autocluster -> jobs that may run now, on the machine of the schedd."""
        self.in_batch: dict[str, dict[int, Runnable]] = {}
        """Submitter -> autocluster -> jobs that may run now, in a batch system."""
        self._unmatched = {**dict.fromkeys(universes.AT_HOME, self.at_home), universes.GRID: self.in_batch}
        self.routing: Final = Routing()
        """Jobs that an entrypoint routes."""
        self._owned: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.owners: Final[dict[str, str]] = {}
        """Submitter -> whose jobs are charged to it."""
        self.attendance: Counter[tuple[str, int]] = Counter()
        """(submitter, universe) -> jobs that run there."""
        self.cooling: set[JobId] = set()
        """Jobs that may run when `cooled` says so: their last attempts failed one after the other."""
        self.deferred: dict[JobId, bool] = {}
        """Jobs that could run but for the time; whether `due` has said that it has come."""
        self.unplanned: set[JobId] = set()
        """
        Those that have just become deferred, and some that are no longer: the code that plans their times empties it.
        """
        self.tally: dict[str, dict[str, int]] = {}
        """Submitter -> status -> number of jobs."""
        self.measured: dict[JobId, Usage] = {}
        """What live attempts use, as their workers said last. It is not recorded: a restart forgets it."""
        self.reconnecting: dict[JobId, int] = {}
        """How often it was tried to reach the workers of disconnected jobs. Neither is this."""
        self.renewed: dict[str, int] = {}
        """Startd -> when it last renewed the leases of its claims, seconds since 1970. Neither is this."""
        self.staying: Final = LeaveInQueue()
        """Jobs that want to be in the queue after their end."""
        self.significant: tuple[str, ...] = tuple(significant)
        """Attributes that decide a job's autocluster, besides those that always do."""

    # -- questions ---------------------------------------------------------------------------------------------------

    def ad(self, job: JobId) -> Ad:
        """The whole ad of a job in the queue; who looks at many of them takes a `View`."""
        return QueuedJobAds(self).ad(job)

    def factory(self, number: int) -> Factory | None:
        """What makes the jobs of a cluster, if there are some to be made."""
        return self.clusters[number].factory if number in self.unmade else None

    def owner(self, job: JobId) -> str:
        """Whose job it is."""
        return self.clusters[job.cluster].submitted.owner

    def submitter(self, job: JobId) -> str:
        """Who is charged for the job: the owner, or the owner within an accounting group."""
        cluster = self.clusters[job.cluster]
        charged = cluster.charged
        return charged if isinstance(charged, str) else charged(cluster.submitted.rows[job.proc])

    def owned(self, owner: str) -> Counter[str]:
        """Status -> how many jobs an owner has in the queue, no matter which name is charged."""
        return self._owned.get(owner, Counter())

    def autocluster(self, job: JobId) -> int:
        """The autocluster of a job in the queue."""
        return self.clusters[job.cluster].autocluster(job.proc, self.jobs[job].edited)

    def priority(self, job: JobId) -> int:
        """JobPrio."""
        return self.clusters[job.cluster].priority(job.proc, self.jobs[job].edited)

    def universe(self, job: JobId) -> int:
        """JobUniverse of a job in the queue."""
        cluster = self.clusters[job.cluster]
        if cluster.routed and (universe := routed_universe(self.jobs[job])) is not None:
            return universe
        return cluster.universe_of(job.proc)

    def requests(self, submitter: str, *, at_home: bool = False) -> list[tuple[Order, JobId, int, int]]:
        """(order, first job, autocluster, count) of each autocluster with runnable jobs, in order."""
        demand = self.at_home if at_home else self.demand
        found = [
            (best[0], best[1], autocluster, len(jobs))
            for autocluster, jobs in demand.get(submitter, {}).items()
            if (best := jobs.best()) is not None
        ]
        return sorted(found)

    def next_job(self, submitter: str, autocluster: int) -> JobId | None:
        """The job of the autocluster that should run first."""
        jobs = self._runnable(submitter, autocluster)
        best = jobs.best() if jobs is not None else None
        return best[1] if best is not None else None

    def runnable(self, submitter: str, autocluster: int) -> int:
        """How many jobs of the autocluster may run now."""
        jobs = self._runnable(submitter, autocluster)
        return len(jobs) if jobs is not None else 0

    def _runnable(self, submitter: str, autocluster: int) -> Runnable | None:
        demands = (self.demand, self.at_home, self.in_batch)
        found = (demand.get(submitter, {}).get(autocluster) for demand in demands)
        return next((jobs for jobs in found if jobs is not None), None)

    def _demand_of(self, job: JobId) -> dict[str, dict[int, Runnable]]:
        return self._unmatched.get(self.universe(job), self.demand)

    # -- changes -----------------------------------------------------------------------------------------------------

    def apply(self, stream: str, event: Event, at: int) -> list[Change]:
        """Fold one event, recorded at `at` microseconds; returns the changed rows of the working set."""
        if type(event) in JOB_EVENTS:  # of a struct, to find that it is none of fourteen others takes long
            return self._job(stream, cast("JobEvent", event), at)
        match event:
            case ClusterSubmitted():
                return self._submitted(stream, event, at)
            case FactoryMaterialized() | FactoryChanged() | FactoryClosed():
                return self._factory(event)
            case JobsChanged():
                return self._jobs(stream, event, at)
            case ClaimGranted():
                self.claimed(event, at)
                return [Change(stream, _encode((event, at)))]
            case ClaimEnded():
                self.abroad.pop(event.claim, None)
                if (ended := self.claims.pop(event.claim, None)) is not None:
                    self.limits.count(ended.granted.submitter, ended.granted.limits, -1)
                return [Change(stream, None)]
            case _:
                raise Unfit(f"an event {type(event).__name__} does not belong into the shard of a schedd")

    def claimed(self, event: ClaimGranted, at: int) -> None:
        """Take a claim in."""
        self.claims[event.claim] = Claim(event, at)
        if pool := pool_of(event.startd):
            self.abroad[event.claim] = pool
        self.limits.count(event.submitter, event.limits, 1)

    def _submitted(self, stream: str, event: ClusterSubmitted, at: int) -> list[Change]:
        self.admit(event, at)
        return [Change(stream, _encode((event, at))), Change(NEWEST, _encode(self.newest_cluster))]

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
        cluster = cluster_of(event, at, gone or DepartedJobs(), factory, self.significant)
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
                self._enter(cluster, [job], entry.job)
        if fresh:
            self._enter(cluster, fresh, FRESH.job)

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
            self._enter(cluster, [job], FRESH.job)
        stream = factory_stream(event.cluster)
        return self._forget(event.cluster) if cluster.empty else [Change(stream, _encode(cluster.factory))]

    def _job(self, stream: str, event: JobEvent, at: int) -> list[Change]:
        job = job_of_stream(stream)
        entry = self._become([job], self._known(job, event), event, at)
        if entry.job.over:
            return [Change(stream, None), *self._left(job)]
        return [Change(stream, _encode(entry))]

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
                state = _encode(entry)
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
        if type(event) in _ENDS_OR_BEGINS or self.reconnecting:
            for job in jobs:
                if type(event) in _ENDS_OR_BEGINS:
                    self.measured.pop(job, None)
                if not entry.job.disconnected:
                    self.reconnecting.pop(job, None)
        self._leave(cluster, jobs, before.job)
        if entry.job.over:
            for job in jobs:
                del self.jobs[job]
        else:
            self.jobs.update(dict.fromkeys(jobs, entry))
            self._enter(cluster, jobs, entry.job)
            if isinstance(event, JobUnrouted) and not route_of(before):
                self.routing.told(jobs)
        return entry

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
        rows = [Change(stream, None), *(Change(f"{stream}{LEFT}{end}", None) for end in cluster.gone.rows)]
        if cluster.together:
            rows.append(Change(stream_of_cluster(number), None))
        return rows if cluster.factory is None else [*rows, Change(factory_stream(number), None)]

    def _enter(self, cluster: Cluster, jobs: list[JobId], state: Job) -> None:
        """Count jobs of a cluster that are in the same state now, and offer them if they may run."""
        owner = cluster.submitted.owner
        self._owned[owner][state.status] += len(jobs)
        if state.status in _WAITING:
            cluster.waiting += len(jobs)
        if state.kept and state.ended:
            self.staying.kept.update(jobs)
        if cluster.routed:
            self.routing.count(self.jobs[jobs[0]], len(jobs), cluster.vo, jobs[0].cluster)
        for submitter, theirs in self._by_submitter(cluster, jobs):
            self.owners[submitter] = owner
            tally = self.tally.setdefault(submitter, {})
            tally[state.status] = tally.get(state.status, 0) + len(theirs)
        if state.runnable and state.cooling:
            self.cooling.update(jobs)
        elif state.runnable:
            self._ready(cluster, jobs)
        elif state.gang is not None:
            self._use(state.gang, jobs[-1])
        elif state.claim in self.claims:
            self.claims[state.claim] = msgspec.structs.replace(self.claims[state.claim], job=jobs[-1])
        self._attend(jobs, state, 1)

    def _use(self, gang: Gang, job: JobId | None) -> None:
        """The claims of all nodes are those of this job, or of none any more."""
        for claim in gang.claims:
            if claim in self.claims:
                self.claims[claim] = msgspec.structs.replace(self.claims[claim], job=job)

    def _attend(self, jobs: list[JobId], state: Job, count: int) -> None:
        for job in jobs if state.claim else ():
            if universes.unmatched(universe := self.universe(job)):
                self.attendance[self.submitter(job), universe] += count

    def _leave(self, cluster: Cluster, jobs: list[JobId], state: Job) -> None:
        """Inverse of `_enter`."""
        self._attend(jobs, state, -1)
        self._owned[cluster.submitted.owner][state.status] -= len(jobs)
        if state.status in _WAITING:
            cluster.waiting -= len(jobs)
        self.staying.kept.difference_update(jobs if state.kept else ())
        if cluster.routed:
            self.routing.count(self.jobs[jobs[0]], -len(jobs), cluster.vo, jobs[0].cluster)
        for submitter, theirs in self._by_submitter(cluster, jobs):
            self.tally[submitter][state.status] -= len(theirs)
        if state.runnable:
            offered = self.cooling or self.deferred or self.routing.awaiting
            self.withdraw(cluster, [job for job in jobs if self._offered(job)] if offered else jobs)
        elif state.gang is not None:
            self._use(state.gang, None)
        elif state.claim in self.claims:
            self.claims[state.claim] = msgspec.structs.replace(self.claims[state.claim], job=None)

    def withdraw(self, cluster: Cluster, jobs: list[JobId]) -> None:
        """Inverse of `offer`."""
        for demand, submitter, number, theirs in self._by_request(cluster, jobs):
            runnable = demand[submitter][number]
            for some, priority in self._by_priority(cluster, theirs):
                runnable.discard(some, priority)
            if not runnable:
                del demand[submitter][number]
                if not demand[submitter]:
                    del demand[submitter]

    def _offered(self, job: JobId) -> bool:
        """Whether a job that may run does not wait for its time; it waits no more."""
        if job in self.cooling:
            self.cooling.discard(job)
            return False
        if self.routing.leave(job):
            return False
        return self.deferred.pop(job, None) is not False

    def _by_submitter(self, cluster: Cluster, jobs: list[JobId]) -> Iterable[tuple[str, list[JobId]]]:
        if isinstance(cluster.charged, str):
            return [(cluster.charged, jobs)]
        groups = defaultdict[str, list[JobId]](list)
        for job in jobs:
            groups[self.submitter(job)].append(job)
        return groups.items()

    def _by_request(
        self, cluster: Cluster, jobs: list[JobId]
    ) -> Iterator[tuple[dict[str, dict[int, Runnable]], str, int, list[JobId]]]:
        """(demand, submitter, autocluster, jobs) of jobs of one cluster."""
        for submitter, theirs in self._by_submitter(cluster, jobs) if jobs else ():
            # They are in the same state, so they were edited alike.
            same = cluster.autoclusters.edited(self.jobs[theirs[0]].edited).same
            if cluster.universe is not None and same is not None:
                yield self._demand_of(theirs[0]), submitter, same, theirs
            else:
                for job in theirs:
                    yield self._demand_of(job), submitter, self.autocluster(job), [job]

    def cooled(self, job: JobId) -> None:
        """The job has waited long enough after its failures."""
        if job in self.cooling:
            self.cooling.discard(job)
            self._ready(self.clusters[job.cluster], [job])

    def due(self, job: JobId) -> None:
        """The time of a job that waited for it has come."""
        if self.deferred.get(job) is False:
            self.deferred[job] = True
            self.offer(self.clusters[job.cluster], [job])

    def _ready(self, cluster: Cluster, jobs: list[JobId]) -> None:
        if cluster.routed and not route_of(self.jobs[jobs[0]]):
            jobs = self.routing.await_routes(cluster, jobs, self._by_priority)
        if cluster.timed:
            self.deferred.update(dict.fromkeys(jobs, False))
            self.unplanned.update(jobs)
        else:
            self.offer(cluster, jobs)

    def offer(self, cluster: Cluster, jobs: list[JobId]) -> None:
        """Jobs of a cluster that are in the same state may run from now on."""
        for demand, submitter, number, theirs in self._by_request(cluster, jobs):
            runnable = demand.setdefault(submitter, {}).setdefault(number, Runnable())
            for some, priority in self._by_priority(cluster, theirs):
                runnable.add(some, priority)

    def _by_priority(self, cluster: Cluster, jobs: list[JobId]) -> Iterator[tuple[list[JobId], int]]:
        """Jobs of one cluster in the same state, with the priority that they have."""
        if "JobPrio" in cluster.submitted.columns:
            yield from (([job], self.priority(job)) for job in jobs)
        else:
            yield jobs, self.priority(jobs[0])
