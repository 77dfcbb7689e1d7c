"""Readers of the log skip nothing and see nothing out of order, whatever writers do at the same time."""

import asyncio
import os
import random
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import asyncpg
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.eventsourcing.log import FencedError
from kettle.eventsourcing.projection import Decoded, Tx, run_projection
from kettle.eventsourcing.relay import relay
from kettle.eventsourcing.shard import Shard
from kettle.storage import PgCursors, PgLog
from kettle.storage.database import Connection, Database
from kettle.storage.queries import QUERIES
from kettle.testing.patience import PATIENCE_S
from kettle_wire.events import JobRemoved, encode
from kettle_wire.frames import Entry, Frame, decode
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

TOP = Path(__file__).parents[3]
SUBJECTS = Subjects("test")
SEEDS = [int(seed) for seed in os.environ.get("KETTLE_TEST_SEEDS", "1,2,3").split(",")]
"""More of them, given as `1,2,3,4`, are more interleavings."""
TABLES = """
CREATE SCHEMA frames;
CREATE TABLE frames.given (n bigint GENERATED ALWAYS AS IDENTITY, shard text, frame bigint, epoch integer);
INSERT INTO log.projected (name, version) VALUES ('frames', 1);
"""

HITS = 20
END_AN_APPEND = """
SELECT count(*) FROM (
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND state = 'active' AND query LIKE '%INSERT INTO log.event%'
       AND pid <> pg_backend_pid()
) AS ended
"""


class Holding(Database):
    """Carries out the next statement in an open transaction, and commits or loses that when it is told."""

    hold = False

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        super().__init__(pool)
        self.held = asyncio.Event()
        self.committing: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        async with super().connection() as connection:
            if not self.hold:
                yield connection
                return
            self.hold = False
            async with connection.transaction():
                yield connection
                self.held.set()
                if not await self.committing:
                    raise asyncpg.ConnectionDoesNotExistError("killed before the commit")


class Frames:
    """A projection that keeps which frames it was given, in the order in which it was."""

    name = "frames"
    version = 1
    kinds = ("s",)

    async def apply(self, tx: Tx, frames: Sequence[Decoded]) -> None:
        rows = [(frame.shard, frame.number, frame.epoch) for frame, _ in frames]
        await tx.executemany("INSERT INTO given (shard, frame, epoch) VALUES ($1, $2, $3)", rows)


class Followers:
    """
    Three readers of one shard that never stop: of the log, of the bus, and a projection.

    What each saw are pairs of frame number and epoch.
    """

    def __init__(self, log: PgLog, shard: str, server: MemoryServer) -> None:
        self.in_log: list[tuple[int, int]] = []
        self.on_bus: list[tuple[int, int]] = []
        self.shard = shard
        self.loops: list[asyncio.Task[None]] = []
        self._log = log
        self._bus = MemoryBus(server, subjects=SUBJECTS, identity=daemon("reader"))

    async def projected(self) -> list[tuple[int, int]]:
        rows = await self._log.database.run(
            lambda c: c.fetch("SELECT frame, epoch FROM frames.given WHERE shard = $1 ORDER BY n", self.shard)
        )
        return [(row["frame"], row["epoch"]) for row in rows]

    async def saw(self, count: int) -> list[tuple[int, int]]:
        """Wait until each has seen so many frames; what they saw, which is the same."""
        await until(lambda: count <= min(len(self.in_log), len(self.on_bus)) or bool(self.ended()))
        async with asyncio.timeout(PATIENCE_S):
            while count > len(await self.projected()):
                assert [] == self.ended()
                await asyncio.sleep(0.01)
        assert self.in_log == self.on_bus == await self.projected()
        return self.in_log

    def follow(self) -> None:
        self.loops = [asyncio.create_task(loop) for loop in (self._read(), self._consume(), self._project())]

    def ended(self) -> list[asyncio.Task[None]]:
        """Those that never should."""
        return [loop for loop in self.loops if loop.done()]

    async def _read(self) -> None:
        while True:
            after = self.in_log[-1][0] if self.in_log else 0
            async for frame in self._log.read(self.shard, after=after):
                self.in_log.append((frame.number, frame.epoch))
            await asyncio.sleep(0)

    async def _consume(self) -> None:
        stream, subject = SUBJECTS.event_stream(self.shard), SUBJECTS.events(self.shard)
        async for batch in self._bus.consume(stream, "", subject=subject, ephemeral=True):
            decoded = [decode(message.data) for message in batch.messages]
            self.on_bus += [(frame.number, frame.epoch) for frame in decoded if isinstance(frame, Frame)]

    async def _project(self) -> None:
        await run_projection(
            Frames(),
            self.shard,
            log=self._log,
            bus=self._bus,
            cursors=PgCursors(self._log.database),
            subjects=SUBJECTS,
        )


