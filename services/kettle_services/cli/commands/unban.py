"""`kettle unban`."""

import argparse
from typing import Final

from kettle_services.cli.commands.ban import named
from kettle_services.cli.options import json_option, reach_options, with_pool
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Let somebody in again who was banned.  For administrators; `kettle ban` without a name shows who is.

examples:
  kettle unban eve
  kettle unban worker:n17
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("whom", metavar="WHOM", help="as kettle ban shows it, or a login name")
    json_option(parser)
    reach_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lift the ban."""
    whom = named(arguments.whom)
    with_pool(arguments, lambda pool: pool.iam.unban(whom))
    if screen.as_json:
        screen.json({"lifted": whom})
    else:
        screen.say(f"{whom} is let in again.")
    return 0
