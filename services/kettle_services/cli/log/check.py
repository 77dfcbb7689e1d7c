"""`kettle log check`: the audit, as a table."""

import argparse
import asyncio
from pathlib import Path
from typing import Final

from kettle.audit import AuditError, AuditReport
from kettle.client import PoolFile, home_directory
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import CommandError
from kettle_services.cli.log.audit import audit
from kettle_services.cli.output.progress_bars import bars
from kettle_services.cli.output.screen import Screen
from kettle_wire.subjects import Subjects

_REPAIRS: Final = {
    "bus": "The truth is in the database: delete the stream {stream}, and the shard's owner fills it again.",
    "working_set": "It is derived: kettle log rebuild working_set --shard {shard} has it made again from the log.",
    "usage": "It is derived: kettle log rebuild jobs makes it again from the log.",
}
_PROJECTION: Final = "projection."


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Audit, and print what is wrong."""
    home: Path = arguments.home or home_directory()
    try:
        with bars(screen, "frames") as bar:
            report = asyncio.run(
                audit(
                    home,
                    full=not arguments.recent,
                    shards=arguments.shard,
                    sample=arguments.sample,
                    seed=arguments.seed,
                    patience=arguments.patience,
                    told=bar,
                )
            )
    except AuditError as error:
        raise CommandError(str(error)) from error
    if screen.as_json:
        screen.json(report)
    else:
        _print(report, screen, Subjects(PoolFile.load(home).pool))
    return 0 if report.clean else 1


def _print(report: AuditReport, screen: Screen, subjects: Subjects) -> None:
    shown = [check for check in report.checks if check.examined or check.problems]
    screen.table(
        ("check", "examined", "problems", "claim"),
        [(check.name, check.examined, check.problems, check.claim) for check in shown],
        styles=["bad" if check.problems else "" for check in shown],
        right=frozenset({"examined", "problems"}),
    )
    for check in report.checks:
        for first in check.firsts:
            screen.say(f"{check.name}: first in {first.shard} at position {first.position}: {first.sentence}")
            if repair := repair_of(check.name, first.shard, subjects):
                screen.say(f"    {repair}")
        for skipped in check.skipped:
            screen.say(f"{check.name}: not compared in {skipped}")
    shards = counted(len(report.shards), "shard")
    frames = counted(sum(shard.frames for shard in report.shards), "frame")
    events = counted(sum(shard.events for shard in report.shards), "event")
    verdict = screen.paint("clean", "good") if report.clean else screen.paint("NOT clean", "bad")
    screen.say(f"The log is {verdict}: {events} in {frames} of {shards}.")


def repair_of(check: str, shard: str, subjects: Subjects) -> str:
    """What to do about a problem that a check has found; empty: nothing can be done by command."""
    if check.startswith(_PROJECTION):
        name = check.removeprefix(_PROJECTION)
        return f"It is derived: kettle log rebuild {name} makes it again from the log."
    return _REPAIRS.get(check, "").format(shard=shard, stream=subjects.event_stream(shard))
