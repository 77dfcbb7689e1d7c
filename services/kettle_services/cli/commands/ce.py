"""`kettle ce`: the routes of a compute entrypoint, and what it decided about jobs."""

import argparse
import importlib
from typing import Final

from kettle_services.cli.actions.jobs import act_arguments
from kettle_services.cli.options import json_option, pool_options
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
A compute entrypoint takes jobs from elsewhere, changes them by routes and brings them to this pool or to a batch system.  A route
file has HTCondor's names (JOB_ROUTER_ROUTE_NAMES) and the statements of job transforms.

examples:
  kettle ce check routes                     all that is wrong in a file, and what sample jobs come to
  kettle ce route routes --ads jobs.ads      where jobs would go by a file, and with which ad
  kettle ce convert routes.old > routes      routes of the old syntax (JOB_ROUTER_ENTRIES) as new ones
  kettle ce status                           the routes in force, and how many jobs each has
  kettle ce trace 12.3                       what each station calls a job, and how far it is
  kettle ce apel --map FILE --ce NAME        records of yesterday's jobs for APEL
  kettle ce unroute 12                       take jobs off their route, so that they get another one
  kettle ce show 12.3                        which route it got and why, with the effect of each statement
  kettle ce payloads                         what pilots run for others now

kettle ce COMMAND --help explains each.
"""
_CHECK: Final = """\
Everything that is wrong with a route file, with line and statement, then what looks as if it were: routes that others hide, macros and
names that nothing defines, and statements that fail on sample ads.

Exit status: 0 nothing; 1 only warnings, with --strict; 2 an entrypoint would refuse the file.

examples:
  kettle ce check /etc/kettle/routes
  kettle ce check --strict --ads jobs.ads routes     with your own jobs as samples (condor_q -long prints some)
"""
_ROUTE: Final = """\
Where jobs would go by a route file, and what each statement changes; of a job that no route takes, why not.  No pool is asked: routes
count as empty.

Exit status: 0 each job has a route; 1 at least one has none; 2 the file is refused.

examples:
  kettle ce route routes --ads jobs.ads
  condor_q -long 12.3 | kettle ce route routes --ads - --explain
"""
_CONVERT: Final = """\
Print a route file with the routes of the old syntax (JOB_ROUTER_ENTRIES and JOB_ROUTER_DEFAULTS, an ad for each) as routes of statements.
All else of the file stays as it is.

examples:
  kettle ce convert /etc/condor-ce/config.d/02-routes.conf > routes
"""
_STATUS: Final = """\
The routes in force: how many jobs each has and may have, whether it takes some now, and how its last one failed; of a newer file that is
refused, why.  Then the VOs, with their jobs and limits, and whether the entrypoint is drained.

examples:
  kettle ce status
"""
_RELOAD: Final = """\
Have the route file read again at once; it is read anyway when it changes.  A file that is wrong is refused, and the routes before it stay.
For administrators.  Exit status: 0 they are in force; 1 the file is refused.

examples:
  kettle ce reload
"""
_DRAIN: Final = """\
Have the entrypoint take no jobs until kettle ce resume: submissions that would be routed are refused with ce.draining, and jobs that wait get
no route and are told so.  Those that have a route go on.  It is recorded, and a restart changes nothing.  For administrators.

examples:
  kettle ce drain
  kettle ce drain --reason "new cooling, until Monday"
"""
_RESUME: Final = """\
Have the entrypoint take jobs again after kettle ce drain.  For administrators.

examples:
  kettle ce resume
"""
_TRACE: Final = """\
What each station calls a job, and how far it is: its access point, its route, and the batch system to which it leads.  Any of these names
finds it.

examples:
  kettle ce trace 12.3
  kettle ce trace slurm/20261126/4711
  kettle ce trace 4711                as the batch system calls it
"""
_SHOW: Final = """\
What the entrypoint decided about a job, each time: the route, the routes that did not take it and why, what is different from the ad as
it was submitted, and what each statement changed.

examples:
  kettle ce show 12.3
"""
_PAYLOADS: Final = """\
What pilots run for others, by their own word: now, or of one pilot all that it has ever run.  People see what their own pilots run,
administrators what all do.  A payload that was not said to be over is over with its pilot.  What pilots ran at some time in the past is in
the log: kettle log show ce.schedd --type payload.

examples:
  kettle ce payloads
  kettle ce payloads 12.3                       all that a pilot has run; any of its names finds it
  kettle ce payloads --owner bob                what runs for one person of a VO
  kettle log show ce.schedd --type payload --since 3d --long
"""
_REPORT: Final = """\
Say for a pilot of your own that it has begun a payload for somebody, or with --over that one has ended.  It is recorded; said again it
changes nothing.

examples:
  kettle ce report 4711 atlas.8872 --owner bob --vo atlas --host "$(hostname)"      4711: as the batch system calls the pilot
  kettle ce report 4711 atlas.8872 --over --exit-code 0
"""
_UNROUTE: Final = """\
Take jobs off the route that they have: their ads are again as they were submitted, and they wait for a route, by the routes as they are now.
For jobs that have no claim yet; one that a batch system has is held first, which removes it there.  Who holds a job, takes it off its route
and changes it with kettle edit decides what the routes see when it is released.  Owners may do this with their own jobs, administrators
with all.

