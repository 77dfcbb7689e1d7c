"""`kettle site`: the server of a pool of many machines."""

import argparse
import os
import pwd
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kettle.client import home_directory
from kettle_services.cli.errors import CommandError
from kettle_services.cli.machines import containers
from kettle_services.cli.options import at_least, home_option, json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Set up the server of a pool of many machines: it matches jobs, knows who may do what, and is what all others connect to.  Queues are
on access points (kettle schedd), and jobs run on machines (kettle worker); both join by one command.

examples:
  kettle site init --pool physics --address bus.example.org
  kettle site init --pool physics --address bus.example.org --dry-run
  kettle site containers --pool physics ./pool       for Docker or Kubernetes: keys, passwords, settings
  kettle site database                               within a container: the schema and the roles of the services

kettle site COMMAND --help explains each.
"""

_INIT: Final = """\
Write what this machine needs to be the server of a pool: an authority with a certificate for the address, and settings with which
NATS listens there, encrypted, in operator mode, and iam lets machines join.  PostgreSQL stays on a Unix socket of this machine:
each access point has a database of its own.  Nothing listens anywhere else than on loopback and on the address that you give.

Said again it adds what is missing and changes nothing: settings that say something else are named, and stay.
"""

_CONTAINERS: Final = """\
Write what a pool in containers needs that is in no image: the configuration of its NATS server, a credential and a password for each
service, certificates, and the settings.  infra/compose and infra/kubernetes give each container its own.

Said again it makes no key and no password again, adds what is missing, and writes what is said of the keys as this release says it.
"""

_DATABASE: Final = """\
Bring the schema of a pool in containers up to date, and give each service its role of the database and its password.  It is said once
before the services start, and after an upgrade; the database is named for its owner by KETTLE_DATABASE_URL.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    init = commands.add_parser(
        "init", help="write the configuration of the server", description=_INIT, formatter_class=form
    )
    init.add_argument("--pool", default="site", metavar="NAME", help="the pool's name (default: site)")
    init.add_argument(
        "--address",
        default=socket.getfqdn(),
        metavar="NAME|ADDRESS",
        help="by which all others reach this machine, and on which it listens (default: its full name)",
    )
    init.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="NAME|ADDRESS",
        help="a further one for the certificate; may be repeated",
    )
    init.add_argument(
        "--administrator",
        action="append",
        default=[],
        metavar="LOGIN",
        help="who runs the pool; may be repeated (default: this account)",
    )
    init.add_argument("--bus-port", type=at_least(1), default=4222, metavar="PORT", help="default: 4222")
    init.add_argument("--iam-port", type=at_least(1), default=9643, metavar="PORT", help="default: 9643")
    init.add_argument(
        "--start",
        action="store_true",
        help="where systemd runs, write the unit kettle-server, enable and start it",
    )
    init.add_argument("--dry-run", action="store_true", help="show what would be written, and write nothing")
    json_option(init)
    home_option(init)
    containers.containers_arguments(
        commands.add_parser(
            "containers",
            help="write what a pool in containers needs",
            description=_CONTAINERS,
            formatter_class=form,
        )
    )
    containers.database_arguments(
        commands.add_parser(
            "database",
            help="prepare the database of a pool in containers",
            description=_DATABASE,
            formatter_class=form,
        )
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    match arguments.what:
        case "containers":
            return containers.make_containers(arguments, screen)
        case "database":
            return containers.prepare_database(arguments, screen)
        case _:
            return _init(arguments, screen)


def _init(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.pool import units
    from kettle.pool.site import Site, SiteError, Written, set_up

    home: Path = (arguments.home or home_directory()).expanduser()
    site = Site(
        pool=arguments.pool,
        address=arguments.address,
        more_names=arguments.also,
        administrators=arguments.administrator or [pwd.getpwuid(os.geteuid()).pw_name],
        bus_port=arguments.bus_port,
        iam_port=arguments.iam_port,
    )
    try:
        written = set_up(site, home, now=datetime.now(UTC), dry_run=arguments.dry_run)
        if arguments.start and not arguments.dry_run:
            if not units.systemd_runs():
                raise CommandError(
                    f"systemd does not run this machine: start the server with kettle up --home {home}"
                )
            written.append(Written(path=units.install("server", home), what="the unit, which runs"))
    except (SiteError, units.UnitError) as error:
        raise CommandError(str(error)) from error
    if screen.as_json:
        screen.json([{"path": str(each.path), "what": each.what, "text": each.text} for each in written])
        return 0
    for each in written:
        screen.say(f"{'would write' if arguments.dry_run else 'wrote'} {each.path}: {each.what}")
        if arguments.dry_run and each.text:
            screen.block(each.text.rstrip("\n"))
    if not written:
        screen.say(f"Nothing is missing in {home}.")
    if not arguments.dry_run:
        started = "" if arguments.start else f"kettle up --home {home}, then "
        screen.note(
            f"Next: {started}kettle schedd token create for access points, kettle worker token create for machines."
        )
    return 0
