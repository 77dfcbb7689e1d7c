"""
An archiver works beside owners that append, readers in the middle of their reading, and other archivers.
"""

import asyncio
import datetime as dt
from pathlib import Path

import pytest

from kettle.archive import ArchiverBusyError, FileArchives, archive, keep_archived, verify
from kettle.storage import Database, PgLog
from kettle.testing.patience import PATIENCE_S
from kettle_wire.frames import encode

from .conftest import LATER, SMALL, frames, put, tables


async def test_readers_in_the_middle_of_the_log_neither_skip_nor_fail(
    dsn: str, log: PgLog, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces in front of them and behind them go while they have read half a page, and again and again."""
    monkeypatch.setattr("kettle.storage.event_reader.PAGE_ROWS", 1000)
    many = frames("s", [29] * 150)
    await put(log, many)
    expected = [encode(f) for f in many]
    begins = (0, 1, 7, 33, 70, 100)
    async with PgLog.connect(dsn, archives=FileArchives(directory)) as other:
        readers = [other.read("s", after=after) for after in begins]
        got = [[encode(await anext(reader))] for reader in readers]
        for number in (60, 80, 110, 149):
            limit = dt.datetime.fromtimestamp(many[number].at / 1e6, dt.UTC)
            assert (await archive(log.database, directory, older_than=limit)).events > 0
            for reader, frames_got in zip(readers, got, strict=True):
                frames_got += [encode(frame) for _ in range(9) if (frame := await anext(reader, None))]
        for reader, frames_got in zip(readers, got, strict=True):
            frames_got += [encode(frame) async for frame in reader]
    assert [expected[after:] for after in begins] == got


async def test_readers_that_begin_again_and_again_see_the_whole_log(
    dsn: str, log: PgLog, directory: Path
) -> None:
    """At every moment while pieces go, from different frames on, and also the streams."""
    many = frames("s", [29] * 100)
    await put(log, many)
    expected = [encode(f) for f in many]
    stream = await log.stream("s", "job/3.0")
    async with PgLog.connect(dsn, archives=FileArchives(directory)) as other:
        archiver = asyncio.create_task(archive(log.database, directory, older_than=LATER))
        rounds = 0
        while rounds < 4 or not archiver.done():
            after = rounds * 37 % 100
            assert expected[after:] == [encode(f) async for f in other.read("s", after=after)]
            assert stream == await other.stream("s", "job/3.0")
            rounds += 1
        await archiver


async def test_appends_go_on_meanwhile(dsn: str, log: PgLog, directory: Path) -> None:
    """The owner is not fenced, makes its pieces, and its events are there, once."""
    old = frames("s", [29] * 120)
    await put(log, old[:60])
    archiver = asyncio.create_task(archive(log.database, directory, older_than=LATER))
    for frame in old[60:]:
        await log.append(frame)
    report = await archiver
    assert len(report.shards[0].archived) >= 29 * 60 // SMALL
    await archive(log.database, directory, older_than=LATER)
    assert [encode(f) for f in old] == [encode(f) async for f in log.read("s")]


async def test_a_long_transaction_holds_a_piece_and_nobody_else(
    dsn: str, log: PgLog, directory: Path
) -> None:
    """The archiver gives up for now, appends go on, and what the transaction sees stays complete."""
    some = frames("s", [29] * 40)
    await put(log, some[:20])
    async with Database.connect(dsn) as database, database.connection() as reader, reader.transaction():
        await reader.fetchval("SELECT count(*) FROM log.event WHERE pos < 3")
        archiving = asyncio.create_task(archive(log.database, directory, older_than=LATER, patience=0.5))
        async with asyncio.timeout(PATIENCE_S):
            await put(log, some[20:])
        (shard,) = (await archiving).shards
        assert ("read", []) == (shard.kept, shard.archived)
        assert some[-1].head == await reader.fetchval("SELECT count(*) FROM log.event")
    report = await archive(log.database, directory, older_than=LATER)
    assert some[-1].head // SMALL == len(report.shards[0].archived)
    assert [encode(f) for f in some] == [encode(f) async for f in log.read("s")]


async def test_one_archiver_at_a_time(dsn: str, log: PgLog, directory: Path) -> None:
    """The second one is told; afterwards the log and the archive are what one archiver leaves."""
    some = frames("s", [29] * 40)
    await put(log, some)
    async with Database.connect(dsn) as other, Database.connect(dsn) as third:
        async with asyncio.timeout(PATIENCE_S), third.connection() as reader, reader.transaction():
            # Who is first waits for this reader of its first piece, and is still at work when the others come.
            await reader.fetchval("SELECT count(*) FROM log.event WHERE pos < 3")
            archivers = {
                asyncio.create_task(archive(db, directory, older_than=LATER))
                for db in (log.database, other, log.database, other)
            }
            refused: list[type[BaseException | None]] = []
            while len(archivers) > 1:
                done, archivers = await asyncio.wait(archivers, return_when=asyncio.FIRST_COMPLETED)
                refused += [type(each.exception()) for each in done]
        assert [ArchiverBusyError] * 3 == refused
        await asyncio.gather(*archivers)
        await archive(other, directory, older_than=LATER)  # the lock was given back
    assert (await verify(log.database, directory)).sound
    assert [encode(f) for f in some] == [encode(f) async for f in log.read("s")]


async def test_an_archiver_that_is_cancelled_gives_its_lock_back(log: PgLog, directory: Path) -> None:
    """Cancelled at any moment, so also in the middle of a statement or a file."""
    some = frames("s", [29] * 40)
    await put(log, some)
    for steps in range(0, 60, 3):
        task = asyncio.create_task(archive(log.database, directory, older_than=LATER))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await archive(log.database, directory, older_than=LATER)
    assert (await verify(log.database, directory)).sound
    assert [] == list(directory.rglob("*.tmp"))
    assert [encode(f) for f in some] == [encode(f) async for f in log.read("s")]


async def test_retention_runs_by_itself_and_survives_trouble(
    log: PgLog, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """
    What is older than the days that were set goes; a place that cannot be written is logged and tried again.
    """
    some = frames("s", [29] * 40)
    await put(log, some)
    before = await tables(log)
    days = (dt.datetime.now(dt.UTC) - dt.datetime(2025, 11, 21, tzinfo=dt.UTC)).days
    directory.write_text("in the way")
    supervisor = asyncio.create_task(
        keep_archived([log.database], directory, retention_days=days - 10, interval=0.01)
    )
    async with asyncio.timeout(PATIENCE_S):
        while "cannot be written" not in caplog.text:
            await asyncio.sleep(0.01)
        assert before == await tables(log)
        directory.unlink()
        while len(await tables(log)) > 2:
            await asyncio.sleep(0.01)
    supervisor.cancel()
    await asyncio.gather(supervisor, return_exceptions=True)
    assert [encode(f) for f in some] == [encode(f) async for f in log.read("s")]
