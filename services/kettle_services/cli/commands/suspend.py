"""`kettle suspend`."""

import argparse
from typing import Final

from kettle_services.cli.actions.jobs import act, act_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Suspend running jobs.  They stay on their machines with all that they have, and use no processor time until
kettle continue.  Nobody else can use the slot meanwhile; to give it up, use kettle vacate or kettle hold.

examples:
  kettle suspend 12.3
  kettle suspend 12 --reason "the file server is slow"
  kettle suspend --constraint 'RequestCpus > 8'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    act_arguments(parser, verb="suspend")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return act(arguments, screen, "suspend")
