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

With `facility` somebody signs in at an issuer of tokens and gets a notebook from JupyterHub, which is a job; the notebook makes a Dask
cluster of jobs, whose workers read synthetic columns by XRootD through the cache of the site, one of them (as root) on a machine in a
network of its own into which nothing leads; and the histogram has to be the one that is made without a cluster.  It takes the
package's extra `dask`; what else it takes (the extra `facility`, configurable-http-proxy, XRootD, root) may be missing: then it is said
and left out, and --whole refuses.

examples:
  kettle demo
  kettle demo elastic
  kettle demo facility
"""


_SHOWN: Final = {"sweep": ("demo", 120), "elastic": ("elastic_demo", 300), "facility": ("facility.demo", 20)}
"""The module of each demonstration, and how many jobs it has unless somebody says so."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "which",
        nargs="?",
        choices=tuple(_SHOWN),
        default="sweep",
        metavar="WHICH",
        help="sweep (default), elastic or facility",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=None,
        metavar="N",
        help="how many jobs (default: 120, of elastic 300), or parts of the columns (20)",
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="of facility: refuse to begin if a part of it would have to be left out",
    )
    parser.add_argument("--keep", action="store_true", help="leave the pool's files for a look")
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show it."""
    module, usual = _SHOWN[arguments.which]
    demo = importlib.import_module(f"kettle_services.cli.{module}")
    jobs = arguments.jobs if arguments.jobs is not None else usual
    more = {"whole": arguments.whole} if arguments.which == "facility" else {}
    return int(demo.run(screen, jobs=jobs, keep=arguments.keep, **more))
