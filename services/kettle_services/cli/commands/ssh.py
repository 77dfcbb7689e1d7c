"""`kettle ssh`."""

import argparse
import sys
from typing import Final

from kettle.client import Client, job_id
from kettle.client.jobs.side_program import SHELL, run_beside
from kettle_services.cli.options import pool_options, with_pool
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
A shell beside a job: on its machine, as its user, in its directory, environment, control group and container.  With a
command, that is given to a shell there, as ssh does.  No ssh is needed, and no connection to the machine.

examples:
  kettle ssh 12.3
  kettle ssh 12.3 'ls -l; tail -3 *.log'
  kettle ssh 12.3 < commands.sh
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("-t", "--tty", action="store_true", help="give a command a terminal")
    parser.add_argument("-n", "--no-input", action="store_true", help="give it no input")
    pool_options(parser)
    parser.add_argument("job", metavar="ID", help="CLUSTER.PROC, as in 12.3")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="for the shell (default: what you type)"
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    words: list[str] = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    tty = arguments.tty or (not words and sys.stdin.isatty())
    script = " ".join(words) if words else SHELL

    async def work(pool: Client) -> int:
        visit = await pool.visit(job_id(arguments.job))
        if tty and not words:
            screen.note(f"Beside job {visit.job} on {visit.slot}.")
        return await run_beside(
            visit, ["sh", "-c", script], screen.pass_on, tty=tty, listens=not arguments.no_input
        )

    return with_pool(arguments, work)
