"""
The queue of one schedd: the fold of everything recorded in its shard, indexed for the questions asked of it.

`apply` is the only way to change it. It is total: what is recorded has happened. For each event it tells which rows of the
working set changed, so that start-up reads those rows instead of history; finished jobs have none.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, get_args

import msgspec

from kettle.jobs import Status, fold_base, in_use, job_ad
from kettle.jobs import apply as apply_to_ad
from kettle.jobs.ad import job_ads
from kettle.schedd.domain import deferral, job_policy, universes
from kettle.schedd.domain.autocluster import Autoclusters
from kettle.schedd.domain.claim import Claim
from kettle.schedd.domain.job import Job, evolve
from kettle.schedd.domain.runnable import Order, Runnable
from kettle.wire.ads import Ad
from kettle.wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDeferred,
    JobDisconnected,
    JobEvent,
    JobHeld,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobSuspended,
    JobVacated,
    Usage,
    decode,
)
from kettle.wire.jobs import JobId

JOB_EVENTS: Final[tuple[type[JobEvent], ...]] = get_args(JobEvent)


class Entry(msgspec.Struct, frozen=True):
    """A job in the queue: its state, and the attributes that its events have set since submission."""

    job: Job = Job()
    changed: Ad = {}


class Cluster(msgspec.Struct):
    """A submission, and which of its jobs have left the queue (bit `p` of `left`)."""

    submitted: ClusterSubmitted
    at: int
    autoclusters: Autoclusters
    base: Callable[[int], Ad]
    """By number of the job, what the fold of its events needs of its ad."""
    left: int = 0
    universe: int | None = None
    """JobUniverse of all its jobs; None: they differ in it."""
    periodic: frozenset[Status] = frozenset()
    """The statuses in which its jobs are looked at now and then for a policy of their own."""
    at_exit: bool = False
    """Whether they have one that is looked at when they exit."""
    timed: bool = False
    """Whether its jobs start at a time of their own."""

    @property
    def size(self) -> int:
        """How many jobs were submitted."""
        return len(self.submitted.rows)

    @property
    def empty(self) -> bool:
        """Whether all jobs have left."""
        return self.left.bit_count() == self.size


class Change(msgspec.Struct, frozen=True):
    """A row of the working set after an event; `state` None: the row is gone."""

    stream: str
    state: bytes | None


class Unfit(Exception):  # noqa: N818 - says that the log and this code disagree; nothing catches it
    """An event that cannot follow what was folded so far: the log is damaged or this code is wrong."""


FRESH: Final = Entry()
_NOTHING: Final[Mapping[JobId, Entry]] = {}
NEWEST: Final = "cluster#newest"
"""The row of the working set with the number of the newest cluster: numbers are not given again when all jobs are gone."""
_encode = msgspec.msgpack.Encoder().encode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_row = msgspec.msgpack.Decoder(tuple[msgspec.Raw, int]).decode


def job_stream(job: JobId) -> str:
    """The stream of one job's own events."""
    return f"job/{job.cluster}.{job.proc}"


def job_of_stream(stream: str) -> JobId:
    """Inverse of `job_stream`."""
    return JobId.parse(stream.removeprefix("job/"))


