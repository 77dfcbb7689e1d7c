"""`kettle submit`: from a submit file to jobs in the queue."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.client import ClientError, Submission, SubmitError, prepare_clusters
from kettle.client.jobs.submit_events import await_submit_events
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output.ads_as_json import plain
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.standard_input import standard_input
from kettle_wire.commands.schedd import Submitted

if TYPE_CHECKING:
    from kettle.client import Client
    from kettle.submit.expected_jobs import ExpectedJobs

HELP: Final = """\
Send jobs to the pool.  A submit file is checked here, before anything is recorded; when the command returns,
the jobs are on record and cannot be lost.

A submit file names a program, what it needs, and how often it runs:

    executable            = simulate.sh
    arguments             = --seed $(Process)
    transfer_input_files  = parameters.json
    output                = out.$(Process)
    error                 = err.$(Process)
    log                   = sweep.log
    request_cpus          = 1
    request_memory        = 512 MB
    queue 100

Instead of a number, one job for each item:  queue name in (a b c)   or   queue x, y from points.txt

examples:
  kettle submit sweep.sub
  kettle submit sweep.sub seed=7 request_memory=2GB     macros and commands that are set before the file is read
  kettle submit --dry-run sweep.sub                     show the jobs, send nothing
  generate | kettle submit -                            a submit file from standard input
"""

_GIVEN: Final = re.compile(r"(\+?[A-Za-z0-9_.]+)\s*=\s*(.*)", re.DOTALL)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("file", metavar="FILE", help="the submit file; - for standard input")
    parser.add_argument(
        "given",
        nargs="*",
        default=[],
        metavar="NAME=VALUE",
        help="set before the file is read; the file may override it",
    )
    parser.add_argument(
        "--spool",
        action="store_true",
        help="send the files with the jobs; it is always so from another machine than the access point's, and kettle fetch "
        "gets what they leave",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be sent, and send nothing")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Submit, or show."""
    submissions = _prepared(arguments)
    for warning in (warning for each in submissions for warning in each.warnings):
        screen.trouble(f"Warning: {warning}")
    if arguments.dry_run:
        return _show(submissions, screen)

    async def send(pool: "Client") -> None:
        if screen.err.isatty():
            pool.waiting = screen.note
        for done, submission in enumerate(submissions):
            try:
                spool = arguments.spool or pool.pool.is_elsewhere
                submitted = await pool.submit(submission, spool=spool)
                if spool:
                    await pool.spools.send(
                        submission.queued(proc, submitted.cluster) for proc in range(submitted.count)
                    )
                else:
                    await_submit_events(submission, submitted.cluster, pool.pool)  # nothing else runs here
                _say(submitted, screen)
            except ClientError:
                if done:
                    screen.trouble(
                        f"Of the {len(submissions)} clusters of this file the first {done} had been submitted before this:"
                    )
                raise

    with_pool(arguments, send)
    return 0


def _prepared(arguments: argparse.Namespace) -> list[Submission]:
    """What the file describes; of too many jobs none is made."""
    from kettle.submit.expected_jobs import are_many

    def expect(expected: "list[ExpectedJobs]") -> None:
        if are_many(expected) and not arguments.dry_run:
            with_pool(arguments, lambda pool: pool.require_room(expected))

    typed = arguments.file == "-"
    try:
        return prepare_clusters(
            _typed() if typed else Path(arguments.file),
            given=_given(arguments.given),
            source="standard input" if typed else None,
            submit_method=0,
            expect=expect,
        )
    except SubmitError as error:
        raise CommandError(str(error)) from error


def _say(submitted: Submitted, screen: Screen) -> None:
    for warning in submitted.warnings:
        screen.trouble(f"Warning: {warning}")
    if screen.as_json:
        screen.json({"cluster": submitted.cluster, "count": submitted.count})
    else:
        screen.say(f"{submitted.count} job(s) submitted to cluster {submitted.cluster}.")


def _given(words: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for word in words:
        match = _GIVEN.fullmatch(word)
        if match is None:
            raise UsageError(f"'{word}' is not NAME=VALUE")
        name = f"MY.{match[1][1:]}" if match[1].startswith("+") else match[1]
        given[name] = match[2]
    return given


def _show(submissions: list[Submission], screen: Screen) -> int:
    if screen.as_json:
        screen.json([plain(each.job(proc)) for each in submissions for proc in range(each.count)])
        return 0
    count = counted(sum(each.count for each in submissions), "job")
    several = f" in {len(submissions)} clusters" if len(submissions) > 1 else ""
    screen.note(f"{count}{several} would be submitted.")
    for number, submission in enumerate(submissions):
        if several:
            screen.block(f"# cluster {number + 1}" if number == 0 else f"\n# cluster {number + 1}")
        _show_one(submission, screen)
    return 0


def _show_one(submission: Submission, screen: Screen) -> None:
    from kettle.classad import ClassAd, write_long

    screen.block(write_long(ClassAd.from_wire(submission.ad)).rstrip())
    for proc, row in enumerate(submission.rows):
        own = dict(zip(submission.columns, row, strict=True))
        screen.block(f"\n# job {proc}")
        if own:
            screen.block(write_long(ClassAd.from_wire(own)).rstrip())


def _typed() -> str:
    try:
        return standard_input().read().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from error
