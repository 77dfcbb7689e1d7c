"""`kettle down`: stop the pool of this machine."""

import argparse
from typing import Final

from kettle.client import home_directory
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Stop the personal pool of this machine with everything that it runs.  Running jobs are stopped and run again after
the next kettle up; the queue, the history and the event log stay.

examples:
  kettle down
  kettle down --purge               and delete the pool: queue, history, log, credentials
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    home_option(parser)
    parser.add_argument(
        "--purge", action="store_true", help="delete the pool's directory: nothing of it stays"
    )
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Stop it."""
    from kettle.pool import PoolError, down

    home = arguments.home or home_directory()
    try:
        stopped = down(home, purge=arguments.purge)
    except PoolError as error:
        raise CommandError(str(error)) from error
    if screen.as_json:
        screen.json(
            {
                "home": str(home),
                "was_running": stopped.was_running,
                "forced": stopped.forced,
                "swept": stopped.swept,
            }
        )
        return 0
    if stopped.was_running:
        screen.say(f"The pool in {home} is down{' and deleted' if arguments.purge else ''}.")
    else:
        screen.say(f"No pool was up in {home}{'; its directory is deleted' if arguments.purge else ''}.")
    if stopped.forced:
        screen.note("The master did not answer and was killed.")
    if stopped.swept:
        screen.note(f"{counted(stopped.swept, 'process', 'processes')} left behind had to be ended.")
    return 0
