"""A workload on a platform, decided by Kettle's own queue, negotiator and accountant."""

from array import array
from typing import Final

import numpy as np

from kettle_services.schedd.domain.queue.fold import job_of_stream
from kettle_services.simulator.domain.claims import Record, forget
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.invented.period_of_workload import period_of
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.events import Event, JobAssigned, JobCompleted

_NEVER: Final = -1


def first_too_large(platform: Platform, workload: Workload) -> int | None:
    """The first job of a workload that no host of the platform can hold."""
    left = np.arange(len(workload))
    for cores, memory in {(host.cores, host.memory) for host in platform.hosts}:
        fits = (workload.cores[left] <= cores) & (workload.memory[left] <= memory)
        left = left[~fits]
    return int(left[0]) if len(left) else None


def play(
    platform: Platform, workload: Workload, rules: PoolRules, *, step: int, record: Record = forget
) -> Result:
    """
    Until the last job has ended, each of which some host can hold; `step` are the microseconds between two cycles at least.

    Raises ValueError: what only the other model knows.
    """
    period, durations = period_of(platform, workload)
    starts = array("q", [_NEVER]) * len(workload)
    ends = array("q", starts)
    open_jobs = len(workload)

    def note(at: int, shard: str, stream: str, event: Event) -> None:
        nonlocal open_jobs
        record(at, shard, stream, event)
        match event:
            case JobAssigned(attempt=1):
                starts[durations.place(job_of_stream(stream))] = at
            case JobCompleted():
                ends[durations.place(job_of_stream(stream))] = at
                open_jobs -= 1
                if not open_jobs:
                    simulation.clock.stop()
            case _:
                pass

    simulation = PeriodSimulation(period, rules, step=step, record=note)
    if open_jobs:
        simulation.run()
    return Result(workload, platform, starts, ends, ends)
