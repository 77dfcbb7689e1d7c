"""`kettle edit`."""

import argparse
import re
from typing import Final

from kettle.submit.late_materialization import COMMANDS
from kettle_services.cli.actions.job_attributes import edit_jobs
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import job_options, json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads.types import Ad, Scalar

HELP: Final = """\
Give attributes of jobs in the queue other values.  A waiting job is matched by them from now on; a running job
keeps the values with which it began until its next run.

examples:
  kettle edit 12.3 RequestMemory=2048         one job
  kettle edit 12 'Requirements=Memory > 4096' a value is a ClassAd expression, here in the shell's quotes
  kettle edit 12 'Arguments="-n 5"'           a string has quotes of its own
  kettle edit --constraint 'JobStatus == 5' PeriodicRelease=true
  kettle edit 12 max_idle=200                 for late materialization: at most 200 jobs of the cluster wait
  kettle edit 12 max_materialize=1000         and at most 1000 of them are in the queue

Nobody can set who a job is (Owner, ClusterId, ...) or what has happened to it (JobStatus, ...).
"""
_CHANGE: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.DOTALL)
_PACE: Final = frozenset(name.lower() for name in (*COMMANDS, *COMMANDS.values()))


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    job_options(parser, verb="change the jobs", then="NAME=EXPRESSION")
    parser.add_argument("--all", action="store_true", help="all of your jobs")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Edit the jobs."""
    changes = [found.groups() for text in arguments.ids if (found := _CHANGE.fullmatch(text))]
    arguments.ids = [text for text in arguments.ids if not _CHANGE.fullmatch(text)]
    if not changes:
        raise UsageError("what is to be changed?  Say NAME=EXPRESSION, as in RequestMemory=2048")
    folded = {name.lower() for name, _ in changes}
    if len(folded) < len(changes):
        raise UsageError("an attribute stands twice: say once what it is to be")
    if folded <= _PACE:
        return _pace(arguments, screen, dict(_number(name, text) for name, text in changes))
    if mixed := sorted(folded & _PACE):
        raise UsageError(f"{mixed[0]} is that of a cluster: set it in a command of its own")
    return edit_jobs(arguments, screen, {name: _value(name, text) for name, text in changes})


def _pace(arguments: argparse.Namespace, screen: Screen, attributes: Ad) -> int:
    if len(arguments.ids) != 1 or not arguments.ids[0].isdecimal():
        raise UsageError(f"{' and '.join(attributes)}: of which cluster?  Say its number, as in 12")
    edited = with_pool(arguments, lambda pool: pool.edit(int(arguments.ids[0]), attributes))
    if screen.as_json:
        screen.json({"cluster": edited.cluster, "attributes": attributes})
    else:
        what = ", ".join(f"{name} = {value}" for name, value in attributes.items())
        screen.say(f"Cluster {edited.cluster}: {what}.")
    return 0


def _number(name: str, value: str) -> tuple[str, int]:
    if not value.isdecimal():
        raise UsageError(f"'{name}={value}' is not NAME=NUMBER, as in max_idle=200")
    return COMMANDS.get(name.lower(), name), int(value)


def _value(name: str, text: str) -> Scalar:
    from kettle.submit.errors import PlacelessError
    from kettle.submit.expressions import scalar

    try:
        return scalar(text)
    except PlacelessError as error:
        raise UsageError(f"the value of {name}, '{text}', cannot be read: {error}") from error
