"""
`make bench`: how fast this is on the machine it runs on, as JSON on standard output.

Each figure is the median of several rounds, with the range seen.  `calibration` says, from the same run, how fast the
machine was: compare ratios between machines, not seconds.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.performance.table import table

from kettle.client import select
from kettle.embedded import EmbeddedPostgres
from kettle.pool import processes
from kettle.testing.measurements import proportional_kib, say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
APPEND: Final = HERE / "append.py"


class Script(msgspec.Struct, frozen=True):
    """A part that another program measures."""

    name: str
    says: str
    quick: tuple[str, ...] = ()
    always: tuple[str, ...] = ()


SCRIPTS: Final = {
    "classads": Script("classads.py", "ClassAds and matchmaking"),
    "event_log": Script(
        "eventlog.py", "the event log: published, projected, replayed, taken over", ("--quick",)
    ),
    "queueing": Script(
        "queueing.py",
        "the queue: submissions, questions, holding all of it",
        ("--queued=10000", "--rounds=3"),
    ),
    "commands": Script(
        "commands.py",
        "the condor_* commands: whole processes, long queues, a loop of submissions",
        ("--rounds=5", "--queued", "1000", "10000", "--submissions=50"),
    ),
    "jobs": Script(
        "jobs.py",
        "short jobs: latency of one, throughput of 2,000 on 8 and 32 slots",
        ("--rounds=3", "--latency=30"),
    ),
    "users": Script(
        "jobs.py",
        "short jobs: 6,000 of a hundred users on 32 slots",
        ("--jobs=600", "--rounds=1"),
        ("--slots=32", "--jobs=6000", "--users=100", "--latency=0", "--rounds=3"),
    ),
    "tasks": Script(
        "tasks.py",
        "task queues: calls of functions, lines and commands on one worker and two",
        ("--functions=20000", "--lines=10000", "--commands=500", "--rounds=1"),
    ),
    "idle": Script(
        "idle.py", "a personal pool that does nothing", ("--settle=2", "--seconds=5", "--rounds=1")
    ),
    "many_jobs": Script(
        "jobs.py",
        "short jobs: throughput of 20,000",
        ("--jobs=5000", "--slots=8"),
        ("--jobs=20000", "--latency=0", "--rounds=5"),
    ),
    "files": Script(
        "jobs.py", "short jobs with input, output and log", ("--slots=8",), ("--files", "--latency=0")
    ),
    "recovery": Script(
        "recovery.py",
        "a schedd that is killed with a long queue, and the memory of 1,000 running jobs",
        ("--queued=1000", "--running=100", "--rounds=3"),
    ),
    "farm": Script(
        "farm.py",
        "a farm of 50,000 simulated slots, with jobs that a pool on two processors can end as fast as they do",
        ("--machines=20", "--cores=10", "--jobs=2000", "--seconds=20", "--period=60"),
        ("--seconds=300",),
    ),
    "busy_farm": Script(
        "farm.py",
        "a farm of 12,600 simulated slots with jobs of a minute",
        ("--machines=20", "--cores=10", "--jobs=2000", "--seconds=20", "--period=60"),
        ("--machines=200", "--seconds=60"),
    ),
    "transfer": Script("transfer.py", "files: through the object store, with one job, shared by many"),
    "urls": Script("urls.py", "one large file by each kind of URL", ("--mib=64",)),
    "identity": Script("identity.py", "identity: checks of tokens", ("--rounds=3", "--checks=500")),
    "gateway": Script(
        "gateway.py",
        "the REST interface with 100,000 queued and 300,000 ended jobs",
        ("--queued=5000", "--history=10000", "--rounds=5"),
    ),
    "streams": Script(
        "gateway_streams.py", "streams of events: 500 readers of one gateway", ("--readers=20", "--idle=1")
    ),
    "pages": Script(
        "gateway_pages.py",
        "pages with 100,000 held jobs of the person who looks, and 300,000 ended ones",
        ("--queued=5000", "--history=10000", "--rounds=5"),
    ),
    "live_pages": Script(
        "gateway_live.py",
        "pages that 500 browsers watch, with 100,000 queued jobs",
        ("--browsers=60", "--queued=5000", "--idle=1"),
    ),
    "gateway_pool": Script(
        "gateway_pool.py",
        "the gateway of a pool: 10,000 jobs by one request, and the past",
        ("--jobs=1000", "--changes=4000", "--rounds=3"),
    ),
    "logins": Script(
        "logins.py", "identity: people who come with a token", ("--rounds=3", "--logins=300", "--seconds=4")
    ),
    "identity_pool": Script(
        "identity_pool.py",
        "identity: withdrawals, an iam that is restarted, machines that join, pools that come up",
        ("--starts=1", "--rounds=2", "--restarts=1", "--joins=1"),
    ),
    "workflows": Script(
        "workflows.py", "DAG files: read and checked, with memory", ("--nodes=50000", "--rounds=3")
    ),
    "workflow_chain": Script(
        "workflow_runs.py",
        "DAGs of 100 nodes, one after the other",
        ("--rounds=1",),
        ("chain", "--nodes", "100"),
    ),
    "workflow_fan_out": Script(
        "workflow_runs.py",
        "DAGs of 1,000 and more nodes beside as many plain jobs",
        ("--nodes", "1000", "--rounds=1"),
        ("fan-out", "--nodes", "1000", "3000", "10000"),
    ),
    "workflow_restart": Script(
        "workflow_runs.py",
        "a DAG of 100,000 nodes, half of them done, read again",
        ("--rounds=1",),
        ("restart", "--nodes", "100000"),
    ),
    "workflow_tasks": Script(
        "workflow_runs.py", "a job of 100 tasks", ("--rounds=1",), ("tasks", "--nodes", "100")
    ),
    "routes": Script(
        "routes.py", "routes of a compute entrypoint: decisions a second", ("--rounds=3", "--jobs=500")
    ),
    "elastic": Script(
        "elastic.py",
        "pools that grow and shrink: plans, from nothing to nothing, a scaler that is killed, faults",
        ("--rounds=1", "--leases=20", "--chaos=0"),
    ),
    "ce": Script(
        "entrypoint.py",
        "20,000 pilots of a compute entrypoint over one SSH login",
        ("--pilots=200", "--seconds=5"),
    ),
    "facility": Script(
        "facility.py",
        "services of jobs through tunnel and gateway: one stream, answers, 1,100 connections",
        (
            "--rounds=3",
            "--mib=128",
            "--answers=200",
            "--idle=50",
            "--busy=10",
            "--seconds=2",
            "--rounds-of-clusters=1",
            "--workers=12",
            "--gigabytes=0.2",
        ),
    ),
    "queued": Script("queued.py", "memory of a schedd by what waits in its queue"),
    "cycle": Script("cycle.py", "negotiation cycles through the real service"),
    "fairness": Script(
        "fairness.py",
        "an hour of fifty users on 200 simulated machines",
        ("--users=10", "--jobs=2000", "--machines=20", "--pace=60"),
    ),
    "simulator": Script(
        "simulator.py",
        "simulated pools of 10,000 cores: jobs a second and bytes a job, beside a bare heap",
        (
            *("--rounds=1", "--heap=20000", "--wrench=20000", "--batch=20000", "--kettle=3000"),
            *("--million=2000", "--day=2000"),
        ),
    ),
}
PARTS: Final = ("classads", "append", "event_log", "jobs", "memory", "queueing", "commands")
OPTIONAL: Final = (
    "many_jobs",
    "users",
    "idle",
    "files",
    "recovery",
    "farm",
    "busy_farm",
    "transfer",
    "urls",
    "identity",
    "gateway",
    "streams",
    "pages",
    "live_pages",
    "gateway_pool",
    "logins",
    "identity_pool",
    "ce",
    "routes",
    "queued",
    "cycle",
    "facility",
    "fairness",
    "elastic",
    "simulator",
    "workflow_chain",
    "workflow_fan_out",
    "workflow_restart",
    "workflow_tasks",
    "workflows",
)
"""
Parts that run only when they are asked for: they take their time, write some GiB, fill queues with a million jobs, and pools
with 100,000 machines.
"""
TOGETHER: Final[dict[str, tuple[str, ...]]] = {
    "ce": ("routes",),
    "identity": ("logins", "identity_pool"),
    "gateway": ("streams", "pages", "live_pages", "gateway_pool"),
    "workflows": ("workflow_chain", "workflow_fan_out", "workflow_restart", "workflow_tasks"),
}
"""Parts that are run with another one, because they are about the same."""
TABLE: Final[dict[str, tuple[str, ...]]] = {
    "jobs": (),
    "many_jobs": (),
    "users": (),
    "tasks": ("--workers=1",),
    "files": (),
    "queueing": ("--part=one_cluster", "--part=hold"),
    "cycle": ("--slots=10000", "--jobs=10000", "--autoclusters=1000"),
    "farm": (),
    "busy_farm": (),
    "queued": ("--case=100000_in_10", "--rounds=5"),
    "recovery": (),
    "commands": ("--queued=100000",),
    "idle": (),
}
"""What docs/explanation/performance.md shows, in its order, and what of it."""
SLEEP: Final = (
    "executable = /bin/sleep\narguments = 600\nrequest_memory = 128\nrequest_disk = 1MB\nqueue {count}\n"
)


def calibrate() -> dict[str, Any]:
    """
    What the machine does in a second: starting processes, flushing 4 KiB to its disk, turning a bare Python loop.
    """

    def spawns() -> float:
        began, count = time.perf_counter(), 200
        for _ in range(count):
            subprocess.run(["/bin/true"], check=True)
        return count / (time.perf_counter() - began)

    def loops() -> float:
        began, count = time.perf_counter(), 2_000_000
        for _ in range(count):
            pass
        return count / (time.perf_counter() - began) / 1e6

    def flushes() -> float:
        count, page = 500, bytes(4096)
        with tempfile.NamedTemporaryFile(prefix="kettle-bench-") as file:
            began = time.perf_counter()
            for _ in range(count):
                os.write(file.fileno(), page)
                os.fsync(file.fileno())
            return count / (time.perf_counter() - began)

    return {
        "spawns_per_second": summary((spawns() for _ in range(5)), 0),
        "flushes_per_second": summary((flushes() for _ in range(5)), 0),
        "loop_turns_per_us": summary((loops() for _ in range(5)), 1),
        "processors": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 2),
    }


def pool_pids(pool: ThrowawayPool) -> set[int]:
    """All processes of the pool: servers, services, starters and jobs."""
    return {p.pid for p in processes.of_pool(pool.state.pool_id, pool.home / "execute")}


async def memory(pool: ThrowawayPool, jobs: int) -> dict[str, Any]:
    """Proportional set size of each service, and what one more running job costs."""
    before = {d.name: proportional_kib(d.pid) for d in pool.state.daemons if d.pid}
    known = pool_pids(pool)
    submitted = await pool.client.submit(SLEEP.format(count=jobs))
    async with asyncio.timeout(60):
        while len(new := pool_pids(pool) - known) < 2 * jobs:  # a starter and the job itself
            await asyncio.sleep(0.1)
    per_job = sum(proportional_kib(pid) for pid in new) / jobs
    after = {d.name: proportional_kib(d.pid) for d in pool.state.daemons if d.pid}
    await pool.client.remove(select(submitted.cluster))
    await pool.client.wait(select(submitted.cluster))
    return {
        "per_service_mib": {name: round(kib / 1024, 1) for name, kib in sorted(before.items())},
        "per_running_job_mib": round(per_job / 1024, 2),
        "services_per_running_job_kib": round(sum(after[n] - before[n] for n in before) / jobs, 1),
        "processes_per_running_job": round(len(new) / jobs, 2),
        "running_jobs": jobs,
    }


async def events(directory: Path, rounds: int) -> dict[str, Any]:
    """
    Events appended per second by one owner to a real database, by number of callers that wait for their commits.
    """
    by_callers: dict[str, list[float]] = {}
    async with EmbeddedPostgres(directory / "append") as postgres:
        for _ in range(rounds):
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(APPEND), postgres.dsn, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            for callers, figures in json.loads(out).items():
                by_callers.setdefault(callers, []).append(figures["events_per_s"])
    return {callers: {"events_per_second": summary(rates, 0)} for callers, rates in by_callers.items()}


async def measured(script: Path, *arguments: str) -> dict[str, Any]:
    """
    What another script measures, in a process of its own: its memory counts, or its speed without our loop.

    One that fails has said why on standard error; of it is only told that it failed, so that an hour of others is not lost.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"tests.performance.{script.stem}", *arguments),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    if process.returncode:
        say(f"{script.name} ended with {process.returncode}")
        return {"failed": process.returncode}
    figures: dict[str, Any] = json.loads(out)
    return figures


