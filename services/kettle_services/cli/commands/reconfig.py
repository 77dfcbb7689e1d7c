"""`kettle reconfig`."""

import argparse
from typing import Final

from kettle_services.cli.actions.daemons import control, control_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Have daemons of a host read their settings again, from kettle.toml.  A daemon whose settings have changed is
restarted at once; jobs continue meanwhile.  Settings that cannot be used are refused with the reason, and the old ones stay in
use.  This is for the administrators of the host.

Some settings of the master itself, such as daemon_list, are used when the host is restarted; this says which.

examples:
  kettle reconfig                    everything on this host
  kettle reconfig --daemon startd    after a change of [startd] in kettle.toml
  kettle reconfig node17.example.org
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    control_arguments(parser, verb="reconfigure", ends=False)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return control(arguments, screen, "reconfig")
