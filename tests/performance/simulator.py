"""
How fast pools are simulated, and what memory a job takes: WRENCH's model and Kettle's own deciders, beside a heap and nothing else.

Each run is a process of its own, which measures its speed by its processor time, and its memory by how much its peak has grown
since before it made the jobs. The bare heap has a start and an end for each job, and first come, first served: less cannot be done in Python.
The rows `peer_*` are runs that WRENCH 2.1 was measured with on a machine like this: what it took is their bar, and its makespan the check.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Final

from kettle import VERSION
from kettle.archive import ArchivedLog
from kettle.testing.measurements import say, summary
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.recording import Recording
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.garbage import seldom_collected
from kettle_services.simulator.invented.play import Course
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.recorded_events import RecordedEvents
from kettle_services.simulator.results.run_description import RunDescription
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.what_if_file import rules
from kettle_services.simulator.workloads.distributions import Exponential
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.batch_service import Discipline
from kettle_services.simulator.wrench.delays import Delays

HOSTS: Final = 250
CORES: Final = 40
LOAD: Final = 0.9
MEAN_S: Final = 600.0
USERS: Final = 10
MILLION: Final = 1_000_000
WITHIN: Final = 0.01
"""By how much a makespan may differ from WRENCH's: what happens in one instant is done in another order."""
DAY_S: Final = 86_400.0
CYCLES: Final = 5_000
RULES: Final = rules(NegotiatorSettings(), worklife=1200.0, factors={})


def workload(
    jobs: int, *, users: int = 1, grid: bool = False, hosts: int = HOSTS, mean: float = MEAN_S
) -> Workload:
    """Jobs that come at random, and keep nine of ten cores busy."""
    every = mean / (hosts * CORES * LOAD) * users
    made = [
        Workload.generated(
            jobs // users,
            duration=Exponential(mean),
            every=every,
            poisson=True,
            seed=user,
            user=f"user{user}",
            grid=grid,
        )
        for user in range(users)
    ]
    return sum(made[1:], made[0])


def heap(jobs: int) -> int:
    """Starts and ends of the same jobs on as many cores, and nothing else."""
    work = workload(jobs)
    comes, takes = work.submitted.tolist(), work.work.tolist()
    running: list[int] = []
    waiting: deque[int] = deque()
    ended = 0
    for job, at in enumerate(comes):
        while running and running[0] <= at:
            now = heappop(running)
            ended += 1
            if waiting:
                heappush(running, now + takes[waiting.popleft()])
        if len(running) < HOSTS * CORES:
            heappush(running, at + takes[job])
        else:
            waiting.append(job)
    return ended + len(running) + len(waiting)


def wrench(jobs: int) -> int:
    """WRENCH's model, with jobs for bare-metal services."""
    simulation = Simulation(platform=Platform.star(hosts=HOSTS, cores=CORES), workload=workload(jobs))
    return simulation.run().figures().ended


def batch(jobs: int) -> int:
    """WRENCH's model, with jobs for a batch service with EASY backfilling."""
    simulation = Simulation(
        platform=Platform.star(hosts=HOSTS, cores=CORES),
        workload=workload(jobs, grid=True),
        discipline=Discipline.EASY,
    )
    return simulation.run().figures().ended


def kettle(jobs: int) -> int:
    """Kettle's own queue, negotiator and accountant, with ten users."""
    return _by_kettle(workload(jobs, users=USERS), HOSTS).run().figures().ended


def million(jobs: int) -> int:
    """Those on as many cores as there are jobs."""
    hosts = -(-jobs // CORES)
    return _by_kettle(workload(jobs, users=USERS, hosts=hosts), hosts).run().figures().ended


def day(jobs: int) -> int:
    """
    A day in which so many jobs came, read from its log and played again as it was, as `kettle what-if` does it.
    """
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "events"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.performance.simulator",
                "--record",
                str(directory),
                "--jobs",
                str(jobs),
            ],
            check=True,
        )
        with seldom_collected():
            return asyncio.run(_replayed(directory))


def record(jobs: int, directory: Path) -> None:
    """Play that day, and keep its events."""
    mean = DAY_S * HOSTS * CORES * LOAD / jobs
    description = RunDescription(kettle=VERSION, file="", sha256="", seed=0, rules={})
    with RecordedEvents(directory, description) as recorded:
        _by_kettle(workload(jobs, users=USERS, mean=mean), HOSTS).run(recorded)


