"""`kettle log import`: shards that are in files alone, brought into the database."""

import argparse
import asyncio
from pathlib import Path

import msgspec

from kettle.archive import archived_frames, archived_shards
from kettle.client import home_directory
from kettle.eventsourcing.log import IMPORTED, Log, LogError
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import CommandError
from kettle_services.cli.log.databases import places
from kettle_services.cli.output.progress_bars import Bar, bars
from kettle_services.cli.output.screen import Screen
from kettle_wire.frames import Frame


class ImportedShard(msgspec.Struct, frozen=True):
    """What was brought of one shard."""

    shard: str
    frames: int
    events: int


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Import, and say how much it was."""
    home: Path = arguments.home or home_directory()

    async def bring() -> list[ImportedShard]:
        async with places(home, patience=arguments.patience) as found:
            with bars(screen, "frames") as bar:
                return [
                    await imported(found.logs[0], arguments.directory, shard, bar)
                    for shard in archived_shards(arguments.directory)
                ]

    try:
        done = asyncio.run(bring())
    except LogError as error:
        raise CommandError(str(error)) from error
    if screen.as_json:
        screen.json(done)
        return 0
    for one in done:
        screen.say(f"{one.shard}: {counted(one.events, 'event')} in {counted(one.frames, 'frame')}.")
    return 0


async def imported(log: Log, directory: Path, shard: str, bar: Bar) -> ImportedShard:
    """
    Append the frames of a shard that the log does not have yet.

    Raises:
        LogError: the log has a shard of that name that was not imported, or other events; a file is damaged.
    """
    known = await log.tenure(shard)
    if known is not None and known.owner != IMPORTED:
        raise LogError(f"the log has a shard {shard} already, of {known.owner}: import into another pool")
    tenure = await log.take(shard, owner=IMPORTED)
    frames = events = 0
    async for frame in archived_frames(directory, shard):
        if frame.number <= tenure.frame:
            if frame.number == tenure.frame:
                await _compare(log, frame)
            continue
        await log.append(msgspec.structs.replace(frame, epoch=tenure.epoch))
        frames, events = frames + 1, events + len(frame.entries)
        bar(shard, frame.number, 0)
    return ImportedShard(shard, frames, events)


async def _compare(log: Log, frame: Frame) -> None:
    """What an earlier import brought last has to be of the same files."""
    async for known in log.read(frame.shard, after=frame.number - 1, until=frame.number):
        if known.entries != frame.entries or known.at != frame.at:
            raise LogError(
                f"{frame.shard}: frame {frame.number} in the log is not that of the files: something else was imported"
            )