def _universe(event: ClusterSubmitted) -> int | None:
    if "JobUniverse" in event.columns:
        return None
    value = event.ad.get("JobUniverse", universes.VANILLA)
    return value if isinstance(value, int) else universes.VANILLA


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
        self.newest_cluster = 0
        self.demand: dict[str, dict[int, Runnable]] = {}
        """Submitter -> autocluster -> jobs that may run now, on machines that are matched."""
        self.at_home: dict[str, dict[int, Runnable]] = {}
        """The same of jobs that run on the machine of their schedd."""
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
        self._significant = tuple(significant)

    # -- questions ---------------------------------------------------------------------------------------------------

    def ad(self, job: JobId) -> Ad:
        """The whole ad of a job in the queue."""
        cluster = self.clusters[job.cluster]
        return self._now(job, job_ad(cluster.submitted, cluster.at, job.proc, schedd=self.schedd))

    def ads_of(self, number: int) -> Callable[[JobId], Ad]:
        """The ads of one cluster's jobs in the queue: what they have in common is worked out once."""
        cluster = self.clusters[number]
        made = job_ads(cluster.submitted, cluster.at)
        return lambda job: self._now(job, made(job.proc, self.schedd))

    def _now(self, job: JobId, submitted: Ad) -> Ad:
        ad: Ad = {**submitted, **self.jobs[job].changed}
        if (usage := self.measured.get(job)) is not None:
            ad |= in_use(usage)
        if (tries := self.reconnecting.get(job)) is not None:
            ad["JobCurrentReconnectAttempt"] = tries
        return ad

    def owner(self, job: JobId) -> str:
        """Whose job it is."""
        return self.clusters[job.cluster].submitted.owner

    def submitter(self, job: JobId) -> str:
        """Who is charged for the job: the owner, until accounting groups exist."""
        return self.owner(job)

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

    def attended(self, submitter: str) -> int:
        """How many of a submitter's jobs run on the machine of their schedd."""
        return sum(self._attended[submitter, universe] for universe in universes.AT_HOME)

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
        match event:
            case ClusterSubmitted():
                return self._submitted(stream, event, at)
            case ClaimGranted():
                self.claims[event.claim] = Claim(event, at)
                return [Change(stream, _encode((event, at)))]
            case ClaimEnded():
                self.claims.pop(event.claim, None)
                return [Change(stream, None)]
            case (
                JobAssigned()
                | JobStarted()
                | JobSuspended()
                | JobContinued()
                | JobDisconnected()
                | JobReconnected()
                | JobCheckpointed()
                | JobVacated()
                | JobCompleted()
                | JobHeld()
                | JobReleased()
                | JobRemoved()
                | JobDeferred()
            ):
                return self._job(stream, event, at)
            case _:
                raise Unfit(f"an event {type(event).__name__} does not belong into the shard of a schedd")

    def _submitted(self, stream: str, event: ClusterSubmitted, at: int) -> list[Change]:
        self.admit(event, at, left=0)
        return [Change(stream, _encode((event, at))), Change(NEWEST, _encode(self.newest_cluster))]

    def admit(
        self, event: ClusterSubmitted, at: int, left: int, known: Mapping[JobId, Entry] = _NOTHING
    ) -> None:
        """
        Take a submission in; the jobs with a bit in `left` have left the queue already, those in `known` have a past.
        """
        autoclusters = Autoclusters(event.ad, event.columns, self._significant)
        cluster = Cluster(
            event,
            at,
            autoclusters,
            fold_base(event),
            left,
            universe=_universe(event),
            periodic=job_policy.periodic(event.ad) | job_policy.periodic(event.columns),
            at_exit=job_policy.at_exit(event.ad) or job_policy.at_exit(event.columns),
            timed=deferral.timed(event.ad) or deferral.timed(event.columns),
        )
        self.clusters[event.cluster] = cluster
        self.newest_cluster = max(self.newest_cluster, event.cluster)
        for proc in range(cluster.size):
            if not left >> proc & 1:
                job = JobId(event.cluster, proc)
                entry = self.jobs[job] = known.get(job, FRESH)
                self._enter(job, entry.job)

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
        if isinstance(event, JobAssigned | JobVacated | JobCompleted):
            self.measured.pop(job, None)
        if not entry.job.disconnected:
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
        cluster.left |= 1 << job.proc
        stream = f"cluster/{job.cluster}"
        if cluster.empty:
            del self.clusters[job.cluster]
            return [Change(stream, None), Change(f"{stream}#left", None)]
        return [Change(f"{stream}#left", cluster.left.to_bytes(cluster.size // 8 + 1, "little"))]

    def _enter(self, job: JobId, state: Job) -> None:
        submitter = self.submitter(job)
        tally = self.tally.setdefault(submitter, {})
        tally[state.status] = tally.get(state.status, 0) + 1
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
        self.tally[submitter][state.status] -= 1
        if job in self.cooling:
            self.cooling.discard(job)
        elif self.deferred.pop(job, None) is False:
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
        """
        The job has waited long enough after its failures.
        """
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
        kinds: dict[str, list[tuple[str, bytes]]] = {
            "claim": [],
            "cluster": [],
            "job": [],
            "left": [],
            NEWEST: [],
        }
        for stream, state in rows:
            kind = "left" if stream.endswith("#left") else stream.partition("/")[0]
            kinds[kind].append((stream, state))
        lefts = {
            stream.removesuffix("#left"): int.from_bytes(state, "little") for stream, state in kinds["left"]
        }
        for _, state in kinds[NEWEST]:
            self.newest_cluster = msgspec.msgpack.decode(state, type=int)
        for stream, state in kinds["claim"]:
            granted, at = _recorded(state)
            assert isinstance(granted, ClaimGranted), stream
            self.claims[granted.claim] = Claim(granted, at)
        known = {job_of_stream(stream): _decode_entry(state) for stream, state in kinds["job"]}
        for stream, state in kinds["cluster"]:
            event, at = _recorded(state)
            assert isinstance(event, ClusterSubmitted), stream
            self.admit(event, at, lefts.get(stream, 0), known)
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
        for number in in_clusters:
            cluster = self.clusters.get(number)
            if cluster is not None:
                listed.update(JobId(number, p) for p in range(cluster.size) if not cluster.left >> p & 1)
        if of_owners:
            listed.update(job for job in self.jobs if self.owner(job) in of_owners)
        yield from sorted(job for job in listed if job in self.jobs)
