"""Old pieces of the log go to files, and the log is read as if they had not."""

import datetime as dt
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kettle.archive import ArchiveError, FileArchives, Progress, archive
from kettle.archive.manifest import read_manifest
from kettle.archive.parquet import arrow
from kettle.eventsourcing.log import LogError
from kettle.storage import PgLog
from kettle.testing.servers.embedded import fresh_database
from kettle_wire.frames import encode

from .conftest import LATER, NOON_US, SMALL, frames, put, see, tables

SIZES = [1, 5, 70, 3, 200, 2, 2, 2, 60, 64, 64, 1, 1, 30]
"""Frames smaller and larger than a piece, and some that end where a piece ends."""

ALL = frames("s", SIZES)
EVENTS = sum(SIZES)
PIECES = EVENTS // SMALL


async def archived(log: PgLog, directory: Path) -> None:
    await put(log, ALL)
    await archive(log.database, directory, older_than=LATER)


async def test_what_was_archived_is_read_back_byte_for_byte(log: PgLog, directory: Path) -> None:
    """
    From any frame up to any other: also frames that lie across pieces in files, or half in a file and half in the table.
    """
    await archived(log, directory)
    assert [f"event_1_{PIECES}", f"event_1_{PIECES + 1}"] == await tables(log)
    assert [encode(f) for f in ALL] == [encode(f) async for f in log.read("s")]
    for after, until in itertools.combinations(range(len(ALL) + 1), 2):
        expected = [encode(f) for f in ALL[after:until]]
        assert expected == [encode(f) async for f in log.read("s", after=after, until=until)], (after, until)


async def test_each_stream_is_read_back(log: PgLog, directory: Path) -> None:
    """A stream that begins in the archive and ends in the table is whole, in the order of its versions."""
    await put(log, ALL)
    names = [f"job/{i}.0" for i in range(10)]
    before = {name: await log.stream("s", name) for name in names}
    await archive(log.database, directory, older_than=LATER)
    assert before == {name: await log.stream("s", name) for name in names}
    assert EVENTS == sum(len(entries) for entries in before.values())
    assert [] == await log.stream("s", "job/99.0")


async def test_the_report_says_what_went_and_what_stays(log: PgLog, directory: Path) -> None:
    """The newest piece stays however old it is, and a second run finds nothing to do."""
    await put(log, ALL)
    seen: list[Progress] = []
    report = await archive(log.database, directory, older_than=LATER, progress=seen.append)
    (shard,) = report.shards
    assert list(range(PIECES)) == [piece.piece for piece in shard.archived]
    assert [(1, SMALL - 1), (SMALL, 2 * SMALL - 1)] == [
        (piece.first_position, piece.last_position) for piece in shard.archived[:2]
    ]
    assert ("newest", PIECES * SMALL - 1) == (shard.kept, report.events)
    assert [(piece, SMALL - (not piece)) for piece in range(PIECES)] == [(p.piece, p.events) for p in seen]
    again = await archive(log.database, directory, older_than=LATER)
    assert ([], "newest") == (again.shards[0].archived, again.shards[0].kept)


async def test_the_newest_piece_stays_although_it_is_full(log: PgLog, directory: Path) -> None:
    """The next owner of the shard reads its last frame."""
    await put(log, frames("s", [SMALL - 1]))
    report = await archive(log.database, directory, older_than=LATER)
    assert ("newest", []) == (report.shards[0].kept, report.shards[0].archived)


async def test_a_dry_run_does_nothing(log: PgLog, directory: Path) -> None:
    """It reports the same pieces as the run that follows."""
    await put(log, ALL)
    before = await tables(log)
    dry = await archive(log.database, directory, older_than=LATER, dry_run=True)
    assert before == await tables(log)
    assert not directory.exists()
    real = await archive(log.database, directory, older_than=LATER)
    assert [(p.piece, p.last_frame, p.last_at) for p in real.shards[0].archived] == [
        (p.piece, p.last_frame, p.last_at) for p in dry.shards[0].archived
    ]


