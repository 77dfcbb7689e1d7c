"""A workload on a platform, decided by Kettle's own queue, negotiator and accountant."""

from array import array
from typing import Final

import msgspec

from kettle_services.schedd.domain.queue.fold import job_of_stream
from kettle_services.simulator.domain.claims import Record, forget
from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.period import Period
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.invented.period_of_workload import END, KnownDurations, period_of
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.ads import Ad
from kettle_wire.events import Event, JobAssigned, JobCompleted, JobVacated

_NEVER: Final = -1
_PATIENCE: Final = 86_400 * US
"""A pool in which nothing runs, comes or goes for so long will never do anything more."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """How a simulation by Kettle's deciders is played; times in microseconds."""

    step: int = US
    """Between two cycles at least."""
    until: int = END
    """It ends then, whatever still waits or runs."""
    latency: int = 0
    """From when a match has become possible until the slot is claimed."""
    start: int = 0
    """From when a slot is claimed until the job runs on it; a slot is occupied for so much longer."""
    said: Ad = {}
    """What all machines say of themselves."""


def play(
    platform: Platform,
    workload: Workload,
    rules: PoolRules,
    *,
    course: Course = Course(),  # noqa: B008 - it is frozen
    record: Record = forget,
) -> Result:
    """
    Until the last job has ended, or no more can begin: then jobs have neither start nor end, or no end.

    A job that had to make room counts by its last attempt.

    Raises ValueError: what only the other model knows.
    """
    period, durations = period_of(
        platform, workload, groups=rules.groups.tree, until=course.until, said=course.said
    )
    period = msgspec.structs.replace(period, latency=course.latency)
    durations.before = course.start
    played = _Play(period, durations, len(workload), record)
    simulation = PeriodSimulation(period, rules, step=course.step, record=played.note)
    played.simulation = simulation
    if len(workload):
        played.watch()
        simulation.run()
    return Result(workload, platform, played.starts, played.ends, played.ends)


class _Play:
    """Notes when jobs begin and end, and stops when there is nothing more to come."""

    simulation: PeriodSimulation

    def __init__(self, period: Period, durations: KnownDurations, jobs: int, record: Record) -> None:
        self._durations, self._record = durations, record
        self._last = max((one.at for one in period.happenings), default=0)
        self.starts = array("q", [_NEVER]) * jobs
        self.ends = array("q", self.starts)
        self._open = jobs
        self._noted = 0
        self._seen = -1

    def note(self, at: int, shard: str, stream: str, event: Event) -> None:
        """One event of the queue."""
        self._record(at, shard, stream, event)
        self._noted += 1
        match event:
            case JobAssigned():
                self.starts[self._durations.place(job_of_stream(stream))] = at + self._durations.before
            case JobVacated():
                self.starts[self._durations.place(job_of_stream(stream))] = _NEVER
            case JobCompleted():
                self.ends[self._durations.place(job_of_stream(stream))] = at
                self._open -= 1
                if not self._open:
                    self.simulation.clock.stop()
            case _:
                pass

    def watch(self) -> None:
        """Look now and then whether anything has happened, and whether anything still can."""
        clock, running = self.simulation.clock, self.simulation.running
        idle = not any(schedd.queue.claims for schedd in running.schedds.values())
        if idle and self._noted == self._seen and clock.now > self._last:
            clock.stop()
        self._seen = self._noted
        clock.at(clock.now + _PATIENCE, self.watch)
