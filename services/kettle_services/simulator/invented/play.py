"""A workload on a platform, decided by Kettle's own queue, negotiator and accountant."""

from array import array
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from kettle.routes import RouteTable
from kettle_services.schedd.domain.queue.fold import job_of_stream
from kettle_services.simulator.domain.claims import Record, forget
from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.period import Period
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.invented.failing_hosts import FailingHosts
from kettle_services.simulator.invented.machines_on_demand import MachinesOnDemand, Spot
from kettle_services.simulator.invented.moved_files import MovedFiles
from kettle_services.simulator.invented.period_of_workload import END, SHARD, KnownDurations, period_of
from kettle_services.simulator.invented.routed_jobs import RoutedJobs
from kettle_services.simulator.invented.waiting_jobs import WaitingJobs
from kettle_services.simulator.platforms.hosts import STAYS
from kettle_services.simulator.platforms.network import TCP, Correction
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.ads import Ad
from kettle_wire.events import Event, JobAssigned, JobCompleted, JobVacated
from kettle_wire.jobs import JobId
from kettle_wire.worker_pools import WorkerPool

_NEVER: Final = -1
_PATIENCE: Final = 86_400 * US
"""A pool in which nothing runs, comes or goes for so long will never do anything more."""
_IN_VAIN: Final = 1_000
"""Nor will one in which hosts have failed so often, and nothing has ever run meanwhile."""


LOOKS: Final = 100
"""How often somebody is told how far a simulation is."""

Watch = Callable[[int, int], None]
"""Receives how many jobs have ended, and how many there are."""


def unwatched(ended: int, jobs: int) -> None:
    """Nobody looks."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """How a simulation by Kettle's deciders is played; times in microseconds."""

    step: int = US
    """Between two cycles at least."""
    latency: int = 0
    """From when a match has become possible until the slot is claimed."""
    start: int = 0
    """From when a slot is claimed until the job runs on it; a slot is occupied for so much longer."""
    said: Ad = {}
    """What all machines say of themselves."""
    pools: tuple[WorkerPool, ...] = ()
    """Of machines that are made when jobs wait."""
    spot: Spot | None = None
    """How these are taken back by who lends them; None: they are not."""
    routes: RouteTable | None = None
    """Of the compute entrypoint, by which some jobs come."""
    max_concurrent_uploads: int = 100
    """So many jobs move what they read at once, over the links of a platform; 0: all."""
    max_concurrent_downloads: int = 100
    """So many jobs move what they write at once."""
    explained: bool = True
    """Where events are recorded, those that only explain are, too: why jobs wait, which takes time."""


def play(
    platform: Platform,
    workload: Workload,
    rules: PoolRules,
    *,
    course: Course = Course(),  # noqa: B008 - it is frozen
    seed: int = 0,
    until: int = END,
    record: Record = forget,
    watch: Watch = unwatched,
    correction: Correction = TCP,
) -> Result:
    """
    Until the last job has ended, or no more can begin, or until a moment: then jobs have neither start nor end, or no end.

    A job that had to make room, or whose host went, counts by its last attempt; `seed` is that of failures of hosts.

    Raises ValueError: what only the other model knows.
    """
    period, durations = period_of(platform, workload, groups=rules.groups.tree, until=until, said=course.said)
    period = msgspec.structs.replace(period, latency=course.latency)
    durations.before = course.start
    played = _Play(platform, workload, period, durations, record, watch)
    simulation = PeriodSimulation(
        period,
        rules,
        step=course.step,
        record=played.note,
        explained=course.explained and record is not forget,
    )
    if platform.links and (workload.reads.any() or workload.writes.any()):
        if course.pools:
            raise ValueError("machines on demand have no links, over which jobs of this workload move data")
        simulation.running.files = MovedFiles(
            platform,
            workload,
            durations.place,
            correction=correction,
            uploads=course.max_concurrent_uploads,
            downloads=course.max_concurrent_downloads,
        )
    if len(workload):
        played.begin(simulation, rules, seed, course)
        simulation.run()
    return Result(
        workload,
        platform.with_more(played.on_demand.hosts) if played.on_demand else platform,
        played.starts,
        played.ends,
        played.ends,
        played.waiting.submitted if played.waiting else None,
        played.hosts,
        played.lost,
        stopped=until if until < END and played.left else None,
    )