async def test_what_is_young_stays(log: PgLog, directory: Path) -> None:
    """A piece goes only if every event in it is older than the limit; pieces go from the oldest on."""
    await put(log, ALL)
    fifth = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=NOON_US + 5_000_000)
    report = await archive(log.database, directory, older_than=fifth)
    assert ("young", [0]) == (report.shards[0].kept, [p.piece for p in report.shards[0].archived])


async def test_a_clock_that_was_set_back_does_not_make_events_old(log: PgLog, directory: Path) -> None:
    """The latest time in a piece counts, not that of its last event."""
    back = frames("s", [10] * 20, step_us=-1_000_000)
    await put(log, back)
    limit = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=NOON_US - 3_000_000)
    report = await archive(log.database, directory, older_than=limit)
    assert ("young", []) == (report.shards[0].kept, report.shards[0].archived)


async def test_a_projection_that_is_behind_holds_the_log(log: PgLog, directory: Path) -> None:
    """
    The slowest cursor is named, with the reason why it stopped, so that nobody wonders why the disk fills.
    """
    await put(log, ALL)
    await see(log, "s", 14, projection="fast")
    await see(log, "s", 4, projection="dead")
    await log.database.run(
        lambda c: c.execute("UPDATE log.projection SET error = 'frame 5: cannot apply' WHERE name = 'dead'")
    )
    report = await archive(log.database, directory, older_than=LATER)
    (shard,) = report.shards
    assert ("needed", [0]) == (shard.kept, [p.piece for p in shard.archived])
    assert shard.slowest is not None
    assert ("dead", 1, 4, 10, "frame 5: cannot apply") == (
        shard.slowest.projection,
        shard.slowest.version,
        shard.slowest.frame,
        shard.slowest.behind,
        shard.slowest.error,
    )
    assert "dead" in shard.because
    await see(log, "s", 14, projection="dead")
    report = await archive(log.database, directory, older_than=LATER)
    assert list(range(1, PIECES)) == [p.piece for p in report.shards[0].archived]


async def test_a_cursor_in_another_database_counts(
    dsn: str, postgres: str, log: PgLog, directory: Path
) -> None:
    """An accounting may follow the shards of several databases."""
    await put(log, ALL)
    await see(log, "s", 14)
    async with fresh_database(postgres) as url, PgLog.connect(url) as accounting:
        await see(accounting, "s", 4, projection="history")
        report = await archive(log.database, directory, older_than=LATER, cursors=[accounting.database])
    (shard,) = report.shards
    assert shard.slowest is not None
    assert ("needed", [0], "history") == (
        shard.kept,
        [p.piece for p in shard.archived],
        shard.slowest.projection,
    )


async def test_a_working_set_that_is_behind_holds_the_log(log: PgLog, directory: Path) -> None:
    """It is a projection like the others, once it has been saved."""
    await put(log, ALL)
    await log.database.run(
        lambda c: c.execute("UPDATE log.projection SET frame = 1 WHERE name = 'working_set'")
    )
    report = await archive(log.database, directory, older_than=LATER)
    assert ("needed", []) == (report.shards[0].kept, report.shards[0].archived)


async def test_shards_have_archives_of_their_own(log: PgLog, directory: Path) -> None:
    """Only those that are named go, and any name is a safe name of a directory."""
    odd = "../ä b"
    await log.take(odd, owner="me")
    others = frames(odd, SIZES)
    await put(log, ALL)
    await put(log, others)
    report = await archive(log.database, directory, older_than=LATER, shards=[odd])
    assert [odd] == [shard.shard for shard in report.shards]
    assert [directory] == list(directory.parent.glob("*/"))
    assert [encode(f) for f in others] == [encode(f) async for f in log.read(odd)]
    assert [encode(f) for f in ALL] == [encode(f) async for f in log.read("s")]