@asynccontextmanager
async def followed(log: PgLog, server: MemoryServer, *shards: str) -> AsyncGenerator[list[Followers]]:
    await log.database.run(lambda c: c.execute(TABLES))
    followers = [Followers(log, shard, server) for shard in shards]
    for each in followers:
        each.follow()
    try:
        yield followers
        assert [] == [loop for each in followers for loop in each.ended()]
    finally:
        loops = [loop for each in followers for loop in each.loops]
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)


@asynccontextmanager
async def owned(log: PgLog, shard: str, server: MemoryServer) -> AsyncGenerator[Shard]:
    """An owner at work; that it was fenced is its own affair."""
    bus = MemoryBus(server, subjects=SUBJECTS, identity=daemon("owner"))
    async with Shard.own(log, shard, owner="test") as owner:
        loops = [asyncio.create_task(owner.run()), asyncio.create_task(relay(bus, log, owner, SUBJECTS))]
        try:
            yield owner
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)


async def record(shard: Shard, count: int) -> int:
    last = 0
    for _ in range(count):
        last = await asyncio.wait_for(shard.record([("job", JobRemoved())], now_us=1), PATIENCE_S)
    return last


async def sound(log: PgLog, shard: str) -> int:
    """
    Frames and positions count from 1 without a gap, epochs never fall, a frame has one; how many frames there are.
    """
    rows = await log.database.run(
        lambda c: c.fetch(
            "SELECT e.frame, e.pos, e.epoch FROM log.event e JOIN log.shard s ON s.id = e.shard"
            " WHERE s.name = $1 ORDER BY e.pos",
            shard,
        )
    )
    numbers = [row["frame"] for row in rows]
    assert list(range(1, len(rows) + 1)) == [row["pos"] for row in rows]
    assert sorted(numbers) == numbers
    assert set(range(1, numbers[-1] + 1)) == set(numbers)
    epochs = {(row["frame"], row["epoch"]) for row in rows}
    assert len(set(numbers)) == len(epochs)
    assert all(one[1] <= other[1] for one, other in pairwise(sorted(epochs)))
    return len(set(numbers))


