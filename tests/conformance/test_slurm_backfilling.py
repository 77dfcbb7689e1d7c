"""
EASY backfilling in a simulation and in a real Slurm: the same jobs start in the same order.

A second stands for a minute: jobs run for 8 to 32 s. Slurm's time limits are whole minutes, so these are what people say who are
not sure: more than their jobs need. Its scheduler looks once a second, by which starts are late. With `bf_job_part_count_reserve=1` its backfill scheduler keeps room for the first
job of the queue alone, which is what EASY says.
"""

import os
import random
import time
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from kettle.testing.servers.slurm import SlurmCluster, no_slurm, slurm
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.batch_service import Discipline

LONG: Final = "KETTLE_TEST_LONG"
CORES: Final = 8
JOBS: Final = 24
BEFORE_S: Final = 10
"""For so long the first job has all cores, while the others are submitted."""
WITHIN_S: Final = 280.0
SCHEDULING: Final = "batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_resolution=1,bf_window=120,bf_job_part_count_reserve=1"
_US: Final = 1_000_000

pytestmark = [
    pytest.mark.skipif(
        LONG not in os.environ, reason=f"it takes minutes: Slurm runs 24 jobs ({LONG}=1 has it do so)"
    ),
    pytest.mark.skipif(bool(no_slurm()), reason=no_slurm()),
]


def _workload() -> Workload:
    """
    The first job has everything, and the others come meanwhile.

    Of random ones, these: in a simulation in which each job takes up to 1.4 s longer they start in the same order, so what Slurm loses
    between two jobs does not change it, and without backfilling they start in quite another one.
    """
    draw = random.Random(89)
    cores = [CORES, *(draw.choice([1, 1, 2, 2, 3, 4, 6, 8]) for _ in range(JOBS - 1))]
    runs = [BEFORE_S, *(round(draw.uniform(8, 32), 1) for _ in range(JOBS - 1))]
    limits = [5, *(draw.choice([1, 2, 3, 5, 10]) for _ in range(JOBS - 1))]
    return Workload(
        submitted=np.zeros(JOBS, dtype=np.int64),
        work=np.rint(np.array(runs) * _US).astype(np.int64),
        cores=cores,
        limit=np.array(limits) * 60 * _US,
        grid=True,
    )


def test_slurm_starts_jobs_in_the_order_of_the_simulation(tmp_path: Path) -> None:
    """
    At least 95 of 100 pairs of jobs of which one starts more than five seconds before the other one in the simulation do so in Slurm,
    and the mean start is within 10 %; without backfilling, neither is so.
    """
    work = _workload()
    with slurm(SCHEDULING) as cluster:
        really = _really(cluster, work, tmp_path)
    simulated = {
        each: Simulation(
            platform=Platform.star(hosts=1, cores=CORES), workload=work, discipline=each
        ).run().starts / _US
        for each in (Discipline.EASY, Discipline.FCFS)
    }  # fmt: skip
    easy, fcfs = (_agreement(simulated[each], really) for each in (Discipline.EASY, Discipline.FCFS))
    told = f"EASY: {easy}, first come first served: {fcfs}"
    assert easy[0] >= 0.95, told
    assert easy[1] == pytest.approx(1.0, abs=0.1), told
    assert fcfs[0] < easy[0], told
    assert fcfs[1] > 1.1, told
    (tmp_path / "agreement.txt").write_text(told)


def _really(cluster: SlurmCluster, work: Workload, directory: Path) -> NDArray[np.float64]:
    """When each job started, in seconds after the first one."""
    directory.chmod(0o755)
    for job in range(JOBS):
        cluster.run(
            "sbatch",
            f"--cpus-per-task={work.cores[job]}",
            f"--time={work.limit[job] // _US // 60}",
            "--mem=10",
            "--output=/dev/null",
            f"--wrap=date +%s.%N > {directory}/{job}; sleep {work.work[job] / _US:.1f}",
        )
    until = time.monotonic() + WITHIN_S
    while cluster.run("squeue", "--noheader", "--me").strip():
        assert time.monotonic() < until, "jobs do not end"
        time.sleep(0.5)  # Slurm tells nobody
    starts: NDArray[np.float64] = np.array([float((directory / str(job)).read_text()) for job in range(JOBS)])
    return np.asarray(starts - starts[0], dtype=np.float64)


def _agreement(
    simulated: NDArray[np.float64],
    really: NDArray[np.float64],
) -> tuple[float, float]:
    """The part of pairs in the same order, and the mean start as a part of the real one."""
    pairs = [
        (one, other) if simulated[one] < simulated[other] else (other, one)
        for one, other in combinations(range(JOBS), 2)
        if abs(simulated[one] - simulated[other]) > 5.0
    ]
    same = sum(really[one] < really[other] for one, other in pairs)
    return same / len(pairs), float(simulated.mean() / really.mean())
