"""`kettle run ROLE`: be one service of a pool."""

import argparse
import importlib
import os
import sys
from typing import Final

from kettle_services.cli.errors import CommandError
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Run one service of a pool, in this process, until SIGTERM.  This is what a container, systemd or a master starts; for
a pool on this machine, kettle up starts all of them.  Settings come from the environment and from kettle.toml: a name
that is not known is refused.

roles:
  master       starts and watches the others on one machine
  schedd       the job queue of one access point
  shadow       looks after running jobs on the submit side
  startd       the policy and the slots of one machine
  starter      runs one job (started by the startd)
  collector    answers questions about the pool
  negotiator   matches jobs with slots
  accounting   what was used, by whom, and the history
  iam          who may do what: machines that join, tokens, bans
  dagman       the workflows of one access point
  ce           gives jobs of one access point their routes, and runs them in batch systems
  scaler       decides which machines are made and removed
  provisioner  makes and removes machines at providers
  gateway      events for monitoring, as JSON

A schedd, a negotiator, a collector or a scaler may run several times under one name, on one machine or on several: one of them does
the work, the others are standbys and take over when it ends.

examples:
  kettle run schedd --name ap1
  KETTLE_NATS_URL=nats://bus.example.org:4222 kettle run startd
"""

ROLES: Final = (
    "master",
    "schedd",
    "shadow",
    "startd",
    "starter",
    "collector",
    "negotiator",
    "accounting",
    "iam",
    "dagman",
    "sessions",
    "ce",
    "scaler",
    "provisioner",
    "gateway",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("role", choices=ROLES, metavar="ROLE", help=", ".join(ROLES))
    parser.add_argument(
        "--name", default="", metavar="NAME", help="the service's name, as KETTLE_<ROLE>_NAME"
    )
    rest = parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help=argparse.SUPPRESS)
    rest.required = False  # or a complaint about a missing role would name it, too


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Run the service; its exit status is ours."""
    del screen
    name = f"kettle_services.{arguments.role}.__main__"
    if arguments.name:
        os.environ[f"KETTLE_{arguments.role.upper()}_NAME"] = arguments.name
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise CommandError(f"this installation cannot run a {arguments.role}: {error}") from error
    sys.argv = [f"kettle run {arguments.role}", *arguments.rest]
    return int(module.main() or 0)
