"""`kettle prio`."""

import argparse
import re
from typing import Final

from kettle_services.cli.actions.job_attributes import edit_jobs
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import job_options, json_option, pool_options
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Set or change the priority (JobPrio) of jobs in the queue: of the jobs of one person those with more come first.  It has no
effect between persons: see kettle userprio.

examples:
  kettle prio -p 10 12          the jobs of cluster 12 have priority 10
  kettle prio 12.3 +5           job 12.3 has 5 more
  kettle prio --all -5          all of your jobs have 5 less
"""
_PRIORITY: Final = re.compile(r"[+-]\d{1,10}")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    job_options(parser, verb="the jobs", then="+N or -N")
    parser.add_argument(
        "-p", "--priority", type=int, metavar="N", help="the priority, replacing the earlier one"
    )
    parser.add_argument("--all", action="store_true", help="all of your jobs")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Change the priorities."""
    said = [text for text in arguments.ids if _PRIORITY.fullmatch(text)]
    arguments.ids = [text for text in arguments.ids if text not in said]
    if len(said) + (arguments.priority is not None) != 1 or not any(map(int, said or ["1"])):
        raise UsageError("which priority?  Say +N, -N or -p N once, as in: kettle prio 12 +5")
    if arguments.priority is not None:
        return edit_jobs(arguments, screen, {"JobPrio": arguments.priority})
    return edit_jobs(arguments, screen, {}, add_to_priority=int(said[0]))
