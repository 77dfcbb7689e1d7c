"""
`kettle log`: the event log itself.
"""

import argparse
import asyncio
import importlib
import os
from typing import Any, Final

from kettle.cli.errors import CommandError
from kettle.cli.options import json_option, pool_options
from kettle.cli.screen import Screen
from kettle.client import PoolFile, home_directory

HELP: Final = """\
Audit the event log: positions and versions without gaps, and log, bus and projections agreeing with each other.  It
only reads, so it may run beside a living pool.

The database is the pool's own, or KETTLE_DATABASE_URL.

examples:
  kettle log check                  exit status 1 if anything is wrong
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """
    What the command takes.
    """
    parser.add_argument("what", choices=("check",), metavar="check", help="audit the log")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """
    Audit, and print what is wrong.
    """
    home = arguments.home or home_directory()
    pool = PoolFile.load(home)
    database = os.environ.get("KETTLE_DATABASE_URL") or pool.database_url
    if not database:
        raise CommandError(f"{home}/pool.json does not say where the database is; set KETTLE_DATABASE_URL")
    audit = importlib.import_module("kettle.storage.audit")
    findings = asyncio.run(_check(audit, database, pool, arguments.patience))
    if screen.as_json:
        screen.json({"findings": findings})
    else:
        for finding in findings:
            screen.say(finding)
        screen.say("The log is clean." if not findings else f"{len(findings)} findings.")
    return 1 if findings else 0


async def _check(audit: Any, database: str, pool: PoolFile, patience: float) -> list[str]:
    from kettle.bus.nats import NatsBus
    from kettle.wire.identity import user
    from kettle.wire.subjects import Subjects

    subjects = Subjects(pool.pool)
    async with NatsBus.connect(
        pool.nats_url,
        subjects=subjects,
        identity=user(pool.user),
        credentials=pool.credentials,
        name="log-check",
        patience=patience,
    ) as bus:
        return [str(finding) for finding in await audit.check(database, bus, subjects)]
