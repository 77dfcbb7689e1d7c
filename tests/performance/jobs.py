"""
What a short job costs in a whole pool: latency of one, throughput of many, and whose processor time it is.

    python -m tests.performance.jobs [--slots 8 32] [--jobs 2000] [--users 1] [--rounds 5] [--latency 100] [--files]

All is real: servers with durable commits, services, sandboxes, control groups, usage, logs.  `--files` gives each job an
input file, an output file and a job event log of its own; without it jobs are `/bin/true`.

Processor time is per job and by service.  What is left of all that the pool has used, which the kernel counts for a control
group, is that of the starters and the jobs themselves; where there is no such group (it takes root), it is left out.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, Final

from kettle.client import Client, select
from kettle.pool.personal_settings import Value
from kettle.testing.measurements import accounted, below, group_seconds, processor_seconds, say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.startd.settings import StartdSettings

TRUE: Final = "executable = /bin/true\nqueue {count}\n"
FILES: Final = (
    "executable = /bin/cat\narguments = in.$(Process)\ntransfer_input_files = in.$(Process)\n"
    "output = out.$(Process)\nlog = log.$(Process)\nqueue {count}\n"
)
WARM: Final = 300
"""
Jobs before the first figure: connections, plans and starters are there then, as they are in a pool that works.
"""
PAUSE_S: Final = 0.3
"""Between two single jobs: views and ads of the former one are done then, and the pool is idle."""
SERVERS: Final = {"postgres": "postgres", "nats-server": "nats"}
STARTERS: Final = "starters_and_jobs"
OF_JOBS: Final = frozenset({STARTERS, "client"})
"""What is not of the services and servers."""


async def finished(client: Client, cluster: int) -> None:
    """Wait for a cluster; a job that does not succeed makes the figure worthless."""
    progress = await client.wait(select(cluster), through_hold=False)
    if progress.bad() or progress.stuck:
        raise SystemExit(f"cluster {cluster} did not succeed: {progress}")


async def latency(client: Client, rounds: int) -> dict[str, Any]:
    """From the submission of one job to the news of its end, on an idle pool."""
    samples: list[float] = []
    for _ in range(rounds):
        await asyncio.sleep(PAUSE_S)
        began = time.perf_counter()
        submitted = await client.submit(TRUE.format(count=1))
        await finished(client, submitted.cluster)
        samples.append((time.perf_counter() - began) * 1000)
    samples.sort()
    return {
        "p50_ms": round(statistics.median(samples), 1),
        "p99_ms": round(samples[min(len(samples) - 1, int(len(samples) * 0.99))], 1),
        "min_ms": round(samples[0], 1),
        "n": len(samples),
    }


def spent(pool: ThrowawayPool, group: Path | None) -> dict[str, float]:
    """Processor seconds so far, by service and server; those of starters and jobs are what is left."""
    names = {each.pid: each.name for each in pool.state.daemons if each.pid}
    found = dict.fromkeys([*names.values(), *SERVERS.values()], 0.0)
    for pid in below(os.getpid()):
        name = names.get(pid) or server_of(pid)
        if name:
            # Sessions of the database come and go: a server's time is that of its children too.
            with suppress(OSError):
                found[name] += processor_seconds(pid, ended_children=name in SERVERS.values())
    found["client"] = time.process_time()
    if group is not None:
        found[STARTERS] = group_seconds(group) - sum(found.values())
    return found


def server_of(pid: int) -> str:
    """Which server a process is of; empty: none, or it has just ended."""
    try:
        program = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode()
    except OSError:
        return ""
    return next((name for part, name in SERVERS.items() if part in program), "")


def sentence(rate: float, per_job: dict[str, float]) -> str:
    """A round in one line."""
    most = sorted(per_job.items(), key=lambda pair: -pair[1])
    shares = ", ".join(f"{name} {value:.2f}" for name, value in most if value >= 0.05)
    return f"  {rate:.0f} jobs/s; ms of processor time a job: {sum(per_job.values()):.2f} ({shares})"


async def throughput(
    pool: ThrowawayPool,
    group: Path | None,
    directory: Path,
    *,
    jobs: int,
    users: int,
    rounds: int,
    files: bool,
) -> dict[str, Any]:
    """Jobs per second from submission to the end of the last, and what each has cost whom."""
    rates: list[float] = []
    costs: list[dict[str, float]] = []
    for number in range(rounds):
        place = directory / f"round{number}"
        place.mkdir()
        for job in range(jobs if files else 0):
            (place / f"in.{job}").write_text(f"input of job {job}\n")
        before = spent(pool, group)
        began = time.perf_counter()
        text = FILES if files else TRUE
        clusters = [
            (await pool.client.submit(line + text.format(count=jobs // users), cwd=place)).cluster
            for line in submitters(users)
        ]
        for cluster in clusters:
            await finished(pool.client, cluster)
        rates.append(jobs / (time.perf_counter() - began))
        after = spent(pool, group)
        costs.append({name: 1000 * (after[name] - before.get(name, 0.0)) / jobs for name in after})
        say(sentence(rates[-1], costs[-1]))
        if files:
            check(place, jobs)
    each = {name: round(statistics.median(cost[name] for cost in costs), 3) for name in costs[0]}
    whole = sum(each.values())
    services = (sum(value for name, value in cost.items() if name not in OF_JOBS) for cost in costs)
    return {
        "jobs_per_second": summary(rates, 1),
        "processor_ms_per_job": round(whole, 2),
        "services_ms_per_job": summary(services, 2),
        "processor_ms_per_job_by_service": each,
        "share_of_processor_time": {name: round(value / whole, 3) for name, value in each.items()},
        "jobs": jobs,
    }


def submitters(users: int) -> list[str]:
    """What distinguishes several submitters for the negotiator, with the same user for all."""
    return [f"accounting_group = user{number}\n" for number in range(users)] if users > 1 else [""]


def check(place: Path, jobs: int) -> None:
    """Each job has written what it was given."""
    for job in range(jobs):
        if (place / f"out.{job}").read_text() != f"input of job {job}\n":
            raise SystemExit(f"{place / f'out.{job}'} is not what job {job} was given")


async def measure(arguments: argparse.Namespace, directory: Path, group: Path | None) -> dict[str, Any]:
    """All that was asked for."""
    report: dict[str, Any] = {}
    for slots in arguments.slots:
        home = directory / f"slots{slots}"
        home.mkdir()
        settings: dict[str, dict[str, Value]] = {
            "master": {"throwaway": False},
            "startd": {
                "mount_under_scratch": list(StartdSettings().mount_under_scratch)
            },  # as people have it
            "schedd": {"accounting_groups": {f"user{n}": ["*"] for n in range(max(arguments.users))}},
        }
        async with throwaway_pool(home, cpus=slots, settings=settings) as pool:
            say(f"{slots} slots: warming up")
            await finished(pool.client, (await pool.client.submit(TRUE.format(count=WARM))).cluster)
            figures = report[f"{slots}_slots"] = {}
            if arguments.latency:
                say("latency of one job")
                figures["latency"] = await latency(pool.client, arguments.latency)
            for jobs, users in product(arguments.jobs, arguments.users):
                name = f"{jobs}_jobs" if users == 1 else f"{jobs}_jobs_of_{users}_users"
                say(f"throughput, {name.replace('_', ' ')}{' with files' if arguments.files else ''}")
                place = home / name
                place.mkdir()
                figures[name] = await throughput(
                    pool,
                    group,
                    place,
                    jobs=jobs,
                    users=users,
                    rounds=arguments.rounds,
                    files=arguments.files,
                )
    return report


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slots", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--jobs", type=int, nargs="+", default=[2000], help="of each round; may be several")
    parser.add_argument("--users", type=int, nargs="+", default=[1], help="who share the jobs of each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--latency", type=int, default=100, help="single jobs, one after another; 0: do not measure"
    )
    parser.add_argument("--files", action="store_true", help="input, output and log of each job")
    arguments = parser.parse_args()
    with accounted() as group, tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        report = asyncio.run(measure(arguments, Path(directory), group))
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
