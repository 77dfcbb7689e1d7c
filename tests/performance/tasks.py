"""
What a task of a task queue costs: calls of a function, lines for a program that lives on, and commands, on one worker and on two.

    python -m tests.performance.tasks [--rounds 5] [--functions 100000] [--commands 4000] [--hyperqueue PYTHON]

A round adds tasks to a queue whose workers are there already, and closes it: the time ends when all results are recorded, each with
its exit, usage and output.  `calibration` is how many bare processes one caller starts and waits for in a second, and how often a
bare loop turns.  `--hyperqueue`: a Python that has this package, which runs as many commands in the same minute.
"""

import argparse
import asyncio
import json
import os
import pickle
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.performance.jobs import spent

from kettle.client import select
from kettle.task_queues.worker_jobs import WorkerJobs, description
from kettle.testing.measurements import accounted, say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.task_queues import TaskPlan

WITHIN_S: Final = 600.0
ECHO: Final = "import sys\nfor line in sys.stdin:\n    sys.stdout.write(line)\n    sys.stdout.flush()\n"
HYPERQUEUE: Final = """
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=1))
    client = cluster.client()
    for _ in range(int(sys.argv[2])):
        job = Job()
        for _ in range(int(sys.argv[1])):
            job.program(["true"], stdout=None, stderr=None)
        began = time.perf_counter()
        client.wait_for_jobs([client.submit(job)])
        print(int(sys.argv[1]) / (time.perf_counter() - began))
"""
SPAWNED: Final = 1_000
TURNS: Final = 3_000_000


def calibration() -> dict[str, float]:
    """How fast this machine is now."""
    began = time.perf_counter()
    for _ in range(SPAWNED):
        os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
    spawned = SPAWNED / (time.perf_counter() - began)
    began, turns = time.perf_counter(), 0
    while turns < TURNS:
        turns += 1
    return {
        "spawned_per_second": round(spawned),
        "turns_per_second": round(TURNS / (time.perf_counter() - began)),
    }


async def one_round(
    pool: ThrowawayPool, group: Path | None, plan: TaskPlan, first: bytes, tasks: list[bytes], workers: int
) -> tuple[float, dict[str, float]]:
    """Tasks a second, and microseconds of processor time a task by who used it."""
    client = pool.client
    function = pickle.dumps(abs) if plan.kind == "functions" else b""
    queue = await client.tasks.create(plan, [first] * workers, function=function, close=False)
    jobs = WorkerJobs(workers=workers, memory=64, disk=1, idle=60)
    cluster = (await client.submit(description(queue.id, queue.name, jobs))).cluster
    async with asyncio.timeout(WITHIN_S):
        while (await client.tasks.show(queue.id)).done < workers:
            await asyncio.sleep(0.05)
        before, began = spent(pool, group), time.perf_counter()
        await client.tasks.add(queue.id, tasks, close=True)
        shown = await client.tasks.wait(queue.id)
        took = time.perf_counter() - began
    after = spent(pool, group)
    if (shown.done, shown.failed) != (len(tasks) + workers, 0):
        raise SystemExit(f"{shown.failed} of {len(tasks)} tasks have failed")
    await client.wait(select(cluster))
    cost = {name: 1e6 * (after[name] - before.get(name, 0.0)) / len(tasks) for name in after}
    return len(tasks) / took, cost


async def measured(
    pool: ThrowawayPool, group: Path | None, what: str, tasks: int, workers: int, rounds: int
) -> dict[str, Any]:
    """All rounds of one kind."""
    plans = {
        "functions": (TaskPlan(kind="functions"), pickle.dumps((-7,))),
        "lines": (TaskPlan(kind="lines", program=["python3", "-c", ECHO]), b"point 1 2 3"),
        "commands": (TaskPlan(), b"true"),
    }
    plan, task = plans[what]
    rates: list[float] = []
    costs: list[dict[str, float]] = []
    for _ in range(rounds):
        rate, cost = await one_round(pool, group, plan, task, [task] * tasks, workers)
        rates.append(rate)
        costs.append(cost)
        most = ", ".join(
            f"{name} {value:.1f}" for name, value in sorted(cost.items(), key=lambda each: -each[1])[:7]
        )
        say(
            f"  {what}, {workers} workers: {rate:.0f} tasks/s; us of processor time a task: {sum(cost.values()):.1f} ({most})"
        )
    return {
        "tasks_per_second": summary(rates, 0),
        "microseconds_per_task": summary([sum(cost.values()) for cost in costs], 1),
    }


def hyperqueue(python: Path, tasks: int, rounds: int) -> dict[str, Any]:
    """Commands by HyperQueue: a server and one worker with one CPU, as it comes, without a journal."""
    with tempfile.TemporaryDirectory() as place:
        words = [str(python), "-c", HYPERQUEUE, str(tasks), str(rounds)]
        said = subprocess.run(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    rates = [float(line) for line in said.stdout.decode().splitlines() if line[:1].isdigit()]
    say(f"  HyperQueue: {', '.join(f'{each:.0f}' for each in rates)} commands/s")
    return {"tasks_per_second": summary(rates, 0)}


async def main(options: argparse.Namespace) -> dict[str, Any]:
    """Everything, each kind after the other."""
    found: dict[str, Any] = {"calibration": calibration()}
    with tempfile.TemporaryDirectory() as directory, accounted() as group:
        async with throwaway_pool(Path(directory), cpus=4, memory_mib=4096) as pool:
            for what, tasks in (
                ("functions", options.functions),
                ("lines", options.lines),
                ("commands", options.commands),
            ):
                for workers in options.workers:
                    found[f"{what}_{workers}"] = await measured(
                        pool, group, what, tasks, workers, options.rounds
                    )
    if options.hyperqueue:
        found["hyperqueue"] = hyperqueue(options.hyperqueue, options.commands, options.rounds)
    found["calibration_after"] = calibration()
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--functions", type=int, default=100_000)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--commands", type=int, default=4_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--hyperqueue", type=Path, help="a Python that has the package hyperqueue")
    print(json.dumps(asyncio.run(main(parser.parse_args())), indent=2))