class _Play:
    """Notes when jobs begin and end, and stops when there is nothing more to come."""

    simulation: PeriodSimulation

    def __init__(
        self,
        platform: Platform,
        workload: Workload,
        period: Period,
        durations: KnownDurations,
        record: Record,
        watch: Watch,
    ) -> None:
        self._told, self._every = watch, max(1, len(workload) // LOOKS)
        self._workload, self._platform = workload, platform
        self._period, self._durations, self._record = period, durations, record
        self._explained = record is not forget
        """Whether all is recorded that a real pool would record, also what matters to no decision."""
        self._last = max((one.at for one in period.happenings), default=0)
        self._places = {host.name: place for place, host in enumerate(platform.hosts)}
        self.starts = array("q", [_NEVER]) * len(workload)
        self.ends = array("q", self.starts)
        self.hosts = array("q", self.starts)
        self.lost: list[tuple[int, int, int]] = []
        self.waiting: WaitingJobs | None = None
        self._failing: FailingHosts | None = None
        self._routed: RoutedJobs | None = None
        self.on_demand: MachinesOnDemand | None = None
        self.left = len(workload)
        """Jobs that have not ended."""
        self._noted = 0
        self._seen = -1

    def begin(self, simulation: PeriodSimulation, rules: PoolRules, seed: int, course: Course) -> None:
        """Everything is there."""
        self.simulation = simulation
        if self._workload.waits is not None:
            self.waiting = WaitingJobs(
                self._workload, self._workload.waits, simulation, self._durations, rules.groups.tree
            )
        if any(host.failures is not None for host in self._platform.hosts):
            self._failing = FailingHosts(self._platform, simulation, seed)
        for host in self._platform.hosts:
            if host.notice and host.leaves != STAYS and host.failures is None:
                simulation.notice(host.name, max(host.joins, host.leaves - host.notice))
        if course.pools:
            self.on_demand = MachinesOnDemand(
                course.pools, simulation, self._joined, spot=course.spot, seed=seed
            )
        if course.routes is not None:
            self._routed = RoutedJobs(course.routes, simulation)
        self.watch()

    def _joined(self, machine: str) -> None:
        self._places[machine] = len(self._places)

    def note(self, at: int, shard: str, stream: str, event: Event) -> None:
        """One event of the queue."""
        self._record(at, shard, stream, event)
        if shard != SHARD:
            return  # machines that come and go and charges of what is in use start no job
        self._noted += 1
        if self._routed is not None:
            self._routed.look()
        match event:
            case JobAssigned(startd=startd, attempt=attempt):
                place = self._durations.place(job_of_stream(stream))
                self.starts[place] = at + self._durations.before
                if self._explained and self.simulation.running.files is None:
                    begun = partial(self.simulation.running.started, shard, job_of_stream(stream), attempt)
                    self.simulation.clock.at(self.starts[place], begun)
                self.hosts[place] = self._places[startd]
            case JobVacated():
                place = self._durations.place(job_of_stream(stream))
                self.lost.append((place, min(self.starts[place], at), at))
                self.starts[place] = self.hosts[place] = _NEVER
            case JobCompleted():
                self._ended(job_of_stream(stream), at)
            case _:
                pass

    def _ended(self, job: JobId, at: int) -> None:
        place = self._durations.place(job)
        self.ends[place] = at
        self.left -= 1
        if self.left % self._every == 0:
            self._told(len(self.ends) - self.left, len(self.ends))
        if not self.left:
            self.simulation.clock.stop()
        elif self.waiting is not None:
            self.waiting.ended(place, at)

    def watch(self) -> None:
        """Look now and then whether anything has happened, and whether anything still can."""
        clock, running = self.simulation.clock, self.simulation.running
        idle = not any(schedd.queue.claims for schedd in running.schedds.values())
        if idle and self._noted == self._seen and self._is_hopeless():
            clock.stop()
        elif self._noted != self._seen and self._failing is not None:
            self._failing.in_vain = 0
        self._seen = self._noted
        clock.at(clock.now + _PATIENCE, self.watch)

    def _is_hopeless(self) -> bool:
        last = self._last
        if self.waiting is not None:
            last = max(last, self.waiting.last)
        if self._failing is not None and self._failing.in_vain <= _IN_VAIN:
            last = max(last, self._failing.last)
        if self.on_demand is not None:
            last = max(last, self.on_demand.last)
        return self.simulation.clock.now > last
