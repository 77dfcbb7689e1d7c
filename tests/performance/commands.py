"""
How long the condor_* commands take, each as a whole process, its start included: how programs run them, and in loops.

Beside the time that passes each figure has the processor time of the process, which a busy machine changes less; a bare
interpreter is measured among the commands, to judge them by.  Each is measured by itself, and with a command server, whose
own processor time is told for a loop as a whole.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kettle.command_server import asking
from kettle.testing.measurements import say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.condor import launchers

JOB: Final = "executable = /bin/true\ntransfer_executable = false\nrequirements = false\n"
TRUE: Final = "executable = /bin/true\n"
THREE: Final = ("-af", "ClusterId", "ProcId", "JobStatus")
CLUSTERS: Final = 10
"""Into which a long queue is divided."""
SERVED: Final = "_served"
"""The end of the names of what a command server has carried out."""
_PAUSE_S: Final = 0.3
"""Between two single jobs: what the pool does after the former one is done then."""
_LOOK_S: Final = 0.001
"""How often somebody looks whether a log says that its job has ended."""
_FORKED_S: Final = 0.03
"""Processor seconds of a caller that did not load a command: a command by itself takes more on any machine."""


class Run:
    """What one process took, and what it printed."""

    def __init__(self, seconds: float, cpu: float, out: str) -> None:
        self.seconds = seconds
        self.cpu = cpu
        self.out = out


class Commands:
    """The commands of one directory, run against one pool."""

    def __init__(self, place: Path, pool: ThrowawayPool, work: Path) -> None:
        self._place = place
        self.place: Final = work
        """Where they are run."""
        self._work = work
        self._environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "XDG_RUNTIME_DIR": str(work)}

    def run(self, *words: str, typed: str = "", server: bool = False) -> Run:
        """
        A command to its end; one that fails makes the figures worthless.

        `server`: it may be carried out by a command server.
        """
        program = words[0] if os.path.isabs(words[0]) else str(self._place / words[0])  # noqa: PTH117 - no path is needed
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as given:
            given.write(typed.encode())
            given.seek(0)
            began = time.perf_counter()
            process = subprocess.Popen(
                [program, *words[1:]],
                stdin=given,
                stdout=out,
                cwd=self._work,
                env=self._environ | {asking.VARIABLE: "on" if server else "off"},
            )
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
            out.seek(0)
            return Run(seconds, used.ru_utime + used.ru_stime, out.read().decode())

    def warm(self) -> None:
        """Have a command server that takes commands."""
        while not (_locks(self._work) and self.run("condor_version", server=True).cpu < _FORKED_S):
            self.run("condor_version", server=True)

    def end(self) -> None:
        """End the command server."""
        for lock in (self._work / "kettle").glob("*.lock"):
            with suppress(ProcessLookupError):
                os.kill(int(lock.read_text()), signal.SIGTERM)

    def server_cpu(self) -> float:
        """Processor seconds of the command server and of what it has forked."""
        (lock,) = (self._work / "kettle").glob("*.lock")
        fields = Path(f"/proc/{int(lock.read_text())}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def submitted(self, jobs: int) -> int:
        """The cluster of so many jobs that never run."""
        return cluster_of(self.run("condor_submit", "-terse", typed=f"{JOB}queue {jobs}\n"))


def _locks(work: Path) -> list[Path]:
    return list((work / "kettle").glob("*.lock"))


def cluster_of(run: Run) -> int:
    """What `condor_submit -terse` says."""
    return int(run.out.partition(".")[0])


def figures(runs: Sequence[Run]) -> dict[str, Any]:
    """All processes of one command."""
    return {
        "seconds": summary(run.seconds for run in runs),
        "cpu_s": summary(run.cpu for run in runs),
    }


def start(commands: Commands, arguments: argparse.Namespace) -> dict[str, Any]:
    """Each command as a process of its own, one after the other, so that all see the same machine."""
    runs: dict[str, list[Run]] = {}

    def take(name: str, *words: str, typed: str = "", end: str = "") -> Run:
        run = commands.run(*words, typed=typed, server=end == SERVED)
        runs.setdefault(name + end, []).append(run)
        return run

    commands.warm()
    for _ in range(arguments.rounds):
        take("interpreter", sys.executable, "-IS", "-c", "pass")
        for end in ("", SERVED):
            take("condor_version", "condor_version", end=end)
            take("condor_q_of_nothing", "condor_q", end=end)
            submission = take(
                "condor_submit_one_job", "condor_submit", "-terse", typed=f"{JOB}queue\n", end=end
            )
            job = f"{cluster_of(submission)}.0"
            take("condor_q_one_job", "condor_q", job, "-af", "JobStatus", end=end)
            take("condor_rm", "condor_rm", job, end=end)
            take("condor_status", "condor_status", end=end)
    return {name: figures(found) for name, found in runs.items()}


def queue(commands: Commands, arguments: argparse.Namespace) -> dict[str, Any]:
    """Questions about long queues."""
    report: dict[str, Any] = {}
    there, newest = 0, 0
    for wanted in sorted(arguments.queued):
        while there < wanted:
            newest = commands.submitted(wanted // CLUSTERS)
            there += wanted // CLUSTERS
        one = f"{newest}.0"
        lines = commands.run("condor_q", *THREE).out.count("\n")
        if lines < wanted:
            raise SystemExit(f"condor_q shows {lines} of {wanted} jobs")
        report[str(there)] = {
            name: figures([commands.run("condor_q", *words) for _ in range(arguments.rounds)])
            for name, words in {
                "three_attributes_of_all": THREE,
                "totals": ("-totals",),
                "one_job": (one, "-af", "JobStatus"),
            }.items()
        }
    commands.run("condor_rm", "-all")
    return report


def loop(commands: Commands, arguments: argparse.Namespace) -> dict[str, Any]:
    """One job after the other, as a script submits them, and four scripts at once."""
    report: dict[str, Any] = {"calls": arguments.submissions}
    commands.warm()
    for end in ("", SERVED):
        for callers in (1, 4):
            spent = commands.server_cpu()

            def submit(_: int, *, server: bool = end == SERVED) -> Run:
                return commands.run("condor_submit", "-terse", typed=f"{JOB}queue\n", server=server)

            began = time.perf_counter()
            with ThreadPoolExecutor(callers) as several:
                runs = list(several.map(submit, range(arguments.submissions)))
            seconds = time.perf_counter() - began
            report[f"callers_{callers}{end}"] = {
                "calls_per_second": round(len(runs) / seconds, 2),
                "server_cpu_s": round((commands.server_cpu() - spent) / len(runs), 4),
                "condor_submit": figures(runs),
            }
    commands.run("condor_rm", "-all")
    return report


def ended(commands: Commands, arguments: argparse.Namespace) -> dict[str, Any]:
    """
    One job on an idle pool, as a script sees it: from the start of `condor_submit` until the job's log says that it has ended.
    """
    seconds: list[float] = []
    commands.warm()
    for number in range(arguments.rounds):
        time.sleep(_PAUSE_S)
        log = commands.place / f"log.{number}"
        began = time.perf_counter()
        commands.run("condor_submit", "-terse", typed=f"{TRUE}log = {log}\nqueue\n", server=True)
        while b"\n005 (" not in log.read_bytes():
            time.sleep(_LOOK_S)
        seconds.append(time.perf_counter() - began)
    return {"seconds": summary(seconds)}


PARTS: Final = {"start": start, "queue": queue, "loop": loop, "ended": ended}


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Each part with a pool of its own."""
    report: dict[str, Any] = {}
    for name in arguments.part or PARTS:
        say(f"  {name}")
        with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
            place = launchers.install(Path(directory) / "commands")
            async with throwaway_pool(Path(directory), cpus=1) as pool:
                commands = Commands(place, pool, Path(directory))
                commands.run(
                    "condor_rm", f"{commands.submitted(1)}.0"
                )  # so that the first is like the others
                try:
                    report[name] = await asyncio.to_thread(PARTS[name], commands, arguments)
                finally:
                    commands.end()
    return report


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; may be repeated")
    parser.add_argument("--rounds", type=int, default=9, help="processes of each command")
    parser.add_argument(
        "--queued", type=int, nargs="+", default=[10_000, 100_000], help="jobs in the long queues"
    )
    parser.add_argument(
        "--submissions", type=int, default=1_000, help="how often condor_submit is called in a loop"
    )
    print(json.dumps(asyncio.run(measure(parser.parse_args()))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
