"""
EASY backfilling in a simulation and in a real Slurm: the same jobs start in the same order.

A second stands for a minute: jobs run for 8 to 32 s on eight nodes of one core. Slurm's time limits are whole minutes, so these are what
people say who are not sure: more than their jobs need. With `bf_job_part_count_reserve=1` its backfill scheduler, which looks once a
second, keeps room for the first job of the queue alone, which is what EASY says. It keeps room on whole nodes, so that nodes of several
cores would be another rule.

How much longer a node is occupied than its job runs, and what Slurm loses between two jobs, depends on how busy this machine is. That is
one number, which is fitted to the time that all jobs took; the order in which they start does not follow from it.
"""

import logging
import os
import random
import time
from itertools import combinations
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from kettle.testing.servers.slurm import SlurmCluster, no_slurm, slurm
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.batch_service import Discipline

LONG: Final = "KETTLE_TEST_LONG"
NODES: Final = 8
JOBS: Final = 24
WITHIN_S: Final = 900.0
APART_S: Final = 5.0
"""Of two jobs that start nearer to each other, the order is chance."""
SCHEDULING: Final = "batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_resolution=1,bf_window=120,bf_job_part_count_reserve=1"
_US: Final = 1_000_000
Seconds = NDArray[np.float64]

log = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.skipif(
        LONG not in os.environ, reason=f"it takes minutes: Slurm runs {JOBS} jobs ({LONG}=1 has it do so)"
    ),
    pytest.mark.skipif(bool(no_slurm()), reason=no_slurm()),
]


def _workload() -> Workload:
    """
    The first job has everything, and the others come meanwhile.

    Of random ones, these: in 25 simulations in which each job takes 0.2 to 2.5 s longer, at random, they start in the same order, so what
    Slurm loses between two jobs does not change it, and without backfilling they start in quite another one.
    """
    draw = random.Random(155)
    nodes = [NODES, *(draw.choice([1, 1, 2, 2, 3, 4, 6, 8]) for _ in range(JOBS - 1))]
    runs = [0.0, *(round(draw.uniform(8, 32), 1) for _ in range(JOBS - 1))]
    limits = [5, *(draw.choice([1, 2, 3, 5, 10]) for _ in range(JOBS - 1))]
    return Workload(
        submitted=np.zeros(JOBS, dtype=np.int64),
        work=np.rint(np.array(runs) * _US).astype(np.int64),
        cores=[1] * JOBS,
        nodes=nodes,
        limit=np.array(limits) * 60 * _US,
        grid=True,
    )


def test_slurm_starts_jobs_in_the_order_of_the_simulation(tmp_path: Path) -> None:
    """
    At least 95 of 100 pairs of jobs of which one starts more than five seconds before the other one in the simulation do so in Slurm,
    and the mean start is within 5 %; those of a simulation without backfilling are farther off in both.
    """
    work = _workload()
    with slurm(SCHEDULING, nodes=NODES) as cluster:
        really = _really(cluster, work, tmp_path)
    easy, fcfs = (_fitted(work, each, really) for each in (Discipline.EASY, Discipline.FCFS))
    log.info("EASY: %s, first come first served: %s, starts in Slurm: %s", easy, fcfs, really.round(1))
    assert easy.in_order >= 0.95, (easy, fcfs)
    assert easy.mean_start == pytest.approx(1.0, abs=0.05), (easy, fcfs)
    assert fcfs.in_order < easy.in_order, (easy, fcfs)
    assert abs(fcfs.mean_start - 1.0) > abs(easy.mean_start - 1.0), (easy, fcfs)


class _Agreement(msgspec.Struct, frozen=True):
    """How near a simulation is to Slurm."""

    longer_s: float
    """By so much each job was taken to occupy its nodes longer than it ran."""
    in_order: float
    """The part of pairs of jobs that start in the same order."""
    mean_start: float
    """Of all jobs, as a part of the real one."""


def _really(cluster: SlurmCluster, work: Workload, directory: Path) -> Seconds:
    """
    When each job started, in seconds after the first one, which waits for the others to be there, had ended.
    """
    directory.chmod(0o755)
    for job in range(JOBS):
        does = (
            f"sleep {work.work[job] / _US:.1f}"
            if job
            else f"until test -e {directory}/go; do sleep 0.1; done"
        )
        cluster.run(
            "sbatch",
            f"--nodes={work.nodes[job]}",
            f"--time={work.limit[job] // _US // 60}",
            "--mem=10",
            "--output=/dev/null",
            f"--wrap=date +%s.%N > {directory}/{job}; {does}",
        )
    began = time.time()
    (directory / "go").touch()
    until = time.monotonic() + WITHIN_S
    while cluster.run("squeue", "--noheader", "--me").strip():
        assert time.monotonic() < until, "jobs do not end"
        time.sleep(0.5)  # Slurm tells nobody
    starts = [float((directory / str(job)).read_text()) - began for job in range(1, JOBS)]
    return np.array([0.0, *starts])


def _fitted(work: Workload, discipline: Discipline, really: Seconds) -> _Agreement:
    """The simulation whose last job starts when that of Slurm does, as nearly as can be."""
    found = [
        (longer, _starts(work, discipline, longer)) for longer in np.arange(0.0, 12.0, 0.1, dtype=np.float64)
    ]
    longer, simulated = min(found, key=lambda one: abs(float(one[1].max() - really.max())))
    pairs = [
        (one, other) if simulated[one] < simulated[other] else (other, one)
        for one, other in combinations(range(JOBS), 2)
        if abs(simulated[one] - simulated[other]) > APART_S
    ]
    same = sum(bool(really[one] < really[other]) for one, other in pairs)
    return _Agreement(float(longer), same / len(pairs), float(simulated.mean() / really.mean()))


def _starts(work: Workload, discipline: Discipline, longer: float) -> Seconds:
    changed = Workload(
        submitted=work.submitted,
        work=work.work + round(longer * _US),
        cores=work.cores,
        nodes=work.nodes,
        limit=work.limit,
        grid=True,
    )
    simulation = Simulation(
        platform=Platform.star(hosts=NODES, cores=1), workload=changed, discipline=discipline
    )
    return np.asarray(simulation.run().starts / _US, dtype=np.float64)
