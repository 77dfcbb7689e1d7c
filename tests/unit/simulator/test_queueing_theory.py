"""
Mean waits of simulated queues beside the formulas of queueing theory.

That is two questions. Whether each job starts when first come, first served has it start has an exact answer, job by job, by
Lindley's recursion (1952) and its form for several servers (Kiefer and Wolfowitz, 1955). Whether the generators make the jobs that a
formula is about can only be answered with a confidence: of a million jobs, by the means of batches, with what is known of durations and
gaps as control variates.
"""

import math
import os
from heapq import heapify, heapreplace
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.invented.play import Course
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.student import t_within
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.what_if_file import rules
from kettle_services.simulator.workloads.distributions import (
    Constant,
    Distribution,
    Exponential,
    LogNormal,
    Uniform,
)
from kettle_services.simulator.workloads.workload import Workload

LONG: Final = "KETTLE_TEST_LONG"
MILLION: Final = 1_000_000
BATCHES: Final = 50
WITHIN: Final = 0.02
CONFIDENCE: Final = 0.99
_US: Final = 1e6
_SIGMA: Final = 0.5

QUEUES: Final[dict[str, tuple[Distribution, int, float]]] = {
    "M/M/1": (Exponential(1.0), 1, 0.6),
    "M/D/1": (Constant(1.0), 1, 0.7),
    "M/U/1": (Uniform(0.5, 1.5), 1, 0.7),
    "M/LN/1": (LogNormal(math.exp(-_SIGMA * _SIGMA / 2.0), _SIGMA), 1, 0.6),
    "D/M/1": (Exponential(1.0), 1, 0.7),
    "M/M/5": (Exponential(1.0), 5, 0.8),
}
"""Durations, all of a second on average, servers, and load."""


def _jobs(name: str, count: int) -> Workload:
    durations, servers, load = QUEUES[name]
    return Workload.generated(
        count, duration=durations, every=1.0 / (servers * load), poisson=name[0] == "M", seed=5
    )


def _waits(work: Workload, servers: int, *, speed: int = 1) -> list[int]:
    """By the recursion, in microseconds."""
    free = [0] * servers
    heapify(free)
    found: list[int] = []
    for at, takes in zip(work.submitted.tolist(), (work.work // speed).tolist(), strict=True):
        start = max(at, free[0])
        heapreplace(free, start + takes)
        found.append(start - at)
    return found


def _second_moment(durations: Distribution) -> float:
    match durations:
        case Exponential():
            return 2.0
        case Constant():
            return 1.0
        case Uniform(low, high):
            return 1.0 + (high - low) ** 2 / 12.0
        case _:
            return math.exp(_SIGMA * _SIGMA)


def _wanted(name: str) -> float:
    """
    The mean wait, in mean durations: by Erlang (1917), Pollaczek and Khinchine (1930), and the root of D/M/1 (Kendall, 1953).
    """
    durations, servers, load = QUEUES[name]
    if name[0] == "D":
        root = 0.5
        for _ in range(200):
            root = math.exp(-(1.0 - root) / load)
        return root / (1.0 - root)
    if servers == 1:
        return load * _second_moment(durations) / (2.0 * (1.0 - load))
    offered = servers * load
    others = sum(offered**n / math.factorial(n) for n in range(servers))
    waits = offered**servers / math.factorial(servers) / (1.0 - load)
    return waits / (others + waits) / (servers * (1.0 - load))


@pytest.mark.parametrize("name", QUEUES)
def test_each_job_waits_as_the_recursion_says(name: str) -> None:
    work, servers = _jobs(name, 3_000), QUEUES[name][1]
    result = Simulation(platform=Platform.star(hosts=1, cores=servers), workload=work).run()
    assert (result.starts - work.submitted).tolist() == _waits(work, servers)


@pytest.mark.parametrize("name", ["M/M/1", "M/M/5"])
def test_each_job_waits_so_with_kettles_deciders(name: str) -> None:
    """
    A cycle that comes at once, and claims that serve as long as there are jobs: nothing is added to a wait.
    """
    work, servers = _jobs(name, 300), QUEUES[name][1]
    result = Simulation(
        platform=Platform.star(hosts=1, cores=servers),
        workload=work,
        rules=rules(NegotiatorSettings(), worklife=1e9, factors={}),
        course=Course(step=1),
    ).run()
    assert (result.starts - work.submitted).tolist() == _waits(work, servers)


def _estimate(work: Workload, waits: NDArray[np.float64], name: str) -> tuple[float, float]:
    """
    The mean wait and how far off it can be, by means of batches.

    What batches have of durations and gaps beyond their known means explains much of what their waits have beyond theirs, and with
    several servers so do the waits for a single one that is as fast as all together. That part is taken out by least squares, and
    Student's t is of what remains.
    """
    _, servers, load = QUEUES[name]
    gaps = np.diff(work.submitted, prepend=0) / _US
    beyond = [work.work / _US - 1.0, gaps - 1.0 / (servers * load)]
    if servers > 1:
        beyond.append(np.array(_waits(work, 1, speed=servers)) / _US - load / (1.0 - load) / servers)
    means, *controls = (column.reshape(BATCHES, -1).mean(axis=1) for column in (waits, *beyond))
    known = np.column_stack([np.ones(BATCHES), *(each for each in controls if each.std() > 1e-9)])
    covariance = np.linalg.inv(known.T @ known)
    solved = covariance @ (known.T @ means)
    left = means - known @ solved
    freedom = BATCHES - known.shape[1]
    spread = float(left @ left) / freedom * float(covariance[0, 0])
    return float(solved[0]), t_within(CONFIDENCE, freedom) * math.sqrt(spread)


@pytest.mark.parametrize("name", QUEUES)
def test_generated_jobs_wait_as_long_as_queueing_theory_says(name: str) -> None:
    work = _jobs(name, MILLION)
    waits = np.array(_waits(work, QUEUES[name][1])) / _US
    wanted = _wanted(name)
    mean, margin = _estimate(work, waits, name)
    assert float(waits.mean()) == pytest.approx(wanted, rel=WITHIN)
    assert margin < WITHIN * wanted
    assert mean == pytest.approx(wanted, abs=margin)


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: a million jobs are simulated ({LONG}=1 has it done)"
)
@pytest.mark.parametrize("name", QUEUES)
def test_a_million_simulated_jobs_wait_so_long(name: str) -> None:
    work = _jobs(name, MILLION)
    result = Simulation(platform=Platform.star(hosts=1, cores=QUEUES[name][1]), workload=work).run()
    assert result.figures().wait_mean == pytest.approx(_wanted(name), rel=WITHIN)
