"""`kettle ce unroute`."""

import argparse

from kettle_services.cli.actions.jobs import act
from kettle_services.cli.output.screen import Screen


def unroute(arguments: argparse.Namespace, screen: Screen) -> int:
    """Take jobs off their route."""
    return act(arguments, screen, "unroute")
