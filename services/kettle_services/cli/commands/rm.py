"""`kettle rm`."""

import argparse
from typing import Final

from kettle_services.cli.actions.jobs import act, act_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Remove jobs from the queue permanently.  A job that runs is stopped.  What happened to it stays on record.
A job whose leave_in_queue is true stays in the queue as removed (X) as long as it is; --forcex ends that.

examples:
  kettle rm 12.3
  kettle rm 12 13
  kettle rm --forcex 12.3        removed before, but still in the queue
  kettle rm --owner ada --constraint 'JobStatus == 5'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    act_arguments(parser, verb="remove")
    parser.add_argument(
        "--forcex", action="store_true", help="make removed jobs leave the queue that stay in it"
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return act(arguments, screen, "remove_x" if arguments.forcex else "remove")
