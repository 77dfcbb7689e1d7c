"""
The demonstration: a parameter sweep in a throw-away pool, with the job queue killed in the middle.

The sweep counts prime numbers, slice by slice: each job reads the bounds of its slice from an input file and writes the
primes in it to an output file. How many primes there are below the limit is known, so the answer can be checked.
"""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Final

import msgspec

from kettle import pool
from kettle.client import Client, JobId, Progress, select
from kettle.terminal.quantities import counted, duration
from kettle_services.cli.commands.events import Timeline
from kettle_services.cli.demonstration import audited, demonstration_pool, meter, say, title
from kettle_services.cli.errors import CommandError
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.accounting import OwnerUsage

SLOTS: Final = 8
SLICE: Final = 1000
SIEVE: Final = """\
#!/bin/sh
# The prime numbers of one slice, by trial division; the file slice-N.in has its bounds.
read -r from to < "slice-$1.in"
awk -v from="$from" -v to="$to" 'BEGIN {
    for (n = from; n < to; n++) {
        prime = n > 1
        for (d = 2; d * d <= n; d++) if (n % d == 0) { prime = 0; break }
        if (prime) print n
    }
}' > "primes-$1.txt"
echo "$(wc -l < "primes-$1.txt") primes from $from to $to"
"""
DESCRIPTION: Final = """\
executable            = primes.sh
arguments             = $(Process)
transfer_input_files  = slice-$(Process).in
transfer_output_files = primes-$(Process).txt
output                = slice-$(Process).out
error                 = slice-$(Process).err
log                   = sweep.log
request_memory        = 128
queue {jobs}
"""


class Figures(msgspec.Struct, kw_only=True):
    """What the demonstration measured, seconds."""

    jobs: int
    expected: int
    found: int = 0
    start: float = 0.0
    sweep: float = 0.0
    outage: float = 0.0
    killed_at: int = 0
    attempts: int = 0
    cpu: float = 0.0
    frames: int = 0
    clean: bool = False

    @property
    def right(self) -> bool:
        """Whether everything is as it must be."""
        return self.found == self.expected and self.attempts == self.jobs and self.clean


def run(screen: Screen, *, jobs: int, keep: bool) -> int:
    """Show it; the exit status is 0 if the answer is right, no job ran twice, and the log is clean."""
    if not 1 <= jobs <= 1000:
        raise CommandError("the demonstration takes between 1 and 1000 jobs; try kettle demo --jobs 120")
    figures = Figures(jobs=jobs, expected=primes_below(jobs * SLICE))
    with demonstration_pool(screen, keep=keep) as shown:
        title(screen, "A pool of one machine: NATS, PostgreSQL and every service, each a process of its own")
        began = time.monotonic()
        shown.up(screen, {"startd": {"num_cpus": SLOTS, "memory": SLOTS * 1024}})
        figures.start = time.monotonic() - began
        say(screen, f"Up in {duration(figures.start)}.")
        asyncio.run(_sweep(screen, shown.home, shown.place / "sweep", figures))
    if screen.as_json:
        screen.json(figures)
    else:
        screen.note("Everything is cleaned up." if not keep else "")
    return 0 if figures.right else 1


async def _sweep(screen: Screen, home: Path, work: Path, figures: Figures) -> None:
    async with Client.connect(home=home) as client:
        title(screen, f"{counted(figures.jobs, 'job')}: the primes below {figures.jobs * SLICE:,}")
        prepare(work, figures.jobs)
        began = time.monotonic()
        submitted = await client.submit(work / "sweep.sub", cwd=work)
        say(screen, f"Cluster {submitted.cluster} submitted in {duration(time.monotonic() - began)}.")
        progress = await _watch(screen, client, home, submitted.cluster, figures)
        figures.sweep = time.monotonic() - began
        if progress.bad():
            raise CommandError(f"a job did not succeed: {progress.bad()[0]}; see kettle demo --keep")
        await _check(screen, client, home, work, submitted.cluster, figures)


