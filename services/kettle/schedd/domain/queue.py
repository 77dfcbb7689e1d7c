"""
The queue of one schedd: the fold of everything recorded in its shard, indexed for the questions asked of it.

`apply` is the only way to change it. It is total: what is recorded has happened. For each event it tells which rows of the
working set changed, so that start-up reads those rows instead of history; finished jobs have none.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from typing import Final, cast, get_args

import msgspec

from kettle.jobs import apply as apply_to_ad
from kettle.schedd.domain import universes
from kettle.schedd.domain.claim import Claim
from kettle.schedd.domain.clusters import Cluster, cluster_of
from kettle.schedd.domain.concurrency import LimitsInUse
from kettle.schedd.domain.factory import Factory
from kettle.schedd.domain.factory import evolve as evolve_factory
from kettle.schedd.domain.gone import Gone
from kettle.schedd.domain.job import Job, evolve
from kettle.schedd.domain.runnable import Order, Runnable
from kettle.schedd.domain.views import View
from kettle.wire.ads import Ad
from kettle.wire.events import (
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
    JobEvent,
    JobVacated,
    Usage,
    decode,
)
from kettle.wire.flocking import pool_of
from kettle.wire.jobs import JobId

JOB_EVENTS: Final[frozenset[type[JobEvent]]] = frozenset(get_args(JobEvent))
_ENDS_OR_BEGINS: Final = frozenset({JobAssigned, JobVacated, JobCompleted})


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A job in the queue: its state, and the attributes that its events have set since submission."""

    job: Job = Job()
    changed: Ad = {}


class Change(msgspec.Struct, frozen=True, gc=False):
    """A row of the working set after an event; `state` None: the row is gone."""

    stream: str
    state: bytes | None


class Unfit(Exception):  # noqa: N818 - says that the log and this code disagree; nothing catches it
    """An event that cannot follow what was folded so far: the log is damaged or this code is wrong."""


FRESH: Final = Entry()
_NOTHING: Final[Mapping[JobId, Entry]] = {}
NEWEST: Final = "cluster#newest"
"""The row of the working set with the number of the newest cluster: numbers are not given again when all jobs are gone."""
_LEFT: Final = "#left"
"""In the names of rows that tell which jobs of a cluster have left."""
_encode = msgspec.msgpack.Encoder().encode
_WAITING: Final = frozenset({"idle", "held"})
"""The statuses that a factory's `max_idle` counts."""
_decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_factory = msgspec.msgpack.Decoder(Factory).decode
_decode_row = msgspec.msgpack.Decoder(tuple[msgspec.Raw, int]).decode


def job_stream(job: JobId) -> str:
    """The stream of one job's own events."""
    return f"job/{job.cluster}.{job.proc}"


def factory_stream(cluster: int) -> str:
    """The stream of how a cluster's jobs are made, if they are made little by little."""
    return f"factory/{cluster}"


def job_of_stream(stream: str) -> JobId:
    """Inverse of `job_stream`."""
    return JobId.parse(stream.removeprefix("job/"))


def _recorded(state: bytes) -> tuple[Event, int]:
    """A row that holds an event: it may have been written by a version whose type is superseded by now."""
    data, at = _decode_row(state)
    return decode(bytes(data)), at