async def bench(arguments: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """All figures."""
    report: dict[str, Any] = {"calibration": calibrate()}
    asked = arguments.part or PARTS
    chosen = {*asked, *(more for part in asked for more in TOGETHER.get(part, ()))}
    shown = TABLE if "table" in chosen else {}
    for part in shown or [part for part in (*PARTS, *OPTIONAL) if part in chosen]:
        if part in SCRIPTS:
            script = SCRIPTS[part]
            say(script.says)
            options = (*script.always, *shown.get(part, ()), *(script.quick if arguments.quick else ()))
            more = transfer_options(arguments) if part == "transfer" else ()
            report[part] = await measured(HERE / script.name, *options, *more)
        elif part == "append":
            say("appending events")
            report["append"] = await events(directory, arguments.rounds)
        else:
            say("memory")
            async with throwaway_pool(directory, cpus=64, memory_mib=65536) as pool:
                report["memory"] = await memory(pool, arguments.running)
    report["calibration_after"] = calibrate()
    return report


def transfer_options(arguments: argparse.Namespace) -> list[str]:
    """What is passed on to the script that moves files."""
    chosen = ("mib", "shared_jobs", "shared_mib", "rounds")
    return [f"--{name.replace('_', '-')}={getattr(arguments, name)}" for name in chosen]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--running", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="a small queue for what is about large ones")
    parser.add_argument(
        "--part",
        action="append",
        choices=(*PARTS, *OPTIONAL, "table"),
        help="only this; may be repeated.  table: all that the page about performance shows, in about an hour",
    )
    parser.add_argument("--mib", type=int, default=1024, help="part transfer: of the one large file")
    parser.add_argument("--shared-jobs", type=int, default=500, help="part transfer: jobs with one input")
    parser.add_argument("--shared-mib", type=int, default=100, help="part transfer: of that input")
    parser.add_argument(
        "--before",
        type=Path,
        metavar="FILE",
        help="an earlier report, for the table: it is printed on standard error",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        report = asyncio.run(bench(arguments, Path(directory)))
    print(json.dumps(report, indent=2))
    if "table" in (arguments.part or ()):
        sys.stderr.write(
            table(report, json.loads(arguments.before.read_text()) if arguments.before else None)
        )
    return int(any("failed" in part for part in report.values()))


if __name__ == "__main__":
    raise SystemExit(main())
