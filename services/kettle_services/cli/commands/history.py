"""`kettle history`: jobs that have left the queue."""

import argparse
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kettle.client import ClientError, select
from kettle.client.jobs.status import status_of
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import (
    at_least,
    attributes_of,
    attributes_option,
    json_option,
    pool_options,
    with_pool,
)
from kettle_services.cli.output import exports
from kettle_services.cli.output.ads_as_json import plain
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.tables.attributes import chosen as chosen_attributes
from kettle_services.cli.tables.attributes import show_attributes, show_long
from kettle_services.cli.tables.jobs import HISTORY_TITLES, RIGHT, history_row
from kettle_services.cli.times import FORMS, moment_argument
from kettle_wire.ads.types import Ad

HELP: Final = """\
Jobs that have left the queue, the newest first: completed (C) or removed (X), with their exit codes.

examples:
  kettle history                     the last hundred jobs
  kettle history 12                  cluster 12
  kettle history --owner ada --limit 10
  kettle history 12.3 --long         everything that is known about a job
  kettle history --since 2d          that left the queue in the last two days
  kettle history --since 2026-11-20T08:00 --until 2026-11-20T20:00 --limit 0
  kettle history --since 2d --limit 0 --records jobs.ndjson
  kettle history --attributes ClusterId,ProcId,ExitCode,RemoteWallClockTime
  kettle history --constraint 'ExitCode != 0 && RemoteWallClockTime > 3600'

A constraint is a ClassAd expression (see the reference of the language). Comparisons of ExitCode, RemoteWallClockTime,
MemoryUsage, QDate, JobStartDate and CompletionDate with a value, and of any attribute for equality (JobPrio == 5,
JobBatchName == "sweep"), joined by && and ||, find their jobs by an index; the rest is evaluated job by job.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="show only CLUSTER or CLUSTER.PROC, as in 12 or 12.3"
    )
    parser.add_argument(
        "--owner",
        action="append",
        default=[],
        metavar="NAME",
        help="the jobs of this person; may be repeated",
    )
    parser.add_argument(
        "--constraint", default="", metavar="EXPRESSION", help="only jobs whose ads make this true"
    )
    parser.add_argument(
        "--since", type=_moment, metavar="TIME", help=f"only jobs that left the queue then or later, {FORMS}"
    )
    parser.add_argument("--until", type=_moment, metavar="TIME", help="only jobs that left it before then")
    parser.add_argument(
        "--limit",
        type=at_least(0),
        default=100,
        metavar="N",
        help="at most so many jobs (default: 100; 0: all)",
    )
    parser.add_argument("--long", action="store_true", help="whole job ads")
    attributes_option(parser, "job")
    parser.add_argument(
        "--records",
        type=Path,
        metavar="FILE",
        help="write them as they are sent to an accounting store (bulk format, lines of JSON); -: to the output",
    )
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show the jobs; finding none is no failure."""
    try:
        chosen = select(*arguments.ids, owners=arguments.owner, constraint=arguments.constraint)
    except ClientError as error:
        raise UsageError(str(error)) from error
    names = attributes_of(arguments)
    times = {"since": arguments.since, "until": arguments.until}
    behind: list[int] = []
    with _searching(screen) as searched:
        ads = with_pool(
            arguments,
            lambda pool: pool.history(
                chosen, limit=arguments.limit, searched=searched, behind=behind.append, **times
            ),
        )
    if arguments.records is not None:
        _write_records(arguments.records, ads, screen)
    elif screen.as_json:
        screen.json([plain(chosen_attributes(ad, names)) for ad in ads])
    elif names:
        show_attributes(ads, names, screen)
    elif arguments.long:
        show_long(ads, screen)
    else:
        styles = [status_of(ad) for ad in ads]
        screen.table(HISTORY_TITLES, [history_row(ad) for ad in ads], styles=styles, right=RIGHT)
        if arguments.limit and len(ads) == arguments.limit:
            screen.note(f"This is only the newest {counted(arguments.limit, 'job')}; more with --limit.")
    if behind:
        screen.note(
            f"The history is still to read {counted(behind[0], 'commit')} of the queue: jobs that have just left it may be "
            "missing.  Ask again in a moment."
        )
    return 0


def _write_records(path: Path, ads: Sequence[Ad], screen: Screen) -> None:
    """Oldest first, as they would have been sent."""
    from kettle.projections.accounting_documents import INDEX, bulk, job_record

    data = bulk(INDEX, [job_record(ad) for ad in reversed(ads)])
    if path == Path("-"):
        screen.octets(data)
        return
    exports.write(path, data)
    screen.note(f"{path} has {counted(len(ads), 'record')}.")


def _moment(text: str) -> float:
    """Seconds since the epoch."""
    return moment_argument(text) / 1_000_000


@contextmanager
def _searching(screen: Screen) -> Generator[Callable[[int, int], None] | None]:
    """Show a person the progress of a long search."""
    if screen.as_json or not screen.err.isatty():
        yield None
        return
    from rich.console import Console

    with Console(file=screen.err).status("searching") as status:
        yield lambda examined, found: status.update(f"looked at {counted(examined, 'job')}, {found} found")
