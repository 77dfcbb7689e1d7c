"""`kettle schedd`: access points that join the pool by a token."""

import argparse
from typing import Final

from kettle_services.cli.machines import joining, leaving, tokens
from kettle_services.cli.options import json_option, reach_options
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Access points that join the pool by one command: machines where people submit jobs, each with a queue, a log and a database of
its own.  An administrator makes a join token; it lets one in, within half an hour, and is to be kept like a password.

examples:
  kettle schedd token create                                 on the pool: a token for one access point
  kettle schedd join https://pool.example/ --token-file t    on the new access point
  kettle schedd list                                         which there are
  kettle schedd leave                                        on the access point: when its queue is empty

kettle schedd COMMAND --help explains each.
"""

_JOIN: Final = """\
Have this machine be an access point of a pool: check that it is the pool of the token, make its keys, have the pool admit it, and
write the credentials and the settings of a schedd and a shadow into the pool's directory (--home).  Nothing but the keys is written
before the pool has answered; if the answer is lost, say it again within a minute.  Settings that are there already stay.

Its name (--name) is that of its queue: kettle submit --name and kettle q --name take it elsewhere.  People of the machine use it
by their accounts: accounts of [master] in kettle.toml says which.

Where systemd runs, the unit kettle-access-point is written, enabled and started; elsewhere, --start starts it, as kettle up does.
"""

_LEAVE: Final = """\
Wait until no job waits or runs in the queue of an access point, then have its credentials be invalid, which ends its connections
within a second.  With --now it leaves at once; its queue stays on its disk.

Without a name it is this machine, which needs no administrator: it stops, has its own credentials be invalid, and what joining
wrote is removed.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    tokens.arguments(commands.add_parser("token", help="tokens with which access points join"), "schedd")
    shown = commands.add_parser("list", help="access points that have joined")
    json_option(shown)
    reach_options(shown)
    join = commands.add_parser(
        "join", help="have this machine join a pool", description=_JOIN, formatter_class=form
    )
    joining.arguments(join, owner=False)
    leave = commands.add_parser(
        "leave", help="empty an access point and remove it", description=_LEAVE, formatter_class=form
    )
    leaving.arguments(leave)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    match arguments.what:
        case "token":
            return tokens.run(arguments, screen, "schedd")
        case "join":
            return joining.run(arguments, screen, "schedd")
        case "leave":
            return leaving.run(arguments, screen, "schedd")
        case _:
            return tokens.show_members(arguments, screen, "schedd")
