"""
`kettle rm`.
"""

import argparse
from typing import Final

from kettle.cli.acting import act, act_arguments
from kettle.cli.screen import Screen

HELP: Final = """\
Take jobs out of the queue for ever.  A job that runs is stopped.  What happened to it stays on record.

examples:
  kettle rm 12.3
  kettle rm 12 13
  kettle rm --owner ada --constraint 'JobStatus == 5'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """
    What the command takes.
    """
    act_arguments(parser, verb="remove")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """
    Do it.
    """
    return act(arguments, screen, "remove")
