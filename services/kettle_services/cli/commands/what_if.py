"""`kettle what-if`: waiting times and usage of submitters under other rules."""

import argparse
from pathlib import Path
from typing import Final

from kettle_services.cli.options import json_option, reach_options, seconds
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import FORMS, TimeParser, moment_argument

HELP: Final = """\
Play a period of the past again with other quotas, priority factors, policies or machines, and compare: how long submitters
waited and what they had, according to the log, to a replay without the change, and to one with it.  The first two show
how far the third can be trusted.

Submissions, holds, removals and machines are those of the log; who gets which slot when is decided again by the
negotiator's own code, on a simulated clock.  A job takes as long as it took.  Only the log is read, so the database has to
be reachable, as for kettle log; nothing is changed anywhere.

FILE is TOML (or JSON, named *.json), with any of these tables:

  [negotiator]                   # settings, as in kettle.toml; what is not named stays as it is
  priority_halflife = 3600
  preemption_requirements = "RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2"
  groups = { physics = { quota = 40 }, chem = { quota_dynamic = 0.5 } }

  [factors]                      # priority factors
  alice = 10
  "<physics>" = 100

  [machines]
  scale = 1.5                    # half as many machines more
  user_preemption = true         # what machines advertise: also start and rank
  [[machines.add]]
  count = 4
  cpus = 64
  memory = 262144                # MiB

  [schedd]
  claim_worklife = 600

examples:
  kettle what-if --since 1d --change more-for-physics.toml
  kettle what-if --since '2026-11-20 08:00' --until '2026-11-20 20:00' --change change.toml alice bob
  kettle what-if --since 7d --change change.toml --svg usage.svg
  kettle what-if --since 7d --change change.toml --settings kettle.toml.of-last-week
  kettle what-if --since 1d --change change.toml --json | jq '.submitters[] | {name, wait: .changed.wait_mean}'
"""


def arguments(parser: TimeParser) -> None:
    """What the command takes."""
    parser.add_argument("names", metavar="SUBMITTER", nargs="*", help="show only these")
    parser.add_argument(
        "--since",
        type=moment_argument,
        required=True,
        metavar="TIME",
        help=f"when the period begins, {FORMS}",
    )
    parser.add_argument("--until", type=moment_argument, metavar="TIME", help="when it ends (default: now)")
    parser.add_argument("--change", type=Path, required=True, metavar="FILE", help="what is changed")
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="the pool's settings then (default: its kettle.toml, as it is now)",
    )
    parser.add_argument(
        "--step",
        type=seconds,
        metavar="SECONDS",
        help="between two negotiation cycles at least (default: a 5000th of the period, 0.1 or more)",
    )
    parser.add_argument("--svg", type=Path, metavar="FILE.svg", help="draw what was in use over time")
    json_option(parser)
    reach_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Read, play twice, and show."""
    from kettle_services.cli.reports import what_if_command

    return what_if_command.run(arguments, screen)
