"""`kettle vacate`."""

import argparse
from typing import Final

from kettle_services.cli.actions.jobs import act, act_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Make running jobs leave their machines.  They go back into the queue and run again, from their last checkpoint if they
make any, else from the beginning.  A job gets its soft kill signal and time to end; with --fast it is killed at once.
The machine is given up: it is free for others.  To remove jobs from the queue, or to keep them in it
without running, use kettle rm and kettle hold.

examples:
  kettle vacate 12.3
  kettle vacate 12 --reason "the license server is down"
  kettle vacate --fast --constraint 'regexp("^slot1.*@node7", RemoteHost)'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    act_arguments(parser, verb="have leave their machines")
    parser.add_argument(
        "--fast", action="store_true", help="kill them at once: no signal, no time, no checkpoint"
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return act(arguments, screen, "vacate_fast" if arguments.fast else "vacate")
