"""
How fast pools are simulated, and what memory a job takes: WRENCH's model and Kettle's own deciders, beside a heap and nothing else.

Each run is a process of its own, which measures its speed by its processor time, and its memory by how much its peak has grown
since before it made the jobs. The bare heap has a start and an end for each job, and first come, first served: less cannot be done in Python.
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
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.recorded_events import RecordedEvents
from kettle_services.simulator.results.run_description import RunDescription
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.what_if_file import rules
from kettle_services.simulator.workloads.distributions import Exponential
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.batch_service import Discipline

HOSTS: Final = 250
CORES: Final = 40
LOAD: Final = 0.9
MEAN_S: Final = 600.0
USERS: Final = 10
MILLION: Final = 1_000_000
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
    return Simulation(platform=Platform.star(hosts=hosts, cores=CORES), workload=work, rules=RULES)


RUNS: Final[dict[str, Callable[[int], int]]] = {
    "heap": heap,
    "wrench": wrench,
    "batch": batch,
    "kettle": kettle,
    "million": million,
    "day": day,
}
ONCE: Final = ("million", "day")
"""They take minutes, and are run once."""


def one(name: str, jobs: int) -> dict[str, float]:
    """Of this process: jobs a second of its processor time, how much that was, and bytes a job."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    ended = RUNS[name](jobs)
    took = time.process_time() - began
    if ended != jobs:
        raise RuntimeError(f"{ended} of {jobs} jobs have ended")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"jobs_per_second": jobs / took, "seconds": took, "bytes_per_job": grown * 1024 / jobs}


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
    return {
        "jobs": jobs,
        "seconds": summary((run["seconds"] for run in found), 2),
        "jobs_per_second": summary((run["jobs_per_second"] for run in found), 0),
        "bytes_per_job": summary((run["bytes_per_job"] for run in found), 0),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=500_000)
    parser.add_argument("--kettle-jobs", type=int, default=100_000, help="of the model kettle")
    parser.add_argument("--million", type=int, default=MILLION, help="jobs of the run with a million")
    parser.add_argument(
        "--day",
        type=int,
        default=200_000,
        help="jobs of the day that is played again; each takes 14 kB, so a million takes more than most machines have",
    )
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
    jobs = {name: int(arguments.jobs) for name in RUNS}
    jobs |= {"million": int(arguments.million), "day": int(arguments.day)}
    jobs["kettle"] = arguments.kettle_jobs
    report: dict[str, Any] = {
        name: measured(name, jobs[name], 1 if name in ONCE else arguments.rounds) for name in RUNS
    }
    bare = report["heap"]["jobs_per_second"]["median"]
    for name in RUNS:
        report[name]["of_the_heap"] = round(report[name]["jobs_per_second"]["median"] / bare, 4)
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
