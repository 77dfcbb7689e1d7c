"""`kettle unpublish`."""

import argparse
from typing import Final

from kettle.execution.job_environment.condor_chirp import Chirp, ChirpError
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Within a running job: publish one of its services no more.  Connections that are there go on.

examples:
  kettle unpublish dashboard
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("name", metavar="NAME", help="of the service")
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Withdraw it."""
    try:
        Chirp().ask("unpublish", arguments.name)
    except (ChirpError, OSError) as error:
        raise CommandError(f"{arguments.name} is not withdrawn: {error}") from error
    if screen.as_json:
        screen.json({"name": arguments.name})
    return 0
