"""`kettle exec`."""

import argparse
from typing import Final

from kettle.client import Client, job_id
from kettle.client.jobs.side_program import run_beside
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import pool_options, with_pool
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Run a program beside a job: on its machine, as its user, in its directory, environment, control group and container.
Input, output and errors are those of the command, its exit status is the program's.  It ends with the job at the latest.

examples:
  kettle exec 12.3 ps x
  kettle exec 12.3 -- sh -c 'tail -3 *.log'
  kettle exec 12.3 tar cf - results > results.tar
  kettle exec --tty 12.3 top
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("-t", "--tty", action="store_true", help="give it a terminal")
    parser.add_argument("-n", "--no-input", action="store_true", help="give it no input")
    pool_options(parser)
    parser.add_argument("job", metavar="ID", help="CLUSTER.PROC, as in 12.3")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="the program and its arguments"
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    command: list[str] = arguments.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise UsageError("which program?  For a shell there is: kettle ssh ID")

    async def work(pool: Client) -> int:
        visit = await pool.visit(job_id(arguments.job))
        return await run_beside(
            visit, command, screen.pass_on, tty=arguments.tty, listens=not arguments.no_input
        )

    return with_pool(arguments, work)
