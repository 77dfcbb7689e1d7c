"""`kettle demo`: all of it, in a pool that is thrown away."""

import argparse
import importlib
from typing import Final

from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Start a pool that is thrown away, run a sweep of real jobs through every role, kill the job queue in the middle, check the
answer, show the timeline of one job and the pool's figures, and clean up.  It takes well under a minute.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--jobs", type=int, default=120, metavar="N", help="how many jobs (default: 120)")
    parser.add_argument("--keep", action="store_true", help="leave the pool's files for a look")
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show it."""
    demo = importlib.import_module("kettle_services.cli.demo")
    return int(demo.run(screen, jobs=arguments.jobs, keep=arguments.keep))
