"""`kettle worker`: machines that join the pool by a token."""

import argparse
from typing import Final

from kettle_services.cli.machines import joining, leaving, running, tokens
from kettle_services.cli.options import json_option, reach_options
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Machines that join the pool by one command.  An administrator makes a join token; it lets one machine in, within half an hour,
and is to be kept like a password.  The machine makes its own key, so no secret that lasts is sent anywhere.

examples:
  kettle worker token create                              on the pool: a token for one machine
  kettle worker token create --owner ada --max-uses 10    ten machines that run ada's jobs only
  kettle worker token create --own                        without an administrator: a machine for your own jobs
  kettle worker token list                                which tokens there are
  kettle worker join https://pool.example/ --token-file t    on the new machine
  kettle worker list                                      who has joined: your own machines, all for administrators
  kettle worker leave n17                                 empty it, then have its credential be invalid
  kettle worker leave n17 --now                           remove it at once
  kettle worker leave                                     on the machine itself

kettle worker COMMAND --help explains each.
"""

_JOIN: Final = """\
Have this machine join a pool: check that it is the pool of the token, make a key, have the pool admit it, and write the
credential and the settings of a startd into the pool's directory (--home).  Nothing but the key is written before the pool has answered;
if the answer is lost, say it again within a minute.  Settings that are there already stay.

Where systemd runs, the unit kettle-worker is written, enabled and started; elsewhere, --start starts it, as kettle up does.
"""

_RUN: Final = """\
Be the machine of a lease, in the foreground, from joining to the end: what the providers of elastic pools start on the machines
that they make.  It joins under the name of its lease, examines itself, takes jobs, renews its lease at the scaler, and
ends everything that it has started when the lease is over, however that comes.

The file is JSON; it holds a join token, has to be readable by its owner only, and is removed when the token was used.
"""

_LEAVE: Final = """\
Empty a machine, and when nothing runs on it any more have its credential be invalid, which ends its connection within a second.
Jobs have the machine's retirement time (see kettle drain); if you interrupt the command it goes on emptying, and you can say
it again.

People remove machines that they have let in (kettle worker token create --own), administrators any.

Without a name it is this machine, which needs no administrator: it drains, stops, has its own credential be invalid, and what
joining wrote is removed.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    tokens.arguments(commands.add_parser("token", help="tokens with which machines join"), "worker")
    shown = commands.add_parser(
        "list", help="machines that have joined: of all for administrators, else your own"
    )
    json_option(shown)
    reach_options(shown)
    join = commands.add_parser(
        "join", help="have this machine join a pool", description=_JOIN, formatter_class=form
    )
    joining.arguments(join)
    machine = commands.add_parser(
        "run", help="be the machine of a lease", description=_RUN, formatter_class=form
    )
    running.arguments(machine)
    leave = commands.add_parser(
        "leave", help="empty a machine and remove it", description=_LEAVE, formatter_class=form
    )
    leaving.arguments(leave)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    match arguments.what:
        case "token":
            return tokens.run(arguments, screen, "worker")
        case "join":
            return joining.run(arguments, screen, "worker")
        case "run":
            return running.run(arguments, screen)
        case "leave":
            return leaving.run(arguments, screen, "worker")
        case _:
            return tokens.show_members(arguments, screen, "worker")
