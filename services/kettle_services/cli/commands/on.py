"""`kettle on`."""

import argparse
from typing import Final

from kettle_services.cli.actions.daemons import control, control_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Switch daemons of a host on again that were switched off, or that their master has given up.  A daemon that waits for
its next start is started now.  This is for the administrators of the host.

examples:
  kettle on                          everything on this host
  kettle on --daemon startd          this machine takes jobs again
  kettle on node17.example.org       everything on another host
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    control_arguments(parser, verb="switch on", ends=False)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return control(arguments, screen, "on")