examples:
  kettle ce unroute 12.3
  kettle ce unroute --constraint 'RouteName == "Slurm" && JobStatus == 1' --reason "the cluster is down until Monday"
"""
_APEL: Final = """\
Records for APEL of the jobs that left the queue on a day (UTC) that is over: batch-DAY (what they used), blah-DAY (whose they were, and what
the batch system calls them) and quarantine-DAY (what cannot be told, with the reason), in a directory.  The same day makes the same files,
and one that is there is not written again, so each job is told of once; one that ran more than once is told of for each run, under the
number that the batch system gave that run.

The mapping says who people are for APEL, a line each: PATTERN DN FQAN.  The pattern is ISSUER,SUBJECT of the job's token, or its owner;
between slashes it is a regular expression.  A job of a VO that no line is about is told of as ISSUER,SUBJECT and /VO.

examples:
  kettle ce apel --map /etc/kettle/apel.map --ce ce.example.org:9619/slurm -o /var/lib/apel/outgoing      yesterday
  kettle ce apel --map apel.map --ce ce.example.org:9619/slurm --day 2026-11-25 --json
"""
_FILE: Final = "a route file; - is standard input"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)

    def add(name: str, says: str, description: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=says, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )

    check = add("check", "what is wrong with a route file", _CHECK)
    check.add_argument("file", metavar="FILE", help=_FILE)
    check.add_argument(
        "--ads", metavar="FILE", default="", help="ads of jobs, instead of the built-in samples"
    )
    check.add_argument("--strict", action="store_true", help="warnings count")
    json_option(check)
    route = add("route", "where jobs would go by a route file", _ROUTE)
    route.add_argument("file", metavar="FILE", help=_FILE)
    route.add_argument("--ads", metavar="FILE", default="", help="ads of jobs (default: built-in samples)")
    route.add_argument("--explain", action="store_true", help="what each statement changes")
    json_option(route)
    convert = add("convert", "routes of the old syntax as new ones", _CONVERT)
    convert.add_argument("file", metavar="FILE", help=_FILE)

    for name, says, description in (
        ("status", "the routes in force", _STATUS),
        ("reload", "have the route file read again", _RELOAD),
        ("drain", "have the entrypoint take no jobs", _DRAIN),
        ("resume", "have the entrypoint take jobs again", _RESUME),
        ("trace", "what each station calls a job", _TRACE),
        ("show", "what was decided about a job", _SHOW),
    ):
        asking = add(name, says, description)
        if name in {"trace", "show"}:
            asking.add_argument("job", metavar="ID", help="as its access point or the batch system calls it")
        if name == "drain":
            asking.add_argument("--reason", default="", metavar="TEXT", help="what submitters are told")
        json_option(asking)
        pool_options(asking)
    payloads = add("payloads", "what pilots run for others", _PAYLOADS)
    payloads.add_argument("job", metavar="ID", nargs="?", default="", help="a pilot, by any of its names")
    payloads.add_argument("--owner", default="", metavar="NAME", help="for whom")
    json_option(payloads)
    pool_options(payloads)
    _report_arguments(add("report", "say what a pilot runs for others", _REPORT))
    act_arguments(add("unroute", "take jobs off their route", _UNROUTE), verb="take off their route")
    apel = add("apel", "records for APEL of the jobs of a day", _APEL)
    apel.add_argument("--day", default="", metavar="YYYY-MM-DD", help="which day (default: yesterday)")
    apel.add_argument("--map", required=True, metavar="FILE", help="who people are for APEL")
    apel.add_argument("--ce", required=True, metavar="HOST:PORT/QUEUE", help="how the entrypoint is called")
    apel.add_argument("-o", "--output", default=".", metavar="DIRECTORY", help="default: this one")
    json_option(apel)
    pool_options(apel)


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="ID", help="the pilot, by any of its names")
    parser.add_argument("payload", metavar="PAYLOAD", help="what the pilot's own system calls it")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--owner", metavar="NAME", help="it has begun, for this person")
    what.add_argument("--over", action="store_true", help="it has ended")
    parser.add_argument("--exit-code", type=int, metavar="N", help="of one that has ended, if it is known")
    parser.add_argument("--vo", default="", metavar="NAME", help="of one that has begun, as below")
    parser.add_argument("--host", default="", metavar="NAME", help="the machine on which it runs")
    parser.add_argument("--command", default="", metavar="TEXT", help="what is run")
    json_option(parser)
    pool_options(parser)


_MODULES: Final = {
    "check": "files",
    "route": "files",
    "convert": "files",
    "status": "asking",
    "reload": "asking",
    "drain": "asking",
    "resume": "asking",
    "trace": "asking",
    "show": "asking",
    "payloads": "payloads",
    "report": "payloads",
    "unroute": "unrouting",
    "apel": "accounting",
}


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    module = importlib.import_module(f"kettle_services.cli.ce.{_MODULES[arguments.what]}")
    return int(getattr(module, arguments.what)(arguments, screen))
