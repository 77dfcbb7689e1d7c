"""
How fast a schedd answers people: submissions, questions about a long queue, holding and releasing all of it.

The services are real, and where a person would type a command it is a whole process, its start included.  Beside the
time that passes each figure has the processor time of the client and of the schedd, which a busy machine changes less.
"""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from kettle.client import Select, prepare, select
from kettle.testing.measurements import processor_seconds, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

JOB: Final = (
    "executable = /bin/true\ntransfer_executable = false\nrequirements = false\narguments = $(Process)\n"
)
IN_FLIGHT: Final = 100
"""Submissions of one connection that wait for their answers at the same time."""
THREE: Final = "ClusterId,ProcId,JobStatus"
BEATS: Final = 0.02
"""How often, seconds, somebody else asks the schedd for next to nothing while it is busy."""
KETTLE: Final = "from kettle_services.cli.entry import command; command()"
"""What the file `kettle` is, wherever it was installed."""
CONDOR: Final = "from kettle_services.condor.start import command; command({!r})"
MEASURED: Final = """\
import json, os, sys, time
read, write = os.pipe()
began, first = time.perf_counter(), 0.0
actions = [(os.POSIX_SPAWN_DUP2, write, 1)] if sys.argv[1] == "pipe" else []
process = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=actions)
os.close(write)
while actions and os.read(read, 1 << 20):
    first = first or time.perf_counter() - began
_, status, used = os.wait4(process, 0)
said = {"status": status, "seconds": time.perf_counter() - began, "first": first, "mib": used.ru_maxrss / 1024}
sys.stderr.write(json.dumps(said))
"""
"""
Runs a program, and says on standard error what it took. It stands between because a program's peak of memory includes what
its parent had when it started it, and the measuring program may have much.
"""


class Round:
    """What one round took."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.client_cpu = 0.0
        self.schedd_cpu = 0.0
        self.longest_wait = 0.0
        """The longest that somebody else waited meanwhile for the answer to a question about nothing."""
        self.mib = 0.0
        """The client's peak of memory, of a whole process; about 9 is the least that can be measured."""
        self.first = 0.0
        """Seconds until the first output, where it is read as it comes."""


