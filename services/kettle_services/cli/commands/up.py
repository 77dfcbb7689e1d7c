"""`kettle up`: start the pool of this machine."""

import argparse
import os
from typing import Final

from kettle.client import PoolFile, home_directory
from kettle_services.cli.configuration.outcome import check_first
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import home_option, json_option, seconds
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Start a personal pool on this machine: a NATS server, a PostgreSQL server and every service, under one master.  Nobody
else on the machine can reach them, unless root starts it and lets others in.  All its files are in one directory.  If the pool is up already, this finds it.

examples:
  kettle up
  KETTLE_HOME=/scratch/pool kettle up
  kettle status                     what runs now
  kettle down                       stop it; queue and history stay for the next kettle up
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    home_option(parser)
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="SECONDS", help="how long it may take (default: 60)"
    )
    json_option(parser)


def _served(user: str) -> str:
    """Whose jobs its access point looks after."""
    if os.geteuid() == 0:
        return "It can serve other accounts with their own rights: name them in accounts of [master] in kettle.toml."
    return f"It serves {user} only; other accounts need a pool that root starts."


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Start it and say where it is."""
    from kettle.bus.open_servers import open_servers, warning
    from kettle.pool import PoolError, state, up

    def progress(text: str) -> None:
        if screen.err.isatty():
            screen.note(screen.paint(f"  {text} ...", "dim"))

    home = arguments.home or home_directory()
    try:
        if state(home) is None:
            check_first(home, screen)
        started = up(home, progress=progress, deadline_s=arguments.timeout)
    except PoolError as error:
        raise CommandError(str(error)) from error
    pool = PoolFile.load(started.home)
    if why := warning(open_servers(pool.nats_url, pool.ca)):
        screen.trouble(f"WARNING: {why}")
    if screen.as_json:
        screen.json(
            {
                "home": str(started.home),
                "new": started.new,
                "pid": started.state.pid,
                "nats_url": pool.nats_url,
            }
        )
        return 0
    screen.say(f"The pool is {'up' if started.new else 'already up'} in {started.home}.")
    if off := [daemon.name for daemon in started.state.daemons if daemon.status == "off"]:
        screen.note(f"Switched off is: {', '.join(off)}.  Switch it on with: kettle on.")
    screen.note("Send it jobs with: kettle submit FILE.  Stop it with: kettle down.")
    screen.note(_served(pool.user))
    return 0
