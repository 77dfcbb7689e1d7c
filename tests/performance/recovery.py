"""
How long a schedd that was killed is away, with a long queue and many running jobs, and that nothing is started again.

    python -m tests.performance.recovery [--queued 10000] [--running 1000] [--rounds 5]

All is real: 1,000 starters with their jobs.  The schedd is ended with SIGKILL, the master starts another one, and the time is
taken from the signal to the first answer about a job; what the master leaves between two starts, which settings say, is given
apart.  Then all leases are renewed several times, and every job must still be in its first run, in the processes that it had.
Prints JSON, with the memory of all processes per running job.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.client import ClientError, select
from kettle.pool import processes
from kettle.pool.personal_settings import Value
from kettle.testing.measurements import parent, proportional_kib, say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

SLEEP: Final = "executable = /bin/sleep\narguments = 3600\ntransfer_executable = false\nrequest_memory = 128\nrequest_disk = 1\nqueue {count}\n"
WITHIN_S: Final = 300.0
RENEWALS_S: Final = 3.0
"""Several times the interval at which the schedd of such a pool renews its leases."""
_LOOK_S: Final = 0.1
_AGAIN_S: Final = 0.05


def pids(pool: ThrowawayPool) -> set[int]:
    """All processes of the pool: servers, services, starters and jobs."""
    return {each.pid for each in processes.of_pool(pool.state.pool_id, pool.home / "execute")}


def workers(pool: ThrowawayPool) -> dict[int, int]:
    """The process of each job, and its starter."""
    found = processes.of_pool(pool.state.pool_id, pool.home / "execute")
    return {each.pid: parent(each.pid) for each in found if each.command.startswith("/bin/sleep ")}


def memory_kib(pool: ThrowawayPool) -> int:
    """Of all of them together."""
    return sum(map(proportional_kib, pids(pool)))


async def running(pool: ThrowawayPool, count: int, known: AbstractSet[int] = frozenset()) -> None:
    """Wait until so many jobs run, each with a starter, in processes that are not `known`."""
    async with asyncio.timeout(WITHIN_S):
        while len(pids(pool) - known) < 2 * count:
            await asyncio.sleep(_LOOK_S)
        while (await pool.client.totals(select(constraint="true"))).statuses.get("running", 0) < count:
            await asyncio.sleep(_LOOK_S)


async def starts(pool: ThrowawayPool, cluster: int | str) -> dict[str, int]:
    """How often each job that runs was started."""
    wanted = ["ClusterId", "ProcId", "NumShadowStarts", "JobStatus"]
    found = await pool.client.jobs(select(cluster), projection=wanted)
    return {f"{ad['ClusterId']}.{ad['ProcId']}": int(str(ad["NumShadowStarts"])) for ad in found}


class Away(msgspec.Struct, frozen=True):
    """How long a schedd was away, in seconds since its end."""

    started: float
    """When the master had started the next process."""
    serving: float
    """When that said that it serves."""
    answered: float
    """When somebody had an answer about a job."""


async def away(pool: ThrowawayPool, cluster: int) -> Away:
    """Kill the schedd, and ask until there is an answer."""
    began, at = time.perf_counter(), time.time()
    pid = pool.kill("schedd")
    restarted = asyncio.create_task(serving(pool, pid, began))
    asking: set[asyncio.Task[bool]] = set()
    async with asyncio.timeout(WITHIN_S):
        while not any(each.done() and each.result() for each in asking):
            # One who asked the schedd that died hears so only when his patience is at its end: others ask after him.
            asking.add(asyncio.create_task(asked(pool, cluster)))
            await asyncio.wait(asking, timeout=_AGAIN_S, return_when=asyncio.FIRST_COMPLETED)
            asking = {each for each in asking if not each.done() or each.result()}
    answered = time.perf_counter() - began
    for each in asking:
        each.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    served = await restarted
    return Away(pool.daemon("schedd").since - at, served, answered)


async def asked(pool: ThrowawayPool, cluster: int) -> bool:
    """Ask about a job; whether there was an answer."""
    try:
        found = await pool.client.jobs(select(cluster), projection=["JobStatus"], limit=1)
    except ClientError:
        return False
    return len(found) == 1


async def serving(pool: ThrowawayPool, pid: int, began: float) -> float:
    """When the next schedd said that it serves."""
    await pool.restarted("schedd", after=pid)
    return time.perf_counter() - began


async def untouched(pool: ThrowawayPool, jobs: dict[str, int], before: dict[int, int]) -> None:
    """Every job is in the run in which it was, and all starters and jobs are the processes that they were."""
    now = await starts(pool, next(iter(jobs)).partition(".")[0])
    if now != jobs:
        changed = {job: (jobs.get(job), now.get(job)) for job in jobs | now if jobs.get(job) != now.get(job)}
        raise SystemExit(f"jobs were started again (starts before and now): {changed}")
    if workers(pool) != before:
        raise SystemExit("starters or jobs are other processes than before")


async def measure(directory: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fill the pool, kill the schedd again and again, and see that nobody has noticed."""
    settings: dict[str, dict[str, Value]] = {
        "master": {"throwaway": False, "backoff_constant": arguments.backoff},
        "schedd": {"alive_interval": 0.5, "lease": 60.0, "lease_margin": 5.0},
    }
    count = arguments.running
    async with throwaway_pool(directory, cpus=count, memory_mib=128 * count, settings=settings) as pool:
        empty, known = memory_kib(pool), pids(pool)
        say(f"{count} jobs to run")
        busy = (await pool.client.submit(SLEEP.format(count=count))).cluster
        began = time.perf_counter()
        await running(pool, count, known)
        filled = time.perf_counter() - began
        full, before = memory_kib(pool), workers(pool)
        if len(before) != count:
            raise SystemExit(f"{len(before)} jobs run, not {count}")
        say(f"they run after {filled:.1f} s; {arguments.queued} jobs to wait")
        waiting = (await pool.client.submit(SLEEP.format(count=arguments.queued))).cluster
        jobs = await starts(pool, busy)
        if again := {job: times for job, times in jobs.items() if times != 1}:
            raise SystemExit(f"jobs were started more than once before anything was killed: {again}")
        rounds: list[Away] = []
        for _ in range(arguments.rounds):
            rounds.append(await away(pool, waiting))
            say(f"  {rounds[-1]}")
            await asyncio.sleep(RENEWALS_S)
            await untouched(pool, jobs, before)
            await running(pool, count)
        await pool.client.remove(select(constraint="true"))
    return {
        "queued": arguments.queued,
        "running": count,
        "all_run_after_s": round(filled, 1),
        "mib_per_running_job": round((full - empty) / 1024 / count, 2),
        "answered_s": summary((each.answered for each in rounds), 2),
        "of_which_until_the_master_started_it_s": summary((each.started for each in rounds), 2),
        "of_which_until_it_served_s": summary((each.serving for each in rounds), 2),
        "backoff_s": settings["master"]["backoff_constant"],
        "started_again": 0,
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queued", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backoff", type=float, default=0.02, help="MASTER_BACKOFF_CONSTANT, seconds")
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        print(json.dumps(asyncio.run(measure(Path(directory), parser.parse_args())), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
