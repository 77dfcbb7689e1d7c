"""Backfilling of a simulated batch service, by the promises that its disciplines make."""

import random

import pytest

from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.wrench.batch_service import PADDING, Discipline
from kettle_services.simulator.wrench.pool import WrenchPool

Job = tuple[int, int, int, int]
"""Submitted at, microseconds of work, nodes, cores of each."""


def _starts(jobs: list[Job], discipline: Discipline, nodes: int = 4, cores: int = 2) -> list[int]:
    pool = WrenchPool(batch=[Host(name=f"node{n}", cores=cores) for n in range(nodes)], discipline=discipline)
    for at, work, count, each in jobs:
        # The limit is such that, with what is added to it, the expected end is the real one.
        pool.submit_to_batch(at, work, nodes=count, cores=each, limit=work - PADDING)
    pool.run()
    return list(pool.starts)


def _jobs(seed: int) -> list[Job]:
    draw = random.Random(seed)
    at, jobs = 0, list[Job]()
    for _ in range(30):
        at += draw.choice([0, 0, 3_000_000, 20_000_000])
        jobs.append((at, PADDING + draw.randint(1, 60_000_000), draw.randint(1, 4), draw.randint(1, 2)))
    return jobs


def test_a_short_job_passes_a_wide_one_that_waits() -> None:
    minute = 60_000_000
    jobs = [(0, 2 * minute, 3, 2), (1, minute, 4, 2), (2, minute, 1, 2), (3, 4 * minute, 1, 2)]
    assert [0, 2 * minute, 3 * minute, 3 * minute] == _starts(jobs, Discipline.FCFS)
    assert [0, 2 * minute, 2, 3 * minute] == _starts(jobs, Discipline.EASY)
    assert [0, 2 * minute, 2, 3 * minute] == _starts(jobs, Discipline.CONSERVATIVE)


def test_easy_may_delay_the_second_one_and_conservative_does_not() -> None:
    minute = 60_000_000
    # Three nodes are busy for 2 minutes; the first waits for two nodes, the second for three, and a long one for one node.
    jobs = [(0, 2 * minute, 3, 2), (1, 2 * minute, 2, 2), (2, minute, 4, 2), (3, 9 * minute, 1, 2)]
    easy = _starts(jobs, Discipline.EASY)
    conservative = _starts(jobs, Discipline.CONSERVATIVE)
    assert easy[3] == 3
    assert easy[2] == 9 * minute + 3
    assert conservative[2] == 4 * minute
    assert conservative[3] == 5 * minute


@pytest.mark.parametrize("seed", range(40))
def test_with_known_durations_no_later_job_delays_an_earlier_one(seed: int) -> None:
    """Conservative backfilling promises each job a time when it comes, and keeps it or does better."""
    jobs = _jobs(seed)
    assert _starts(jobs[:20], Discipline.CONSERVATIVE) == _starts(jobs, Discipline.CONSERVATIVE)[:20]


@pytest.mark.parametrize("discipline", list(Discipline))
@pytest.mark.parametrize("seed", range(10))
def test_nodes_never_run_more_than_they_have(seed: int, discipline: Discipline) -> None:
    jobs = _jobs(seed)
    starts = _starts(jobs, discipline)
    used = [(start, 1, nodes * cores) for start, (_, _, nodes, cores) in zip(starts, jobs, strict=True)]
    freed = [(s + work, 0, -n * c) for s, (_, work, n, c) in zip(starts, jobs, strict=True)]
    busy = 0
    for _, _, change in sorted(used + freed):
        busy += change
        assert 0 <= busy <= 8
    assert all(start >= at for start, (at, _, _, _) in zip(starts, jobs, strict=True))
