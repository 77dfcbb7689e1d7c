"""
`kettle history`: jobs that have left the queue.
"""

import argparse
from typing import Final

from kettle.cli.commands.q import show_long
from kettle.cli.errors import UsageError
from kettle.cli.jobs import HISTORY_TITLES, RIGHT, history_row
from kettle.cli.options import at_least, json_option, pool_options, with_pool
from kettle.cli.screen import Screen, plain
from kettle.cli.spans import counted
from kettle.client import ClientError, select
from kettle.client.progress import status_of

HELP: Final = """\
Jobs that have left the queue, the newest first: completed (C) or removed (X), with their exit codes.

examples:
  kettle history                     the last hundred jobs
  kettle history 12                  cluster 12
  kettle history --owner ada --limit 10
  kettle history 12.3 --long         everything that is known of a job
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """
    What the command takes.
    """
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="show only CLUSTER or CLUSTER.PROC, as in 12 or 12.3"
    )
    parser.add_argument(
        "--owner",
        action="append",
        default=[],
        metavar="NAME",
        help="the jobs of this person; may be repeated",
    )
    parser.add_argument(
        "--limit", type=at_least(1), default=100, metavar="N", help="at most so many jobs (default: 100)"
    )
    parser.add_argument("--long", action="store_true", help="whole job ads")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """
    Show the jobs; finding none is no failure.
    """
    try:
        chosen = select(*arguments.ids, owners=arguments.owner)
    except ClientError as error:
        raise UsageError(str(error)) from error
    ads = with_pool(arguments, lambda pool: pool.history(chosen, limit=arguments.limit))
    if screen.as_json:
        screen.json([plain(ad) for ad in ads])
    elif arguments.long:
        show_long(ads, screen)
    else:
        styles = [status_of(ad) for ad in ads]
        screen.table(HISTORY_TITLES, [history_row(ad) for ad in ads], styles=styles, right=RIGHT)
        if len(ads) == arguments.limit:
            screen.note(f"This is only the newest {counted(arguments.limit, 'job')}; more with --limit.")
    return 0
