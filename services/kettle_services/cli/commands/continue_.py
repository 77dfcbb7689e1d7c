"""`kettle continue`."""

import argparse
from typing import Final

from kettle_services.cli.actions.jobs import act, act_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Continue jobs that kettle suspend has suspended.  A job that the policy of its machine has suspended continues when that
policy permits it.

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
