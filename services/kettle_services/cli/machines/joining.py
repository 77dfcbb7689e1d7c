"""`kettle worker join` and `kettle schedd join`."""

import argparse
import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

from kettle.client import home_directory
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen
from kettle_wire.events.iam import Joins


def arguments(parser: argparse.ArgumentParser, *, owner: bool = True) -> None:
    """What joining takes; `owner`: whether the machine may be somebody's."""
    parser.add_argument("url", metavar="URL", help="where iam of the pool is, as the token's maker was told")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument(
        "--token", default="", metavar="TOKEN", help="the join token; others on this machine can see it"
    )
    given.add_argument("--token-file", type=Path, metavar="FILE", help="a file with it; - is standard input")
    parser.add_argument(
        "--name", default=socket.gethostname(), metavar="NAME", help="default: the host's name"
    )
    if owner:
        parser.add_argument(
            "--owner", default="", metavar="NAME", help="refuse a token that is of another owner"
        )
    parser.add_argument("--start", action="store_true", help="start it now, without systemd")
    parser.add_argument(
        "--stay",
        action="store_true",
        help="be its master, in the foreground, until SIGTERM; a member already needs no token (in containers)",
    )
    json_option(parser)
    home_option(parser)


def run(arguments: argparse.Namespace, screen: Screen, joins: Joins) -> int:
    """Join; start it where that was asked for, or where systemd can."""
    from kettle.pool import PoolError, units, up
    from kettle.pool.joined_files import keep, record_of
    from kettle.pool.joining import JoinError, join

    home: Path = arguments.home or home_directory()
    owner = getattr(arguments, "owner", "")
    try:
        if arguments.stay and record_of(home) is not None:
            _be_master(home)
        token = arguments.token or _read(arguments.token_file)
        joined = join(arguments.url, token, home=home, name=arguments.name, owner=owner, joins=joins)
        files = keep(joined, home)
        unit = None
        if arguments.start:
            up(home)
        elif arguments.stay:
            _be_master(home)
        elif os.geteuid() == 0 and units.systemd_runs():
            unit = units.install("access-point" if joins == "schedd" else "worker", home)
    except (JoinError, PoolError, units.UnitError) as error:
        raise CommandError(str(error)) from error
    kind = "the access point" if joins == "schedd" else "a machine"
    if screen.as_json:
        screen.json(
            {
                "pool": joined.pool,
                "worker": joined.worker,
                "joins": joins,
                "files": [str(path) for path in files],
            }
        )
        return 0
    screen.say(f"This machine is {joined.worker}, {kind} of the pool {joined.pool}.")
    if unit is not None:
        screen.note(f"It runs as {unit.stem}, with its files in {home}.")
    elif arguments.start:
        screen.note(f"It runs, with its files in {home}.")
    else:
        screen.note(f"Its credentials and settings are in {home}. Start it with: kettle up --home {home}")
    return 0


def _be_master(home: Path) -> NoReturn:
    """Become the master of the machine: what watches this process watches that one."""
    words = [sys.executable, "-P", "-m", "kettle_services.cli", "run", "master"]
    os.execve(sys.executable, words, os.environ | {"KETTLE_HOME": str(home.absolute())})  # noqa: S606 - the program itself


def _read(path: Path) -> str:
    try:
        return (sys.stdin.read() if str(path) == "-" else path.read_text(encoding="ascii")).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text of ASCII"
        raise UsageError(f"{path} cannot be read as a join token: {why}") from error
