"""`kettle ce`: the routes of a compute entrypoint, and what it decided about jobs."""

import argparse
import importlib
from typing import Final

from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
A compute entrypoint takes jobs from elsewhere, changes them by routes and brings them to this pool or to a batch system.  A route
file has HTCondor's names (JOB_ROUTER_ROUTE_NAMES) and the statements of job transforms.

examples:
  kettle ce check routes                     all that is wrong in a file, and what sample jobs come to
  kettle ce route routes --ads jobs.ads      where jobs would go by a file, and with which ad
  kettle ce convert routes.old > routes      routes of the old syntax (JOB_ROUTER_ENTRIES) as new ones

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


_MODULES: Final = {"check": ("files", "check"), "route": ("files", "route"), "convert": ("files", "convert")}


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    module, function = _MODULES[arguments.what]
    return int(
        getattr(importlib.import_module(f"kettle_services.cli.ce.{module}"), function)(arguments, screen)
    )
