"""`kettle log`: the event log itself."""

import argparse
import importlib
from pathlib import Path
from typing import Final

from kettle_services.cli.options import at_least, json_option, reach_options, simulated_option
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import FORMS, TimeParser, moment_argument, span, span_argument
from kettle_wire.jobs import JobId

HELP: Final = """\
Read, verify and repair the event log, from which everything else that a pool knows follows.

The database is the pool's own, or the one of KETTLE_DATABASE_URL.  Further ones, where a schedd has its own, are those
that accounting has: databases under [accounting] in kettle.toml, or KETTLE_ACCOUNTING_DATABASES='["postgresql://..."]'.

examples:
  kettle log check                        verify that the log is complete and consistent
  kettle log show --job 12.3              what is recorded about a job
  kettle log at '2026-11-20 14:00'        the pool as it was then
  kettle log projections                  how far history, usage and the other tables are
  kettle log rebuild jobs                 rebuild tables from the log
  kettle log archive --older-than 90d     move old events from the database to files
  kettle log import events                bring the log of a simulated pool into the database
  kettle log roles kettle                 SQL for a role for each service

kettle log COMMAND --help explains each.
"""

_CHECK: Final = """\
Audit the event log: positions and versions without gaps, attempts that do not overlap, and the log, the bus and everything
derived from the log agreeing with each other.  It only reads, so it may run while the pool is in use.

For each check it prints how much it examined, how many problems it found, and the first one in each shard.

examples:
  kettle log check                         exit status 1 if anything is wrong
  kettle log check --recent                only the newest frames of each shard, without the folds
  kettle log check --shard schedd.ap1      one shard
  kettle log check --sample 1000 --seed 7  fold only some thousand clusters of a long log, by chance but always the same
  kettle log check --json | jq '.checks[] | select(.problems > 0)'
"""

_SHOW: Final = """\
Print recorded events in order: when, in which shard, frame and position, on which stream as which version, of which type,
and what they say.  Those of several shards are in the order of time.  An event that this release cannot read is shown
with its type and its bytes.

examples:
  kettle log show --job 12.3                    one job
  kettle log show --cluster 12 --type job.held  all holds in a cluster
  kettle log show --since -10m                  the last ten minutes
  kettle log show --since 14:00 --until 14:05 --owner ada
  kettle log show schedd.ap1 --frame 100:110    some frames of one shard
  kettle log show --stream machine/node7.example.org
  kettle log show --since now --follow          go on as it happens
  kettle log show --simulated events            of a pool that kettle simulate has played
  kettle log show --json | jq -r '.type' | sort | uniq -c
"""

_AT: Final = """\
Show the pool as it was at a moment: the queue, the claims, the machines, and what each owner had and had used.  All of it
follows from the log: events up to the last frame that is not later are folded by the services' own code.

Priorities: the table of owners has their real priorities at that moment, the best first, with the running cores and the
usage up to then.  Priority factors that nobody set follow from settings, which are not in the log.

examples:
  kettle log at -10m
  kettle log at '2026-11-20 14:00'              local time
  kettle log at 2026-11-20T14:00:00Z --owner ada
  kettle log at 1970-01-01T02:00Z --simulated events    two hours after a simulated pool began
  kettle log at 14:00 --json | jq '.jobs | group_by(.status) | map({(.[0].status): length}) | add'
"""


_PROJECTIONS: Final = """\
How far each projection is in each shard that it follows: the last frame that it has applied, how many frames it is behind
and for how long, and why it has stopped if it has.  A schedd's and a collector's working set is one, too.

Exit status: 0, or 1 if one has stopped.

examples:
  kettle log projections
  kettle log projections --json | jq '.[] | select(.error)'
"""

_REBUILD: Final = """\
Rebuild the tables of a projection from the first frame on, beside those in use, and swap them when they are complete.
Services read and fill the old ones until then.  It can be interrupted: the next one starts over.

projections:
  jobs           live jobs, history, usage, claims, queue depth
  machines       machines that came and left
  negotiation    cycles, matches, refusals
  working_set    what an owner starts from; its shard has to be named, and its owner starts again

examples:
  kettle log rebuild jobs
  kettle log rebuild working_set --shard schedd.ap1
"""

_ARCHIVE: Final = """\
Move whole pieces of the log that are older than a limit, and that every projection has seen, from the database to Parquet
files with a manifest of their hashes.  Everything that reads the log reads them back from there.

The directory is that of KETTLE_ARCHIVE_DIRECTORY, or of archive_directory under [kettle] in kettle.toml, the same for all
services, or the pool's own directory `archive`.

examples:
  kettle log archive --dry-run                 say what would be moved, and what keeps the rest
  kettle log archive --older-than 90d
  kettle log archive --verify                  hash every file and compare it with its manifest and the database
"""

_IMPORT: Final = """\
Bring shards that are in files alone into the database: those of a pool that kettle simulate has played, for example.
Then kettle history, log show, log at and what-if tell of them as of all others.  Nobody serves them: kettle q --simulated, and
kettle why, events and fairshare, ask the files themselves, without any import.

A shard that the database has already is refused, unless an earlier import of the same files was interrupted: it goes on.
Do it in a personal pool: what was imported stays there.

examples:
  kettle simulate run cluster.toml --events events
  kettle log import events
"""