async def waits_for_a_lock(log: PgLog) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await log.database.run(
            lambda c: c.fetchval(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
        ):
            await asyncio.sleep(0.01)


async def test_an_open_append_hides_nothing_of_other_shards_and_is_not_skipped(dsn: str) -> None:
    """
    While an append is carried out and not committed, the frames of another shard come through, later ones by number
    too; when it is committed at last, every reader gets it, in its place.
    """
    server = MemoryServer()
    async with (
        PgLog.connect(dsn, patience=PATIENCE_S) as log,
        Holding.connect(dsn) as database,
        owned(PgLog(database), "s.slow", server) as slow,
        owned(log, "s.quick", server) as quick,
        followed(log, server, "s.slow", "s.quick") as (of_slow, of_quick),
    ):
        await record(slow, 5)
        await record(quick, 5)
        await of_slow.saw(5)
        database.hold = True
        open_append = asyncio.create_task(record(slow, 3))
        await database.held.wait()
        assert 60 == await record(quick, 55)
        assert [(n, 1) for n in range(1, 61)] == await of_quick.saw(60)
        assert [(n, 1) for n in range(1, 6)] == await of_slow.saw(5)
        database.committing.set_result(True)
        assert 8 == await open_append
        assert [(n, 1) for n in range(1, 9)] == await of_slow.saw(8)
        assert (8, 60) == (await sound(log, "s.slow"), await sound(log, "s.quick"))


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "lost"])
async def test_of_two_writers_the_second_waits_for_an_open_append(dsn: str, committed: bool) -> None:
    """
    A takeover while the old owner's append is open waits for its outcome and continues after it; the old owner
    is fenced, and readers see one sequence.
    """
    server = MemoryServer()
    async with (
        PgLog.connect(dsn, patience=PATIENCE_S) as log,
        Holding.connect(dsn) as database,
        owned(PgLog(database), "s.a", server) as old,
        followed(log, server, "s.a") as (readers,),
    ):
        await record(old, 5)
        database.hold = True
        open_append = asyncio.create_task(record(old, 1))
        await database.held.wait()
        taking = asyncio.create_task(log.take("s.a", owner="new"))
        await waits_for_a_lock(log)
        assert [(n, 1) for n in range(1, 6)] == await readers.saw(5)
        database.committing.set_result(committed)
        taken = await taking
        before = [(n, 1) for n in range(1, 7 if committed else 6)]
        assert len(before) == taken.frame
        if committed:
            assert 6 == await open_append
            with pytest.raises(FencedError):
                await record(old, 1)
        else:
            with pytest.raises(FencedError):
                await open_append
        async with owned(log, "s.a", server) as new:
            last = await record(new, 10)
            after = [(n, 3) for n in range(len(before) + 1, last + 1)]
            assert before + after == await readers.saw(last)
        assert last == await sound(log, "s.a")


async def test_an_append_that_meets_an_open_takeover_is_fenced(dsn: str) -> None:
    """It waits for the takeover's outcome, and then writes nothing."""
    server = MemoryServer()
    async with (
        PgLog.connect(dsn, patience=PATIENCE_S) as log,
        Holding.connect(dsn) as database,
        owned(log, "s.a", server) as old,
        followed(log, server, "s.a") as (readers,),
    ):
        await record(old, 5)
        database.hold = True
        taking = asyncio.create_task(PgLog(database).take("s.a", owner="new"))
        await database.held.wait()
        append = asyncio.create_task(record(old, 1))
        await waits_for_a_lock(log)
        database.committing.set_result(True)
        assert (2, 5) == ((await taking).epoch, (await taking).frame)
        with pytest.raises(FencedError):
            await append
        assert [(n, 1) for n in range(1, 6)] == await readers.saw(5)
        assert 5 == await sound(log, "s.a")


async def test_an_append_that_is_cancelled_is_not_taken_for_done(dsn: str) -> None:
    """A cancelled append reports no outcome; here it had none, and the same frame is stored after it."""
    async with (
        PgLog.connect(dsn, patience=PATIENCE_S) as log,
        Holding.connect(dsn) as database,
    ):
        await log.take("s.a", owner="me")
        frame = frame_of("s.a", 1, 1, 1, "job", 3)
        database.hold = True
        append = asyncio.create_task(PgLog(database).append(frame))
        await database.held.wait()
        append.cancel()
        with pytest.raises(asyncio.CancelledError):
            await append
        assert [] == [found async for found in log.read("s.a")]
        await log.append(frame)
        assert [frame] == [found async for found in log.read("s.a")]


