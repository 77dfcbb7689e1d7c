"""`kettle demo`: all of it, in a pool that is thrown away."""

import argparse
import importlib
from typing import Final

from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Start a pool that is thrown away, run a sweep of real jobs through every role, kill the job queue in the middle, check the
answer, show the timeline of one job and the pool's figures, and clean up.  It takes well under a minute.

With `elastic` the pool has no machine to begin with: 300 mixed jobs wait, machines come as processes of this host, pack the jobs and
go when nothing is left to do; it tells why there were so many, and how much more was provided than used.

examples:
  kettle demo
  kettle demo elastic
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "which",
        nargs="?",
        choices=("sweep", "elastic"),
        default="sweep",
        metavar="WHICH",
        help="sweep (default) or elastic",
    )
    parser.add_argument(
        "--jobs", type=int, default=None, metavar="N", help="how many jobs (default: 120, of elastic 300)"
    )
    parser.add_argument("--keep", action="store_true", help="leave the pool's files for a look")
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show it."""
    elastic = arguments.which == "elastic"
    demo = importlib.import_module(f"kettle_services.cli.{'elastic_demo' if elastic else 'demo'}")
    jobs = arguments.jobs if arguments.jobs is not None else 300 if elastic else 120
    return int(demo.run(screen, jobs=jobs, keep=arguments.keep))
