"""`kettle wait`: until jobs have ended."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Final

from kettle.client import Client, JobId, JobState, Progress, Select
from kettle.terminal.quantities import counted, duration
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import job_options, json_option, pool_options, seconds, selection, with_pool
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Wait until jobs have ended, with a progress bar on a terminal.  The exit status is 0 if all of them completed with exit
code 0, and 1 if one did not, if none is left that could go on (all are held), or if the time given was too short.

examples:
  kettle wait 12                       cluster 12
  kettle wait 12.0 12.7
  kettle wait                          all of your jobs that are in the queue now
  kettle wait 12 --for 600             but not longer than ten minutes
  kettle wait 12 --until 'JobStatus == 2'   until each job has run, or has ended without being seen so
  kettle wait --log sweep.log          all jobs of a job event log, without asking the pool
  kettle submit x.sub --json | jq .cluster | xargs kettle wait && plot results
"""

_SHOWN: Final = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    job_options(parser, verb="wait for")
    parser.add_argument("--for", dest="limit", type=seconds, metavar="SECONDS", help="give up after so long")
    parser.add_argument("--log", metavar="FILE", help="look into this job event log, and ask no pool")
    parser.add_argument(
        "--until",
        metavar="EXPR",
        help="not until they have ended, but until this expression has been true of the ad of each; 1 if one ended before",
    )
    parser.add_argument(
        "--through-hold", action="store_true", help="go on waiting when all that is left is held"
    )
    parser.add_argument(
        "--ignore-exit-codes", action="store_true", help="exit status 0 also when jobs ended badly"
    )
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Wait, then sum up."""
    if (arguments.owner or arguments.constraint or arguments.jobset) and arguments.ids:
        raise UsageError("name jobs by id, or by --jobset, --owner and --constraint, but not both at once")
    if arguments.log and (arguments.jobset or arguments.owner or arguments.constraint):
        raise UsageError(
            "a job event log knows the ids of jobs and nothing else: name jobs by id beside --log"
        )
    select = selection(arguments)
    if arguments.until:
        return _until(select, arguments, screen)
    progress = _of_log(select, arguments, screen) if arguments.log else _of_pool(select, arguments, screen)
    return _said(progress, arguments, screen)


def _of_log(select: Select, arguments: argparse.Namespace, screen: Screen) -> Progress:
    from kettle_services.cli.job_event_log import watched

    return asyncio.run(_wait(watched(Path(arguments.log), select), arguments, screen))


def _of_pool(select: Select, arguments: argparse.Namespace, screen: Screen) -> Progress:
    async def wait(pool: Client) -> Progress:
        return await _wait(pool.watch(await _mine(pool, select, arguments)), arguments, screen)

    return with_pool(arguments, wait)


async def _mine(pool: Client, select: Select, arguments: argparse.Namespace) -> Select:
    """The jobs that are meant: one's own, if none are named or sets are one's own."""
    await pool.connection()
    if not (select.jobs or select.clusters or select.owners or select.constraint):
        return Select(owners=[pool.pool.user])
    if arguments.jobset and not select.owners:
        return Select(owners=[pool.pool.user], constraint=select.constraint)
    return select


def _until(select: Select, arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.classad import ClassAdParseError, parse
    from kettle_services.cli.commands.wait_until import wait_until

    try:
        parse(arguments.until)
    except ClassAdParseError as error:
        raise UsageError(f"--until: '{arguments.until}' cannot be read: {error}") from error
    if arguments.log:
        raise UsageError("a job event log knows no attributes of jobs: --until asks the pool")

    async def wait(pool: Client) -> int:
        mine = await _mine(pool, select, arguments)
        try:
            async with asyncio.timeout(arguments.limit):
                found = await wait_until(pool, mine, arguments.until, through_hold=arguments.through_hold)
        except TimeoutError as error:
            raise CommandError(
                f"after {duration(arguments.limit)}, {arguments.until} has not been true of all of them"
            ) from error
        total = len(found.met) + len(found.ended) + len(found.left)
        if screen.as_json:
            screen.json({"total": total, "met": len(found.met), "ended": sorted(map(str, found.ended))})
        else:
            screen.say(f"{arguments.until} was true of {len(found.met)} of {counted(total, 'job')}.")
        if found.left:
            raise CommandError(_held(found.left))
        return 0 if len(found.met) == total else 1

    return with_pool(arguments, wait)


def _said(progress: Progress, arguments: argparse.Namespace, screen: Screen) -> int:
    bad = progress.bad()
    if screen.as_json:
        screen.json(
            {
                "total": progress.total,
                "counts": {status: number for status, number in progress.counts.items() if number},
                "bad": {str(job): how(state) for job, state in bad},
            }
        )
    else:
        screen.say(summary(progress))
    if not progress.ended:
        raise CommandError(_unfinished(progress))
    return 1 if bad and not arguments.ignore_exit_codes else 0


async def _wait(watched: AsyncIterator[Progress], arguments: argparse.Namespace, screen: Screen) -> Progress:
    progress = Progress({})
    begun = asyncio.get_running_loop().time()
    with _bar(screen) as show:
        try:
            async with asyncio.timeout(arguments.limit):
                async for progress in watched:
                    show(progress)
                    if progress.stuck and not arguments.through_hold:
                        break
        except TimeoutError as error:
            waited = duration(asyncio.get_running_loop().time() - begun)
            raise CommandError(
                f"after {waited}, {progress.total - progress.done} of {counted(progress.total, 'job')} have not ended"
            ) from error
    return progress


def summary(progress: Progress) -> str:
    """How it went, in a sentence."""
    if not progress.total:
        return "There is no job to wait for."
    bad = progress.bad()
    good = progress.done - len(bad)
    text = f"{good} of {counted(progress.total, 'job')} completed well"
    if bad:
        shown = ", ".join(f"{job} ({how(state)})" for job, state in bad[:_SHOWN])
        more = ", ..." if len(bad) > _SHOWN else ""
        text += f"; {len(bad)} ended badly: {shown}{more}"
    return f"{text}."


def how(state: JobState) -> str:
    """How a job ended."""
    if state.status == "removed":
        return "removed"
    return f"signal {state.exit_signal}" if state.exit_signal is not None else f"exit code {state.exit_code}"


def _unfinished(progress: Progress) -> str:
    return _held({job for job, state in progress.jobs.items() if state.status == "held"})


def _held(jobs: Collection[JobId]) -> str:
    return (
        f"{counted(len(jobs), 'job')} held and nothing else to wait for; "
        f"see kettle why {min(jobs)}, then kettle release or kettle rm"
    )


class _Quiet:
    def __enter__(self) -> Callable[[Progress], None]:
        return lambda _: None

    def __exit__(self, *_: object) -> None:
        return


class Bar:
    """A progress bar on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Meter

        self._bar = Meter(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("jobs", total=None, counts="")

    def __enter__(self) -> Callable[[Progress], None]:
        self._bar.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _show(self, progress: Progress) -> None:
        said = (
            f"{progress.counts[status]} {status}"
            for status in ("running", "suspended", "idle", "held")
            if progress.counts[status]
        )
        self._bar.update(self._task, total=progress.total, completed=progress.done, counts=", ".join(said))


def _bar(screen: Screen) -> _Quiet | Bar:
    return Bar() if not screen.as_json and screen.err.isatty() else _Quiet()