_ROLES: Final = """\
Print the SQL that makes a role of the database for each service, with the rights that it needs and no others, for a
database that the site runs itself.  A pool that brings its own database does this by itself.

It is for a superuser, may be repeated, and is to be repeated after an upgrade that says so.  Services are given their
addresses by database_urls under [master] in kettle.toml.

examples:
  kettle log roles kettle | psql kettle          for the database kettle: kettle_schedd, kettle_negotiator, ...
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True, parser_class=TimeParser)

    def add(name: str, says: str, description: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=says,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    _check_arguments(add("check", "audit the log", _CHECK))
    _show_arguments(add("show", "events in order", _SHOW))
    _at_arguments(add("at", "the pool as it was at a moment", _AT))
    told = add("projections", "how far the tables are", _PROJECTIONS)
    json_option(told)
    reach_options(told)
    _rebuild_arguments(add("rebuild", "rebuild tables from the log", _REBUILD))
    _archive_arguments(add("archive", "move old events to files", _ARCHIVE))
    brought = add("import", "bring events from files into the database", _IMPORT)
    brought.add_argument("directory", type=Path, metavar="DIRECTORY", help="an archive, with its manifests")
    json_option(brought)
    reach_options(brought)
    roles = add("roles", "SQL for a role for each service", _ROLES)
    roles.add_argument("database", metavar="DATABASE", help="the name of the database")


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument(
        "--full", action="store_true", help="everything, from the first frame on (this is the default)"
    )
    depth.add_argument("--recent", action="store_true", help="look at the newest frames only")
    depth.add_argument(
        "--sample",
        type=at_least(1),
        default=0,
        metavar="N",
        help="everything, but fold only about N clusters, claims, machines and cycles of each shard",
    )
    parser.add_argument(
        "--seed", type=at_least(0), default=0, metavar="N", help="which ones a sample takes (default: 0)"
    )
    _shard_option(parser)
    json_option(parser)
    reach_options(parser)


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shard", nargs="?", metavar="SHARD", help="one shard, as in schedd.ap1 (default: all)"
    )
    chosen = parser.add_argument_group("which events")
    chosen.add_argument("--job", type=_job, metavar="JOB", help="of one job, as in 12.3, and its submission")
    chosen.add_argument(
        "--cluster", type=at_least(0), metavar="CLUSTER", help="of a cluster and all its jobs"
    )
    chosen.add_argument(
        "--stream",
        action="append",
        default=[],
        metavar="STREAM",
        help="of a stream, as in claim/ID; may be repeated",
    )
    chosen.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="TYPE",
        help="of a type: job, job.held, job.held/1 or a pattern; may be repeated",
    )
    chosen.add_argument(
        "--owner",
        action="append",
        default=[],
        metavar="NAME",
        help="of the jobs and claims of this person; may be repeated",
    )
    chosen.add_argument("--since", type=moment_argument, metavar="TIME", help=f"from a moment on, {FORMS}")
    chosen.add_argument("--until", type=moment_argument, metavar="TIME", help="up to a moment")
    chosen.add_argument(
        "--frame", type=_frames, metavar="A:B", help="of these frames: A:B, A:, :B or A (needs SHARD)"
    )
    chosen.add_argument("--limit", type=at_least(1), metavar="N", help="the first N of them")
    simulated_option(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on as it happens")
    parser.add_argument("--long", action="store_true", help="below each event its fields")
    json_option(parser)
    reach_options(parser)


def _at_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("time", type=moment_argument, metavar="TIME", help=FORMS)
    simulated_option(parser)
    _shard_option(parser)
    parser.add_argument(
        "--owner",
        action="append",
        default=[],
        metavar="NAME",
        help="only what is this person's; may be repeated",
    )
    json_option(parser)
    reach_options(parser)


def _rebuild_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="jobs, machines, negotiation or working_set")
    parser.add_argument("--shard", metavar="SHARD", help="whose working set")
    json_option(parser)
    reach_options(parser)


def _archive_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than",
        type=span_argument,
        default=span("30d"),
        metavar="SPAN",
        help="pieces with an event that is younger stay, as 30d, 12h or 4w (default: 30d)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="say what would be moved, and move nothing")
    what.add_argument("--verify", action="store_true", help="move nothing; check all files by their hashes")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="where the archive is, if not there")
    _shard_option(parser)
    json_option(parser)
    reach_options(parser)


def _shard_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shard", action="append", default=[], metavar="SHARD", help="only this shard; may be repeated"
    )


def _job(text: str) -> JobId:
    try:
        return JobId.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _frames(text: str) -> tuple[int, int | None]:
    first, colon, last = text.partition(":")
    if not all(part.isdecimal() for part in (first, last) if part) or not (first or last):
        raise argparse.ArgumentTypeError(f"'{text}' is no range of frames: write it as 100:110, 100: or 100")
    begin = int(first or 1)
    if last and int(last) < begin:
        raise argparse.ArgumentTypeError(f"'{text}' is no range of frames: it ends before it begins")
    return begin, (int(last) if last else None if colon else begin)


_MODULES: Final = {
    "check": "check", "show": "show", "at": "at",
    "projections": "projections", "rebuild": "projections", "archive": "archive", "roles": "roles",
    "import": "importing",
}  # fmt: skip


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    module = importlib.import_module(f"kettle_services.cli.log.{_MODULES[arguments.what]}")
    return int(module.run(arguments, screen))
