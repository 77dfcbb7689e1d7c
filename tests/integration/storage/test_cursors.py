"""Cursors of projections move with the rows that they stand for, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.eventsourcing.projection import OvertakenError, Progress, SupersededError, Tx, run_projection
from kettle.eventsourcing.relay import relay
from kettle.eventsourcing.shard import Shard
from kettle.storage import PgCursors, PgLog
from kettle.testing.patience import PATIENCE_S
from kettle_wire.events import Event, JobRemoved
from kettle_wire.frames import Frame
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

TABLES = """
CREATE SCHEMA {name}; CREATE TABLE {name}.removed (stream text);
INSERT INTO log.projected (name, version) VALUES ('{name}', 1);
"""


@pytest_asyncio.fixture
async def log(dsn: str) -> AsyncIterator[PgLog]:
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log:
        await log.take("s", owner="me")
        tables = "".join(TABLES.format(name=name) for name in ("p", "removed"))
        await log.database.run(lambda c: c.execute(tables))
        yield log


async def removed(log: PgLog, schema: str = "p") -> int:
    return int(await log.database.run(lambda c: c.fetchval(f"SELECT count(*) FROM {schema}.removed")))


async def test_rows_and_cursor_are_committed_together(log: PgLog) -> None:
    """A transaction that fails moves neither."""
    cursors = PgCursors(log.database)
    assert 0 == await cursors.cursor("p", 1, "s")
    async with cursors.advance("p", 1, "s", was=0, now=3) as tx:
        await tx.execute("INSERT INTO removed VALUES ('a')")
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is what fails
        async with cursors.advance("p", 1, "s", was=3, now=4) as tx:
            await tx.execute("INSERT INTO removed VALUES ('b')")
            raise ZeroDivisionError
    assert (3, 1) == (await cursors.cursor("p", 1, "s"), await removed(log))


async def test_the_guard_lets_one_of_two_instances_through(log: PgLog) -> None:
    """The other one's rows are rolled back."""
    cursors = PgCursors(log.database)

    async def instance() -> None:
        async with cursors.advance("p", 1, "s", was=0, now=5) as tx:
            await tx.execute("INSERT INTO removed VALUES ('a')")

    outcomes = await asyncio.gather(*(instance() for _ in range(3)), return_exceptions=True)
    assert 2 == sum(isinstance(outcome, OvertakenError) for outcome in outcomes)
    assert (5, 1) == (await cursors.cursor("p", 1, "s"), await removed(log))


async def test_tables_of_another_version_are_not_touched(log: PgLog) -> None:
    """Code of another version neither moves a cursor nor begins one, and is told."""
    cursors = PgCursors(log.database)
    async with cursors.advance("p", 1, "s", was=0, now=5):
        pass
    for was in (0, 5):
        with pytest.raises(OvertakenError):
            async with cursors.advance("p", 2, "s", was=was, now=6):
                pass
    with pytest.raises(SupersededError, match="of version 1, this release has version 2"):
        await cursors.cursor("p", 2, "s")
    with pytest.raises(SupersededError, match="of version none"):
        await cursors.cursor("q", 1, "s")
    assert 5 == await cursors.cursor("p", 1, "s")


async def test_why_a_projection_stopped_is_kept_until_it_moves(log: PgLog) -> None:
    """The note stands beside the cursor that it is about, also at the very beginning, and nowhere else."""
    cursors = PgCursors(log.database)
    await cursors.stop("p", 1, "s", at=0, why="broken")
    assert ("broken", 0) == (await cursors.stopped("p", 1, "s"), await cursors.cursor("p", 1, "s"))
    await cursors.stop("p", 1, "s", at=7, why="of another frame")
    assert "broken" == await cursors.stopped("p", 1, "s")
    async with cursors.advance("p", 1, "s", was=0, now=1):
        pass
    assert await cursors.stopped("p", 1, "s") is None


class Removed:
    """The streams of removed jobs."""

    name = "removed"
    version = 1

    async def apply(self, tx: Tx, frames: Sequence[tuple[Frame, list[Event]]]) -> None:
        rows = [(entry.stream,) for frame, _ in frames for entry in frame.entries]
        await tx.executemany("INSERT INTO removed VALUES ($1)", rows)


async def test_a_projection_sees_every_event_once(log: PgLog) -> None:
    """Over several runs of the projection, with frames from the log and from the bus."""
    subjects = Subjects("test")
    bus = MemoryBus(MemoryServer(), subjects=subjects, identity=daemon("gateway"))
    async with Shard.own(log, "s", owner="me") as shard:
        tasks = [asyncio.create_task(shard.run()), asyncio.create_task(relay(bus, log, shard, subjects))]
        for _ in range(3):
            await asyncio.gather(*(shard.record([("job", JobRemoved())], now_us=1) for _ in range(50)))
            progress = Progress()
            running = asyncio.create_task(
                run_projection(
                    Removed(),
                    "s",
                    log=log,
                    bus=bus,
                    cursors=PgCursors(log.database),
                    subjects=subjects,
                    progress=progress,
                )
            )
            await asyncio.gather(*(shard.record([("job", JobRemoved())], now_us=1) for _ in range(50)))
            assert await progress.caught_up("s", shard.frame, deadline=PATIENCE_S)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        for task in tasks:
            task.cancel()
    assert 300 == await removed(log, "removed")