class Queue:
    """Clusters, jobs and claims of one schedd."""

    def __init__(self, schedd: str, *, significant: Iterable[str] = ()) -> None:
        self.schedd = schedd
        self.clusters: dict[int, Cluster] = {}
        self.jobs: dict[JobId, Entry] = {}
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
        """The same of jobs that run on the machine of their schedd."""
        self._owned: Counter[str] = Counter()
        self.owners: Final[dict[str, str]] = {}
        """Submitter -> whose jobs are charged to it."""
        self._attended: Counter[tuple[str, int]] = Counter()
        """(submitter, universe) -> jobs that run there."""
        self.cooling: set[JobId] = set()
        """Jobs that may run when `cooled` says so: their last attempts failed one after the other."""
        self.deferred: dict[JobId, bool] = {}
        """Jobs that could run but for the time; whether `due` has said that it has come."""
        self.unplanned: set[JobId] = set()
        """Those of them that have just become so, and some that are gone again: whoever plans their times empties it."""
        self.tally: dict[str, dict[str, int]] = {}
        """Submitter -> status -> number of jobs."""
        self.measured: dict[JobId, Usage] = {}
        """What live attempts use, as their workers have last said. It is not recorded: a restart forgets it."""
        self.reconnecting: dict[JobId, int] = {}
        """How often it was tried to reach the workers of disconnected jobs. Neither is this."""
        self.renewed: dict[str, int] = {}
        """Startd -> when it last renewed the leases of its claims, seconds since 1970. Neither is this."""
        self._significant = tuple(significant)

    # -- questions ---------------------------------------------------------------------------------------------------

    def ad(self, job: JobId) -> Ad:
        """The whole ad of a job in the queue; who looks at many of them takes a `View`."""
        return View(self).ad(job)

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

    def jobs_of(self, owner: str) -> int:
        """How many jobs somebody has in the queue, whoever is charged for them."""
        return self._owned[owner]

    def limited(self, job: JobId) -> bool:
        """Whether a job says that it uses something of which the pool has only so many."""
        return self.clusters[job.cluster].limited

    def autocluster(self, job: JobId) -> int:
        """The autocluster of a job in the queue."""
        cluster = self.clusters[job.cluster]
        return cluster.autoclusters.of(cluster.submitted.rows[job.proc])

    def priority(self, job: JobId) -> int:
        """JobPrio."""
        submitted = self.clusters[job.cluster].submitted
        if "JobPrio" in submitted.columns:
            value = submitted.rows[job.proc][submitted.columns.index("JobPrio")]
        else:
            value = submitted.ad.get("JobPrio", 0)
        return value if isinstance(value, int) else 0

    def universe(self, job: JobId) -> int:
        """JobUniverse of a job in the queue."""
        cluster = self.clusters[job.cluster]
        if cluster.universe is not None:
            return cluster.universe
        value = cluster.submitted.rows[job.proc][cluster.submitted.columns.index("JobUniverse")]
        return value if isinstance(value, int) else universes.VANILLA

    def attended(self, submitter: str = "") -> int:
        """How many of a submitter's jobs, or of all, run on the machine of their schedd."""
        if not submitter:
            return sum(self._attended.values())
        return sum(self._attended[submitter, universe] for universe in universes.AT_HOME)

    def flocked(self, pool: str = "") -> Counter[str]:
        """How many jobs of each submitter run in another pool, or in any."""
        found: Counter[str] = Counter()
        for claim, where in self.abroad.items():
            held = self.claims[claim]
            if (
                held.job is not None
                and where == (pool or where)
                and self.jobs[held.job].job.status == "running"
            ):
                found[self.submitter(held.job)] += 1
        return found

    def totals(self) -> Ad:
        """How many jobs run, or could, on the machine of their schedd: as the schedd's ad says it."""
        ad: Ad = {}
        for universe, word in universes.AT_HOME.items():
            ad[f"Total{word}JobsRunning"] = sum(
                count for (_, other), count in self._attended.items() if other == universe
            )
            ad[f"Total{word}JobsIdle"] = sum(
                len(jobs)
                for autoclusters in self.at_home.values()
                for jobs in autoclusters.values()
                if (best := jobs.best()) is not None and self.universe(best[1]) == universe
            )
        return ad

    def requests(self, submitter: str, *, at_home: bool = False) -> list[tuple[Order, JobId, int, int]]:
        """(order, first job, autocluster, count) of each autocluster with runnable jobs, in the submitter's order."""
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
        matched = self.demand.get(submitter, {}).get(autocluster)
        return matched or self.at_home.get(submitter, {}).get(autocluster)

    def _demand_of(self, job: JobId) -> dict[str, dict[int, Runnable]]:
        return self.at_home if universes.at_home(self.universe(job)) else self.demand

    # -- changes -----------------------------------------------------------------------------------------------------

    def apply(self, stream: str, event: Event, at: int) -> list[Change]:
        """Fold one event, recorded at `at` microseconds; returns the rows of the working set that it changed."""
        if type(event) in JOB_EVENTS:  # of a struct, to find that it is none of fourteen others takes long
            return self._job(stream, cast("JobEvent", event), at)
        match event:
            case ClusterSubmitted():
                return self._submitted(stream, event, at)
            case FactoryMaterialized() | FactoryChanged() | FactoryClosed():
                return self._factory(event)
            case ClaimGranted():
                self._claimed(event, at)
                return [Change(stream, _encode((event, at)))]
            case ClaimEnded():
                self.abroad.pop(event.claim, None)
                if (ended := self.claims.pop(event.claim, None)) is not None:
                    self.limits.count(ended.granted.submitter, ended.granted.limits, -1)
                return [Change(stream, None)]
            case _:
                raise Unfit(f"an event {type(event).__name__} does not belong into the shard of a schedd")

    def _claimed(self, event: ClaimGranted, at: int) -> None:
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
        gone: Gone | None = None,
        known: Mapping[JobId, Entry] = _NOTHING,
        factory: Factory | None = None,
    ) -> None:
        """
        Take a submission in; the jobs in `gone` have left the queue already, those in `known` have a past.
        """
        cluster = cluster_of(event, at, gone or Gone(), factory, self._significant)
        self.clusters[event.cluster] = cluster
        self.newest_cluster = max(self.newest_cluster, event.cluster)
        if cluster.factory is not None and cluster.factory.unmade:
            self.unmade.add(event.cluster)
        for job in cluster.jobs():
            entry = self.jobs[job] = known.get(job, FRESH)
            self._enter(job, entry.job)

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
            self._enter(job, FRESH.job)
        stream = factory_stream(event.cluster)
        return self._forget(event.cluster) if cluster.empty else [Change(stream, _encode(cluster.factory))]

    def _job(
        self,
        stream: str,
        event: JobEvent,
        at: int,
    ) -> list[Change]:
        job = job_of_stream(stream)
        before = self.jobs.get(job)
        if before is None:
            raise Unfit(f"{type(event).__name__} of job {job}, which is not in the queue")
        changed = dict(before.changed) or self.clusters[job.cluster].base(job.proc)
        apply_to_ad(changed, event, at)
        entry = Entry(evolve(before.job, event), changed)
        if type(event) in _ENDS_OR_BEGINS:
            self.measured.pop(job, None)
        if self.reconnecting and not entry.job.disconnected:
            self.reconnecting.pop(job, None)
        self._leave(job, before.job)
        if entry.job.over:
            del self.jobs[job]
            return [Change(stream, None), *self._left(job)]
        self.jobs[job] = entry
        self._enter(job, entry.job)
        return [Change(stream, _encode(entry))]

    def _left(self, job: JobId) -> list[Change]:
        cluster = self.clusters[job.cluster]
        cluster.gone.add(job.proc)
        if cluster.empty:
            return self._forget(job.cluster)
        end, row = cluster.gone.row(job.proc)
        return [Change(f"cluster/{job.cluster}{_LEFT}{end}", row)]

    def _forget(self, number: int) -> list[Change]:
        """A cluster of which no job is in the queue, nor will be."""
        cluster, stream = self.clusters.pop(number), f"cluster/{number}"
        rows = [Change(stream, None), *(Change(f"{stream}{_LEFT}{end}", None) for end in cluster.gone.rows)]
        return rows if cluster.factory is None else [*rows, Change(factory_stream(number), None)]

    def _enter(self, job: JobId, state: Job) -> None:
        submitter = self.submitter(job)
        cluster = self.clusters[job.cluster]
        self._owned[owner := cluster.submitted.owner] += 1
        self.owners[submitter] = owner
        tally = self.tally.setdefault(submitter, {})
        tally[state.status] = tally.get(state.status, 0) + 1
        if state.status in _WAITING:
            cluster.waiting += 1
        if state.runnable and state.cooling:
            self.cooling.add(job)
        elif state.runnable:
            self._ready(job)
        elif state.claim in self.claims:
            self.claims[state.claim] = msgspec.structs.replace(self.claims[state.claim], job=job)
        self._attend(job, state, 1)

    def _attend(self, job: JobId, state: Job, count: int) -> None:
        if state.claim and universes.at_home(universe := self.universe(job)):
            self._attended[self.submitter(job), universe] += count

    def _leave(self, job: JobId, state: Job) -> None:
        submitter = self.submitter(job)
        self._attend(job, state, -1)
        self._owned[self.owner(job)] -= 1
        self.tally[submitter][state.status] -= 1
        if state.status in _WAITING:
            self.clusters[job.cluster].waiting -= 1
        if self.cooling and job in self.cooling:
            self.cooling.discard(job)
        elif self.deferred and self.deferred.pop(job, None) is False:
            pass  # it was not offered yet
        elif state.runnable:
            demand = self._demand_of(job)
            runnable = demand[submitter][number := self.autocluster(job)]
            runnable.discard(job)
            if not runnable:
                del demand[submitter][number]
                if not demand[submitter]:
                    del demand[submitter]
        elif state.claim in self.claims:
            self.claims[state.claim] = msgspec.structs.replace(self.claims[state.claim], job=None)

    def cooled(self, job: JobId) -> None:
        """The job has waited long enough after its failures."""
        if job in self.cooling:
            self.cooling.discard(job)
            self._ready(job)

    def due(self, job: JobId) -> None:
        """
        The time of a job that waited for it has come.
        """
        if self.deferred.get(job) is False:
            self.deferred[job] = True
            self._offer(job)

    def _ready(self, job: JobId) -> None:
        if self.clusters[job.cluster].timed:
            self.deferred[job] = False
            self.unplanned.add(job)
        else:
            self._offer(job)

    def _offer(self, job: JobId) -> None:
        autoclusters = self._demand_of(job).setdefault(self.submitter(job), {})
        autoclusters.setdefault(self.autocluster(job), Runnable()).add(job, self.priority(job))

    # -- start-up ----------------------------------------------------------------------------------------------------

    def restore(self, rows: Iterable[tuple[str, bytes]]) -> None:
        """Take the working set over; the order of its rows does not matter."""
        kinds = defaultdict[str, list[tuple[str, bytes]]](list)
        for stream, state in rows:
            kind = "left" if _LEFT in stream else stream.partition("/")[0]
            kinds[kind].append((stream, state))
        gone: dict[str, Gone] = {}
        for stream, state in kinds["left"]:
            cluster, _, end = stream.partition(_LEFT)
            gone.setdefault(cluster, Gone()).read(end, state)
        factories = {stream.partition("/")[2]: _decode_factory(state) for stream, state in kinds["factory"]}
        for _, state in kinds[NEWEST]:
            self.newest_cluster = msgspec.msgpack.decode(state, type=int)
        for stream, state in kinds["claim"]:
            granted, at = _recorded(state)
            assert isinstance(granted, ClaimGranted), stream
            self._claimed(granted, at)
        known = {job_of_stream(stream): _decode_entry(state) for stream, state in kinds["job"]}
        for stream, state in kinds["cluster"]:
            event, at = _recorded(state)
            assert isinstance(event, ClusterSubmitted), stream
            factory, left = factories.get(str(event.cluster)), gone.get(stream)
            self.admit(event, at, gone=left, known=known, factory=factory)
        if stray := next((job for job in known if job not in self.jobs), None):
            raise Unfit(f"the working set has a row of job {stray}, which is not in the queue")

    def select(
        self, *, jobs: Iterable[JobId], clusters: Iterable[int], owners: Iterable[str]
    ) -> Iterator[JobId]:
        """Jobs in the queue that are listed, or in a listed cluster, or of a listed owner; with no list, all. In order."""
        listed, in_clusters, of_owners = set(jobs), set(clusters), set(owners)
        if not (listed or in_clusters or of_owners):
            yield from sorted(self.jobs)
            return
        whole = {
            number
            for number, cluster in self.clusters.items()
            if number in in_clusters or cluster.submitted.owner in of_owners
        }
        in_whole = (job for number in sorted(whole) for job in self.clusters[number].jobs())
        apart = (job for job in listed if job.cluster not in whole and job in self.jobs)
        yield from merge(in_whole, sorted(apart))