def own_cpu() -> float:
    """Processor time of this process and of the children that have ended, seconds."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


async def beat(pool: ThrowawayPool, waits: list[float]) -> None:
    """Ask again and again for a job that is not there."""
    while True:
        began = time.perf_counter()
        await pool.client.jobs(select("999999999.0"), projection=["ProcId"])
        waits.append(time.perf_counter() - began)
        await asyncio.sleep(BEATS)


async def timed(pool: ThrowawayPool, work: Callable[[], Awaitable[object]], *, beside: bool = False) -> Round:
    """
    Do it once; `beside`: with somebody else who asks meanwhile, whose processor time counts as the client's.
    """
    result, waits = Round(), list[float]()
    heart = asyncio.create_task(beat(pool, waits)) if beside else None
    before = own_cpu(), processor_seconds(pool.pid("schedd"))
    began = time.perf_counter()
    await work()
    result.seconds = time.perf_counter() - began
    result.client_cpu, result.schedd_cpu = (
        own_cpu() - before[0],
        processor_seconds(pool.pid("schedd")) - before[1],
    )
    if heart is not None:
        await asyncio.sleep(2 * BEATS)
        heart.cancel()
        await asyncio.wait([heart])
        result.longest_wait = max(waits)
    return result


def figures(rounds: list[Round], *, per_second: int = 0) -> dict[str, Any]:
    """All rounds of one thing; `per_second`: of so many each was done at once."""
    report: dict[str, Any] = {
        "seconds": summary(each.seconds for each in rounds),
        "client_cpu_s": summary(each.client_cpu for each in rounds),
        "schedd_cpu_s": summary((each.schedd_cpu for each in rounds), 2),
    }
    if per_second:
        report["per_second"] = summary((per_second / each.seconds for each in rounds), 0)
    if any(each.longest_wait for each in rounds):
        report["others_wait_s"] = summary(each.longest_wait for each in rounds)
    if any(each.first for each in rounds):
        report["first_output_s"] = summary(each.first for each in rounds)
    if any(each.mib for each in rounds):
        report["client_mib"] = summary((each.mib for each in rounds), 1)
    return report


async def command(pool: ThrowawayPool, *words: str, piped: bool = False) -> Round:
    """
    A whole process of `kettle`, or of a condor_* command, and what it alone took; what it prints goes into a file, as if
    somebody kept it, or, `piped`, to somebody who reads it as it comes.
    """
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home)}
    name, *rest = words if words[0].startswith("condor_") else ("", *words)
    code = CONDOR.format(name) if name else KETTLE
    program = [sys.executable, "-P", "-c", code, *rest]
    with tempfile.TemporaryFile() as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-IS", "-c", MEASURED, "pipe" if piped else "file"),
            *program,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=asyncio.subprocess.PIPE,
            env=environ,
            cwd=pool.home.parent,
        )
        _, said = await process.communicate()
    measured = json.loads(said.splitlines()[-1])
    if process.returncode or measured["status"]:
        raise SystemExit(f"{' '.join(words)} failed: {said.decode()}")
    result = Round()
    result.mib, result.first = measured["mib"], measured["first"]
    return result


async def timed_command(
    pool: ThrowawayPool, words: Sequence[str], *, piped: bool = False, beside: bool = False
) -> Round:
    """One process of a command, with its peak of memory."""
    alone = Round()

    async def run() -> None:
        nonlocal alone
        alone = await command(pool, *words, piped=piped)

    result = await timed(pool, run, beside=beside)
    result.mib, result.first = alone.mib, alone.first
    return result


async def of_command(pool: ThrowawayPool, rounds: int, *words: str) -> dict[str, Any]:
    """So many processes of one command, one after the other."""
    return figures([await timed_command(pool, words) for _ in range(rounds)])


async def start(pool: ThrowawayPool, rounds: int, _: argparse.Namespace) -> dict[str, Any]:
    """
    What every command takes that asks the schedd, whatever it asks: for the other figures to be judged by.
    """

    async def bare() -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-P", "-c", "pass")
        await process.wait()

    return {
        "interpreter": figures([await timed(pool, bare) for _ in range(rounds)]),
        "kettle_version": await of_command(pool, rounds, "version"),
        "kettle_q_of_nothing": await of_command(pool, rounds, "q", "999999999.0"),
    }


async def one_cluster(pool: ThrowawayPool, rounds: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """
    Many jobs in one cluster: to the durable answer, of a program that is connected and of a whole process.
    """
    jobs = arguments.in_one_cluster
    text = f"{JOB}queue {jobs}\n"
    (file := pool.home.parent / "many.sub").write_text(text)
    prepared, described, whole = list[Round](), list[Round](), list[Round]()
    for _ in range(rounds):
        submission = prepare(text)
        prepared.append(await timed(pool, lambda: pool.client.submit(submission), beside=True))  # noqa: B023 - at once
        described.append(await timed(pool, lambda: pool.client.submit(text)))
        whole.append(await timed(pool, lambda: command(pool, "submit", str(file))))
        await pool.client.remove(everything(pool))
    return {
        "jobs": jobs,
        "request_to_answer": figures(prepared, per_second=jobs),
        "description_to_answer": figures(described, per_second=jobs),
        "whole_process": figures(whole, per_second=jobs),
    }


async def many_clusters(pool: ThrowawayPool, rounds: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Clusters of one job over one connection, many of them under way at the same time."""
    submission = prepare(f"{JOB}queue\n")

    async def all_of_them() -> None:
        left = iter(range(arguments.clusters))

        async def some() -> None:
            for _ in left:
                await pool.client.submit(submission)

        await asyncio.gather(*(some() for _ in range(IN_FLIGHT)))

    taken: list[Round] = []
    for _ in range(rounds):
        taken.append(await timed(pool, all_of_them))
        await pool.client.remove(everything(pool))
    clusters = arguments.clusters
    return {"clusters": clusters, "in_flight": IN_FLIGHT, **figures(taken, per_second=clusters)}


