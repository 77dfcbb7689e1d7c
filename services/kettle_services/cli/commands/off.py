"""`kettle off`."""

import argparse
from typing import Final

from kettle_services.cli.actions.daemons import control, control_arguments
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Switch daemons of a host off; its master keeps running, and accepts kettle on.  What is off stays off, also when the
master or the machine is restarted, until kettle down.  This is for the administrators of the host.

There are three ways: graceful (the usual one) gives daemons and jobs their time to end, and jobs run again elsewhere;
--peaceful takes no new jobs and waits until those that run have ended by themselves; --fast does not wait.
A daemon that does not end in its time is killed.

examples:
  kettle off --daemon startd --peaceful         no new jobs here, and let the old ones end
  kettle off --peaceful node17.example.org      the same for everything on another host
  kettle off --daemon schedd.ap1 --fast
  kettle status --master                        what is off, on every host
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    control_arguments(parser, verb="switch off", ends=True)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return control(arguments, screen, "off")
