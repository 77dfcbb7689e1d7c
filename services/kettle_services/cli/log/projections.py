"""`kettle log projections` and `kettle log rebuild`: the progress of the tables, and how they are rebuilt."""

import argparse
import asyncio
from pathlib import Path
from typing import Final

from kettle.client import home_directory
from kettle.eventsourcing.log import LogError
from kettle.projections import PROJECTIONS, Lag, Rebuilt, lags, rebuild
from kettle.terminal.nearest_names import nearest
from kettle.terminal.quantities import counted, duration
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.log.databases import ShardLocation, places
from kettle_services.cli.log.folds import WORKING_SETS
from kettle_services.cli.output.progress_bars import bars
from kettle_services.cli.output.screen import Screen

WORKING_SET: Final = "working_set"

_FORGET_ROWS: Final = "DELETE FROM log.working_set WHERE shard = (SELECT id FROM log.shard WHERE name = $1)"
_FORGET_CURSOR: Final = "UPDATE log.projection SET frame = 0 WHERE name = 'working_set' AND shard = $1"


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show the projections, or rebuild one."""
    home: Path = arguments.home or home_directory()
    try:
        if arguments.what == "projections":
            return asyncio.run(_tell(home, arguments, screen))
        return asyncio.run(_rebuild(home, arguments, screen))
    except LogError as error:
        raise CommandError(str(error)) from error


async def _tell(home: Path, arguments: argparse.Namespace, screen: Screen) -> int:
    async with places(home, patience=arguments.patience) as found:
        told = [lag for lag in await lags(found.logs[0].database, found.logs) if _kept(lag)]
    stopped = [lag for lag in told if lag.error is not None]
    if screen.as_json:
        screen.json(told)
    else:
        _print(told, screen)
    return 1 if stopped else 0


def _kept(lag: Lag) -> bool:
    """Every shard has a place for a working set; only those of some kinds are ever filled."""
    return lag.projection != WORKING_SET or lag.shard.partition(".")[0] in WORKING_SETS


def _print(told: list[Lag], screen: Screen) -> None:
    rows = [
        (
            lag.projection,
            lag.shard,
            "-" if lag.version is None else lag.version,
            lag.frame,
            lag.frames,
            duration(lag.seconds) if lag.frames else "-",
            _state(lag),
        )
        for lag in told
    ]
    titles = ("PROJECTION", "SHARD", "VERSION", "FRAME", "BEHIND", "FOR", "STATE")
    styles = ["bad" if lag.error is not None else "" for lag in told]
    screen.table(titles, rows, styles=styles, right=frozenset(titles[2:6]))
    for lag in told:
        if lag.error is not None:
            screen.say()
            screen.say(f"{lag.projection} stopped in {lag.shard} {lag.error}")
            screen.say(
                "    It goes on by itself once the cause is repaired; where its tables are the cause: "
                f"kettle log rebuild {lag.projection}"
            )


def _state(lag: Lag) -> str:
    if lag.error is not None:
        return "STOPPED"
    if lag.version is None:
        return "no tables yet"
    return "follows" if lag.frames else "up to date"


async def _rebuild(home: Path, arguments: argparse.Namespace, screen: Screen) -> int:
    name: str = arguments.name
    if name != WORKING_SET and name not in PROJECTIONS:
        known = [*PROJECTIONS, WORKING_SET]
        close = nearest(name, known)
        hint = f"did you mean {close}?" if close else f"there are: {', '.join(known)}"
        raise UsageError(f"there is no projection '{name}'; {hint}")
    if (name == WORKING_SET) != bool(arguments.shard):
        raise UsageError(
            "a working set is one shard's: kettle log rebuild working_set --shard SHARD; "
            "other projections are rebuilt for all shards at once"
        )
    async with places(home, patience=arguments.patience) as found:
        if name == WORKING_SET:
            (place,) = found.named([arguments.shard])
            await forget_working_set(place)
            screen.say(
                f"The working set of {place.shard} is empty. Its owner stops at its next save, and the one that "
                f"starts rebuilds it from {counted(place.tenure.frame, 'frame')}."
            )
            return 0
        with bars(screen, "frames") as bar:
            done = await rebuild(
                PROJECTIONS[name](),
                found.logs[0].database,
                found.logs,
                report=lambda frames, total: bar(name, frames, total),
            )
    if screen.as_json:
        screen.json(done)
    else:
        screen.say(_said(done))
    return 0


async def forget_working_set(place: ShardLocation) -> None:
    """
    Empty the working set of a shard: the owner of the shard is fenced when it saves, and the next owner folds the log.
    """
    assert place.database is not None, "what is in files alone has no owner"
    async with place.database.connection() as connection, connection.transaction():
        await connection.execute(_FORGET_CURSOR, place.shard)
        await connection.execute(_FORGET_ROWS, place.shard)


def _said(done: Rebuilt) -> str:
    speed = f", {done.events / done.seconds:,.0f} a second" if done.seconds else ""
    return (
        f"{done.projection} is rebuilt as version {done.version}: {counted(done.events, 'event')} in "
        f"{counted(done.frames, 'frame')} of {counted(done.shards, 'shard')} in {duration(done.seconds)}{speed}."
    )