async def _watch(screen: Screen, client: Client, home: Path, cluster: int, figures: Figures) -> Progress:
    """Follow the sweep to its end, and kill the schedd when a third of it is done."""
    progress = Progress({})
    outage: asyncio.Task[float] | None = None
    with meter(screen, figures.jobs) as shown:
        async for progress in client.watch(select(cluster)):
            shown(progress)
            if outage is None and 3 * progress.done >= figures.jobs:
                figures.killed_at = progress.done
                outage = asyncio.create_task(_kill_schedd(home))
            if progress.stuck:
                break
    if outage is not None:
        figures.outage = await outage
        say(
            screen,
            f"After {figures.killed_at} jobs the schedd was killed with SIGKILL; it was back after "
            f"{duration(figures.outage)}, and the jobs that were running went on.",
        )
    return progress


async def _kill_schedd(home: Path) -> float:
    before = _schedd(home)
    os.kill(before, signal.SIGKILL)
    began = time.monotonic()
    async with asyncio.timeout(30):
        while _schedd(home) in {0, before}:  # noqa: ASYNC110 - the master says it in a file
            await asyncio.sleep(0.01)
    return time.monotonic() - began


def _schedd(home: Path) -> int:
    state = pool.state(home)
    daemon = state.daemon("schedd") if state is not None else None
    return daemon.pid if daemon is not None and daemon.status == "running" else 0


async def _check(
    screen: Screen, client: Client, home: Path, work: Path, cluster: int, figures: Figures
) -> None:
    title(screen, "The answer")
    figures.found = sum(len((work / f"primes-{n}.txt").read_text().split()) for n in range(figures.jobs))
    verdict = "right" if figures.found == figures.expected else f"WRONG, it should be {figures.expected:,}"
    style = "good" if figures.found == figures.expected else "bad"
    say(screen, f"{figures.found:,} primes: {screen.paint(verdict, style)}.")
    title(screen, "One job, as the log tells it")
    timeline = Timeline(screen)
    if not screen.as_json:
        for event in await client.events(JobId(cluster, figures.killed_at % figures.jobs)):
            timeline.add(event)
    usage = await _usage(client, figures.jobs)
    figures.attempts = sum(owner.attempts for owner in usage)
    figures.cpu = sum(owner.cpu for owner in usage)
    figures.clean, figures.frames = await audited(home)
    title(screen, "The pool's figures")
    say(
        screen,
        f"{figures.jobs / figures.sweep:.0f} jobs a second on {SLOTS} slots; {duration(figures.sweep)} in all.",
    )
    say(
        screen,
        f"{figures.attempts} attempts for {figures.jobs} jobs, {duration(figures.cpu)} of processor time in them.",
    )
    said = screen.paint("clean", "good") if figures.clean else screen.paint("NOT CLEAN", "bad")
    say(screen, f"The log has {counted(figures.frames, 'frame')}, and its audit is {said}.")


async def _usage(client: Client, jobs: int) -> list[OwnerUsage]:
    """The usage, once accounting has the last job: it is slightly behind the queue."""
    async with asyncio.timeout(30):
        while True:
            usage = await client.usage()
            if sum(owner.jobs_completed for owner in usage) >= jobs:
                return usage
            await asyncio.sleep(0.05)


def prepare(work: Path, jobs: int) -> None:
    """The files of the sweep."""
    work.mkdir(mode=0o700, parents=True)
    (work / "primes.sh").write_text(SIEVE)
    (work / "primes.sh").chmod(0o755)
    (work / "sweep.sub").write_text(DESCRIPTION.format(jobs=jobs))
    for number in range(jobs):
        (work / f"slice-{number}.in").write_text(f"{number * SLICE} {(number + 1) * SLICE}\n")


def primes_below(limit: int) -> int:
    """How many primes there are, by Eratosthenes' sieve: another way than that of the jobs."""
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\0\0"
    for n in range(2, int(limit**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, limit, n)))
    return sum(sieve)