def test_one_statement_writes_events() -> None:
    """
    Nothing in the tree writes the table of events but the guarded append: no code path can leave the guard out.
    """
    writes = re.compile(r"(?i)\b(?:insert\s+into|update|delete\s+from|copy)\s+(?:only\s+)?log\.event\b")
    found = [
        (path.name, match.group())
        for root in ("libs", "schemas", "services")
        for path in sorted((TOP / root).rglob("*"))
        if path.suffix in {".py", ".sql"} and "testing" not in path.parts
        for match in writes.finditer(path.read_text(encoding="utf-8"))
    ]
    assert [("queries.sql", "INSERT INTO log.event")] == found
    append = QUERIES["append"]
    assert append.index("epoch = $2 AND frame = $3::bigint - 1") < append.index("INSERT INTO log.event")


def frame_of(shard: str, epoch: int, number: int, position: int, mark: str, count: int) -> Frame:
    entries = [Entry(f"{mark}/{i}", 1, "job.removed/1", encode(JobRemoved())) for i in range(count)]
    return Frame(shard, epoch, number, position, 1_763_719_200_000_001, entries)


@pytest.mark.parametrize("seed", SEEDS)
async def test_owners_that_take_turns_at_random_leave_one_sequence(dsn: str, seed: int) -> None:
    """
    For any order of takeovers and any number of events: acknowledged events are there, with their writer's epoch,
    nothing else is, and readers that follow meanwhile see exactly that.
    """
    chance = random.Random(seed)
    written: dict[int, tuple[int, str, int]] = {}

    async def owner(log: PgLog, name: str) -> None:
        for turn in range(8):
            tenure = await log.take("s.a", owner=name)
            number, position = tenure.frame + 1, tenure.head + 1
            try:
                for step in range(chance.randrange(12)):
                    mark, count = f"{name}.{turn}.{step}", chance.randint(1, 9)
                    await log.append(frame_of("s.a", tenure.epoch, number, position, mark, count))
                    assert number not in written
                    written[number] = (tenure.epoch, mark, count)
                    number, position = number + 1, position + count
            except FencedError:
                continue

    async with PgLog.connect(dsn, patience=PATIENCE_S) as log:
        await log.take("s.a", owner="first")
        async with followed(log, MemoryServer(), "s.a") as (readers,):
            await asyncio.gather(*(owner(log, f"o{i}") for i in range(4)))
            found = [frame async for frame in log.read("s.a")]
            assert written == {
                f.number: (f.epoch, f.entries[0].stream.rpartition("/")[0], len(f.entries)) for f in found
            }
            assert len(written) == await sound(log, "s.a")
            await until(lambda: len(readers.in_log) == len(found))
            assert [(f.number, f.epoch) for f in found] == readers.in_log


def more_than(seen: Sequence[object], count: int) -> Callable[[], bool]:
    return lambda: len(seen) > count


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


async def test_an_append_whose_backend_is_terminated_is_there_once(dsn: str) -> None:
    """
    The server ends the connection of an append in flight, at whatever moment: the append is repeated, and recorded once.
    """
    hits = 0
    acknowledged: list[tuple[str, int]] = []
    async with (
        PgLog.connect(dsn, patience=PATIENCE_S) as log,
        PgLog.connect(dsn, patience=PATIENCE_S) as killer,
        owned(log, "s.a", MemoryServer()) as shard,
    ):
        stop = asyncio.Event()

        async def call(caller: int) -> None:
            number = 0
            while not stop.is_set():
                stream = f"{caller}/{(number := number + 1)}"
                future = shard.record([(stream, JobRemoved())], now_us=1)
                acknowledged.append((stream, await asyncio.wait_for(future, PATIENCE_S)))

        callers = [asyncio.create_task(call(i)) for i in range(8)]
        async with killer.database.connection() as connection:
            while hits < HITS:
                if await connection.fetchval(END_AN_APPEND):
                    hits += 1
                    await until(more_than(acknowledged, len(acknowledged)))
        stop.set()
        await asyncio.gather(*callers)
        found = [(e.stream, f.number) async for f in log.read("s.a") for e in f.entries]
        assert sorted(acknowledged) == sorted(found)
        await sound(log, "s.a")