async def query(pool: ThrowawayPool, rounds: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Questions about a long queue, each by a whole process."""
    newest = await fill(pool, arguments.queued)
    three = ("q", "--all", "--attributes", THREE)
    return {
        "jobs": arguments.queued,
        "three_attributes_of_all": await of_command(pool, rounds, *three),
        "three_attributes_of_all_json": await of_command(pool, rounds, *three, "--json"),
        "totals": await of_command(pool, 2 * rounds, "q", "--all", "--totals"),
        "one_job": await of_command(pool, 2 * rounds, "q", f"{newest}.77"),
        "table_of_all": await of_command(pool, 1, "q", "--all"),
    }


STREAMED: Final = {
    "whole_ads_json": ("q", "--all", "--json"),
    "whole_ads_long": ("q", "--all", "--long"),
    "page": ("q", "--all", "--limit", "50"),
    "constraint": ("q", "--constraint", "RequestMemory == 200 && ProcId == 7"),
    "condor_q": ("condor_q",),
    "condor_q_nobatch": ("condor_q", "-nobatch"),
    "condor_q_totals": ("condor_q", "-totals"),
    "condor_q_long": ("condor_q", "-long"),
}
"""What is asked about a long queue whose jobs were all edited."""
PIPED: Final = frozenset({"condor_q_nobatch"})
"""Those that somebody reads line by line: then it counts when the first line comes."""


async def stream(pool: ThrowawayPool, rounds: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """
    All of a long queue, whose jobs were all edited, in the forms in which people and programs ask for it, in turns; with
    the client's memory, and what others wait meanwhile.
    """
    await fill(pool, arguments.queued)
    await pool.client.edit_jobs(everything(pool), {"RequestMemory": 200})
    taken: dict[str, list[Round]] = {name: [] for name in arguments.form or STREAMED}
    for _ in range(rounds):
        for name, found in taken.items():
            found.append(await timed_command(pool, STREAMED[name], piped=name in PIPED, beside=True))
    return {"jobs": arguments.queued, **{name: figures(found) for name, found in taken.items()}}


async def hold(pool: ThrowawayPool, rounds: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """
    All jobs of a long queue held by one command, and released by another; and what others wait meanwhile.
    """
    await fill(pool, arguments.queued)
    held, released = list[Round](), list[Round]()
    for _ in range(rounds):
        held.append(await timed(pool, lambda: command(pool, "hold", "--all"), beside=True))
        released.append(await timed(pool, lambda: command(pool, "release", "--all"), beside=True))
    return {"jobs": arguments.queued, "hold": figures(held), "release": figures(released)}


async def priority(pool: ThrowawayPool, rounds: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """The priority of all jobs of a long queue raised by one command, which records it in one piece."""
    await fill(pool, arguments.queued)
    raised = [
        await timed(pool, lambda: command(pool, "prio", "--all", "+5"), beside=True) for _ in range(rounds)
    ]
    return {"jobs": arguments.queued, "raise": figures(raised)}


def everything(pool: ThrowawayPool) -> Select:
    """All jobs of the measuring user."""
    return select(owners=[pool.client.pool.user])


async def fill(pool: ThrowawayPool, jobs: int) -> int:
    """So many jobs in ten clusters; the newest of these."""
    newest = 0
    for _ in range(10):
        newest = (await pool.client.submit(f"{JOB}queue {jobs // 10}\n")).cluster
    return newest


PARTS: Final = {
    "start": start,
    "one_cluster": one_cluster,
    "many_clusters": many_clusters,
    "query": query,
    "stream": stream,
    "hold": hold,
    "priority": priority,
}


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Each part with a pool of its own."""
    report: dict[str, Any] = {}
    for name in arguments.part or PARTS:
        with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
            async with throwaway_pool(Path(directory), cpus=1) as pool:
                await pool.client.submit(f"{JOB}queue\n")
                report[name] = await PARTS[name](pool, arguments.rounds, arguments)
    return report


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; may be repeated")
    parser.add_argument(
        "--form", action="append", choices=STREAMED, help="of the part stream only this; may be repeated"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queued", type=int, default=100_000, help="jobs in the long queue")
    parser.add_argument("--in-one-cluster", type=int, default=10_000)
    parser.add_argument("--clusters", type=int, default=1_000)
    print(json.dumps(asyncio.run(measure(parser.parse_args()))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
