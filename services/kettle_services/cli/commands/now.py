"""`kettle now`."""

import argparse
from typing import Final

import msgspec

from kettle.client import ClientError, job_id
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Run an idle job of yours at once, in the place of running jobs of yours.  These are asked to end, go back into the queue
and run again later; the idle job gets their slot without a negotiation, or what they have together, if they are dynamic
slots of one machine's slot.  If the machine refuses the job, nothing happens and it says why.

examples:
  kettle now 12.3 --instead-of 11.0
  kettle now 12.3 --instead-of 11.0 11.1 11.2       for a job that needs more than one slot
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("job", metavar="JOB", help="the idle job, CLUSTER.PROC as in 12.3")
    parser.add_argument(
        "--instead-of", nargs="+", required=True, metavar="JOB", help="the running jobs that are preempted"
    )
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ask for it."""
    try:
        job, victims = job_id(arguments.job), [job_id(each) for each in arguments.instead_of]
    except ClientError as error:
        raise UsageError(str(error)) from error
    told = with_pool(arguments, lambda pool: pool.run_now(job, victims))
    if screen.as_json:
        screen.json(msgspec.to_builtins(told))
    else:
        names = ", ".join(map(str, victims))
        screen.say(f"Job {job} runs as soon as {names} {'is' if len(victims) == 1 else 'are'} gone.")
    return 0
