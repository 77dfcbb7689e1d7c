"""`kettle log archive`: old pieces of the log into files, and whether the files are right."""

import argparse
import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from kettle.archive import Progress, Report, ShardReport, Verification, archive, verify
from kettle.client import home_directory
from kettle.eventsourcing.log import LogError
from kettle.terminal.quantities import counted, size
from kettle_services.cli.errors import CommandError
from kettle_services.cli.log.databases import Places, archive_directory, places
from kettle_services.cli.output.progress_bars import bars
from kettle_services.cli.output.screen import Screen


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Archive, or verify."""
    home: Path = arguments.home or home_directory()
    directory: Path = arguments.directory or archive_directory(home)
    try:
        return asyncio.run(_run(home, directory, arguments, screen))
    except LogError as error:
        raise CommandError(str(error)) from error


async def _run(home: Path, directory: Path, arguments: argparse.Namespace, screen: Screen) -> int:
    async with places(home, patience=arguments.patience) as found:
        if arguments.verify:
            return _verified(
                [await _verify(found, directory, screen, n) for n in range(len(found.logs))], screen
            )
        found.named(arguments.shard)
        return _archived(await _archive(found, directory, arguments, screen), directory, screen)


async def _archive(
    found: Places, directory: Path, arguments: argparse.Namespace, screen: Screen
) -> list[Report]:
    limit = datetime.now(UTC) - timedelta(seconds=arguments.older_than)
    with bars(screen, "events") as bar:

        def told(progress: Progress) -> None:
            bar(f"{progress.shard} piece {progress.piece}", progress.events, progress.total)

        return [
            await archive(
                log.database,
                directory,
                older_than=limit,
                shards=arguments.shard or None,
                dry_run=arguments.dry_run,
                progress=told,
            )
            for log in found.logs
        ]


async def _verify(found: Places, directory: Path, screen: Screen, number: int) -> Verification:
    with bars(screen, "bytes") as bar:
        return await verify(
            found.logs[number].database, directory, progress=lambda done, total: bar("hashing", done, total)
        )


def _archived(reports: list[Report], directory: Path, screen: Screen) -> int:
    if screen.as_json:
        screen.json(reports if len(reports) > 1 else reports[0])
        return 0
    shards = [shard for report in reports for shard in report.shards]
    screen.table(
        ("SHARD", "PIECES", "EVENTS", "BYTES", "UP TO FRAME", "WHAT STAYS"),
        [_row(shard) for shard in shards],
        right=frozenset({"PIECES", "EVENTS", "BYTES", "UP TO FRAME"}),
        whole=True,
    )
    events = sum(report.events for report in reports)
    pieces = sum(len(shard.archived) for shard in shards)
    verb = "would be moved" if reports[0].dry_run else "moved"
    screen.say(f"{counted(events, 'event')} in {counted(pieces, 'piece')} {verb} to {directory}.")
    return 0


def _row(shard: ShardReport) -> tuple[str, int, int, str, str, str]:
    archived = shard.archived
    return (
        shard.shard,
        len(archived),
        sum(piece.last_position - piece.first_position + 1 for piece in archived),
        size(sum(piece.bytes for piece in archived) / 1024),
        str(archived[-1].last_frame) if archived else "-",
        f"{shard.kept}: {shard.because}",
    )


def _verified(found: list[Verification], screen: Screen) -> int:
    sound = all(one.sound for one in found)
    if screen.as_json:
        screen.json([msgspec.to_builtins(one) for one in found] if len(found) > 1 else found[0])
        return 0 if sound else 1
    for one in found:
        for problem in one.problems:
            screen.say(screen.paint(f"{problem.shard}, {problem.file}: {problem.sentence}", "bad"))
    pieces, files = sum(one.pieces for one in found), sum(one.files for one in found)
    verdict = screen.paint("sound", "good") if sound else screen.paint("DAMAGED", "bad")
    total = size(sum(one.bytes for one in found) / 1024)
    screen.say(f"The archive is {verdict}: {counted(pieces, 'piece')} in {counted(files, 'file')}, {total}.")
    return 0 if sound else 1
