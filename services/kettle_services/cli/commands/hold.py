"""`kettle hold`."""

import argparse
from typing import Final

from kettle_services.cli.actions.jobs import act, act_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Keep jobs from running until they are released.  A running job is stopped; what it has not saved is lost.

examples:
  kettle hold 12.3
  kettle hold 12 --reason "wrong input"
  kettle hold --constraint 'RequestMemory > 8192'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    act_arguments(parser, verb="keep from running")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return act(arguments, screen, "hold")