async def _replayed(directory: Path) -> int:
    log = ArchivedLog(directory)
    shards = [tenure.shard for tenure in await log.shards()]
    until = round(2 * DAY_S * US)  # the last jobs end when the day is over
    recording = Recording(0, until, shards)
    for shard in shards:
        async for frame in log.read(shard):
            recording.feed(frame)
    period = recording.period()
    # What was in the first moment is before the period; all else is played in as many cycles as what-if has for a day.
    tally = PeriodSimulation(period, RULES, step=round(DAY_S * US) // CYCLES).run()
    return len(tally.starts) + sum(len(queue.jobs) for queue in period.queues().values())


def _by_kettle(work: Workload, hosts: int) -> Simulation:
    platform = Platform.star(hosts=hosts, cores=CORES)
    return Simulation(platform=platform, workload=work, rules=RULES, course=Course(explained=False))


def peer_grid(jobs: int) -> int:
    """Jobs of ten minutes, all at once, for a batch service of a hundred hosts with ten cores."""
    return _as_wrench(jobs, makespan=6_020.0, grid=True)


def peer_non_grid(jobs: int) -> int:
    """Twice as many for one bare-metal service."""
    return _as_wrench(jobs, makespan=12_200.0)


def peer_largest(jobs: int) -> int:
    """As many as it did not abort with."""
    return _as_wrench(jobs, makespan=30_500.0)


def _as_wrench(jobs: int, *, makespan: float, grid: bool = False) -> int:
    figures = (
        Simulation(
            platform=Platform.star(hosts=100, cores=10),
            workload=Workload.generated(jobs, duration=MEAN_S, grid=grid),
            delays=Delays(negotiator=10 * US),
        )
        .run()
        .figures()
    )
    if abs(figures.makespan / makespan - 1.0) > WITHIN:
        raise RuntimeError(f"the makespan is {figures.makespan} s, and was {makespan} s")
    return figures.ended


RUNS: Final[dict[str, Callable[[int], int]]] = {
    "heap": heap,
    "wrench": wrench,
    "batch": batch,
    "kettle": kettle,
    "million": million,
    "day": day,
    "peer_grid": peer_grid,
    "peer_non_grid": peer_non_grid,
    "peer_largest": peer_largest,
}
ONCE: Final = ("million", "day")
"""They take minutes, and are run once."""
JOBS: Final = {
    "heap": 500_000,
    "wrench": 500_000,
    "batch": 500_000,
    "kettle": 100_000,
    "million": MILLION,
    "day": MILLION,
    "peer_grid": 10_000,
    "peer_non_grid": 20_000,
    "peer_largest": 50_000,
}
BARS: Final[dict[str, dict[str, float]]] = {
    "wrench": {"jobs_per_second": 50_000, "bytes_per_job": 300},
    "kettle": {"seconds": 60},
    "million": {"seconds": 900, "peak_gib": 8},
    "day": {"seconds": 300},
    "peer_grid": {"seconds": 7.9, "peak_gib": 529 / 1024},
    "peer_non_grid": {"seconds": 10.6, "peak_gib": 136 / 1024},
    "peer_largest": {"seconds": 156, "peak_gib": 16.2},
}
"""Of the full numbers of jobs; the one of jobs a second is the least, the others are the most."""


def one(name: str, jobs: int) -> dict[str, float]:
    """
    Of this process: jobs a second of its processor time, how much that was, bytes a job, and the most that it ever had.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    ended = RUNS[name](jobs)
    took = time.process_time() - began
    if ended != jobs:
        raise RuntimeError(f"{ended} of {jobs} jobs have ended")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "jobs_per_second": jobs / took,
        "seconds": took,
        "bytes_per_job": (peak - before) * 1024 / jobs,
        "peak_gib": peak / (1 << 20),
    }


def measured(name: str, jobs: int, rounds: int) -> dict[str, Any]:
    """So many runs, each in a process of its own."""
    found: list[dict[str, float]] = []
    for number in range(rounds):
        say(f"{name}: {jobs:,} jobs, run {number + 1} of {rounds}")
        done = subprocess.run(
            [sys.executable, "-m", "tests.performance.simulator", "--one", name, "--jobs", str(jobs)],
            check=True,
            stdout=subprocess.PIPE,
        )
        found.append(json.loads(done.stdout))
    digits = {"seconds": 2, "jobs_per_second": 0, "bytes_per_job": 0, "peak_gib": 3}
    figures = {key: summary((run[key] for run in found), number) for key, number in digits.items()}
    return {"jobs": jobs, **figures}


def with_bars(name: str, row: dict[str, Any], *, full: bool) -> dict[str, Any]:
    """
    A row with what is wanted of it, if it had as many jobs as that is said of, and whether the median is that.
    """
    bars: dict[str, Any] = {}
    for figure, bar in BARS.get(name, {}).items() if full else ():
        median = row[figure]["median"]
        least = figure == "jobs_per_second"
        bars[figure] = {
            "at_least" if least else "at_most": round(bar, 3),
            "met": median >= bar if least else median <= bar,
        }
    return {**row, "bars": bars}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in RUNS:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=JOBS[name], metavar="JOBS")
    parser.add_argument("--only", choices=tuple(RUNS), action="append", help="not the other rows")
    parser.add_argument("--jobs", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", type=Path, metavar="DIRECTORY", help="only make the record of a day")
    parser.add_argument("--one", choices=tuple(RUNS), help="only this, in this process")
    arguments = parser.parse_args()
    if arguments.record is not None:
        record(arguments.jobs, arguments.record)
        return 0
    if arguments.one:
        print(json.dumps(one(arguments.one, arguments.jobs)))
        return 0
    report: dict[str, Any] = {}
    for name in arguments.only or RUNS:
        jobs = int(getattr(arguments, name))
        row = measured(name, jobs, 1 if name in ONCE else arguments.rounds)
        report[name] = with_bars(name, row, full=jobs == JOBS[name])
    if "heap" in report:
        bare = report["heap"]["jobs_per_second"]["median"]
        for row in report.values():
            row["of_the_heap"] = round(row["jobs_per_second"]["median"] / bare, 4)
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
