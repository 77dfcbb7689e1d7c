"""`kettle continue`."""

import argparse
from typing import Final

from kettle_services.cli.actions.jobs import act, act_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Have jobs go on that kettle suspend made stand still.  A job that the policy of its machine has suspended goes on when that
policy lets it.

examples:
  kettle continue 12.3
  kettle continue --all
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    act_arguments(parser, verb="have go on")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return act(arguments, screen, "continue")
