"""`kettle restart`."""

import argparse
from typing import Final

from kettle_services.cli.actions.daemons import control, control_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
End daemons of a host and start them again.  Without a daemon's name the whole host is restarted, its master too: that is how
all settings, and a version that was installed meanwhile, come into use.  What is switched off stays off.  This is for
the administrators of the host.

A startd that is restarted ends its jobs; they run again elsewhere.  With --peaceful it waits until they have ended.

examples:
  kettle restart negotiator
  kettle restart --peaceful node17.example.org  a new version, when the jobs there have ended
  kettle restart                                everything on this host
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    control_arguments(parser, verb="restart", ends=True)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return control(arguments, screen, "restart")