async def test_the_files_can_be_read_by_anybody(log: PgLog, directory: Path) -> None:
    """The columns are those of the table, and the manifest says which file has what."""
    await archived(log, directory)
    manifest = json.loads((directory / "s" / "manifest.json").read_text())
    assert ("kettle.archive/1", "s", PIECES) == (
        manifest["format"],
        manifest["shard"],
        len(manifest["pieces"]),
    )
    table = arrow("pyarrow.parquet").read_table(directory / manifest["pieces"][1]["events"]["path"])
    rows = await log.database.run(
        lambda c: c.fetch(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = 'log' AND table_name = 'event' ORDER BY ordinal_position"
        )
    )
    assert [row["column_name"] for row in rows] == table.column_names
    assert list(range(SMALL, 2 * SMALL)) == table.column("pos").to_pylist()
    assert {"s"} == set(table.column("shard").to_pylist())


async def test_a_reader_that_was_not_told_of_the_archive_refuses(
    dsn: str, log: PgLog, directory: Path
) -> None:
    """It does not take the rest of the log for the log."""
    await archived(log, directory)
    async with PgLog.connect(dsn) as blind:
        with pytest.raises(LogError, match=r"piece 0 of s .*archive_directory"):
            [f async for f in blind.read("s")]
        with pytest.raises(LogError, match="archive_directory"):
            await blind.stream("s", "job/1.0")
        assert [14] == [f.number async for f in blind.read("s", after=13)]


async def test_an_archive_can_be_moved(dsn: str, log: PgLog, directory: Path, tmp_path: Path) -> None:
    """What is recorded is relative to the archive directory."""
    await archived(log, directory)
    moved = directory.rename(tmp_path / "elsewhere")
    async with PgLog.connect(dsn, archives=FileArchives(moved)) as other:
        assert [encode(f) for f in ALL] == [encode(f) async for f in other.read("s")]


async def test_the_archive_of_another_database_is_refused(dsn: str, log: PgLog, directory: Path) -> None:
    """Nothing of it is replaced, and nothing of ours is dropped."""
    await archived(log, directory)
    before = {path: path.read_bytes() for path in directory.rglob("*.*")}
    await log.database.run(lambda c: c.execute("DROP SCHEMA log CASCADE"))
    async with PgLog.connect(dsn, piece_events=SMALL) as another:
        await another.take("s", owner="me")
        await put(another, frames("s", SIZES, step_us=2))
        kept = await tables(another)
        with pytest.raises(ArchiveError, match="another database"):
            await archive(another.database, directory, older_than=LATER)
        assert kept == await tables(another)
    assert before == {path: path.read_bytes() for path in directory.rglob("*.*")}


async def test_a_log_with_a_hole_is_not_archived_and_not_read(log: PgLog, directory: Path) -> None:
    """Rows that were deleted by hand are noticed, because positions have no gaps."""
    await put(log, ALL)
    await log.database.run(lambda c: c.execute("DELETE FROM log.event WHERE pos = 70"))
    with pytest.raises(ArchiveError, match="63 of the 64 events of piece 1"):
        await archive(log.database, directory, older_than=LATER)
    assert [0] == [piece.piece for piece in read_manifest(directory, "s").pieces]
    with pytest.raises(LogError, match="without a gap"):
        [f async for f in log.read("s")]


def test_pyarrow_is_imported_when_a_file_is_touched_and_not_before() -> None:
    """Services that read no archive stay light."""
    program = "import kettle.archive, sys; print([m for m in sys.modules if m.startswith('pyarrow')])"
    roots = [str(Path(__file__).parents[3] / root) for root in ("libs", "schemas", "services")]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(roots)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "[]\n" == done.stdout


async def test_a_fold_from_the_first_frame_is_the_same(log: PgLog, directory: Path) -> None:
    """
    As a rebuild does it: state by stream and the number of the last frame, with the frames that came since.
    """
    await put(log, ALL[:-1])
    await archive(log.database, directory, older_than=LATER)
    await put(log, ALL[-1:])
    state: dict[str, int] = {}
    last = 0
    async for frame in log.read("s"):
        for entry in frame.entries:
            assert state.get(entry.stream, 0) + 1 == entry.version
            state[entry.stream] = entry.version
        last = frame.number
    assert (len(ALL), EVENTS) == (last, sum(state.values()))
