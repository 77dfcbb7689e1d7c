"""
`kettle log`: the event log itself.
"""

import argparse
import asyncio
from typing import Final

from kettle.cli.errors import CommandError
from kettle.cli.options import json_option, pool_options
from kettle.cli.screen import Screen
from kettle.cli.spans import counted
from kettle.client import home_directory

HELP: Final = """\
Audit the event log: positions and versions without gaps, attempts that do not overlap, and the log, the bus and everything
derived from the log agreeing with each other.  It only reads, so it may run beside a living pool.

The database is the pool's own, or KETTLE_DATABASE_URL.

examples:
  kettle log check                  exit status 1 if anything is wrong
  kettle log check --recent         only the newest frames of each shard, without the folds
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """
    What the command takes.
    """
    parser.add_argument("what", choices=("check",), metavar="check", help="audit the log")
    parser.add_argument("--recent", action="store_true", help="look at the newest frames only")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """
    Audit, and print what is wrong.
    """
    from kettle.audit import AuditError
    from kettle.cli.auditing import audit

    home = arguments.home or home_directory()
    try:
        report = asyncio.run(audit(home, full=not arguments.recent, patience=arguments.patience))
    except AuditError as error:
        raise CommandError(str(error)) from error
    if screen.as_json:
        screen.json(report)
        return 0 if report.clean else 1
    rows = [
        (check.name, check.examined, check.problems, check.claim)
        for check in report.checks
        if check.examined or check.problems
    ]
    styles = ["bad" if row[2] else "" for row in rows]
    titles = ("check", "examined", "problems", "claim")
    screen.table(titles, rows, styles=styles, right=frozenset({"examined", "problems"}))
    for check in report.checks:
        if (first := check.first) is not None:
            screen.say(f"{check.name}: first in {first.shard} at position {first.position}: {first.sentence}")
    shards = counted(len(report.shards), "shard")
    frames = counted(sum(shard.frames for shard in report.shards), "frame")
    events = counted(sum(shard.events for shard in report.shards), "event")
    verdict = screen.paint("clean", "good") if report.clean else screen.paint("NOT clean", "bad")
    screen.say(f"The log is {verdict}: {events} in {frames} of {shards}.")
    return 0 if report.clean else 1
