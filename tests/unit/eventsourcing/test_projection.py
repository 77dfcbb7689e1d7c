"""Projections and the relay that feeds them, over a bus and a log in memory."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.eventsourcing import projection as module
from kettle.eventsourcing.log import IMPORTED, LogUnavailableError
from kettle.eventsourcing.memory import MemoryLog
from kettle.eventsourcing.projection import OvertakenError, Progress, StoppedError, Tx, run_projection
from kettle.eventsourcing.relay import relay
from kettle.eventsourcing.shard import Shard
from kettle.testing.patience import PATIENCE_S
from kettle_wire.events import Event, JobRemoved, JobsChanged, Procs, encode, tag_of
from kettle_wire.frames import Entry, Frame
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("test")


class MemoryTx:
    async def execute(self, query: str, *args: Any) -> str:
        raise NotImplementedError

    async def executemany(self, command: str, args: Any) -> None:
        raise NotImplementedError

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]:
        raise NotImplementedError

    async def copy_records_to_table(
        self, table_name: str, *, records: Iterable[Sequence[Any]], columns: Sequence[str]
    ) -> str:
        raise NotImplementedError


class MemoryCursors:
    """One cursor; its transactions can be made to fail before or after they are committed."""

    def __init__(self) -> None:
        self.frame = 0
        self.fail_before = 0
        self.fail_after = 0
        self.why = ""

    async def cursor(self, projection: str, version: int, shard: str) -> int:
        return self.frame

    @asynccontextmanager
    async def advance(
        self, projection: str, version: int, shard: str, *, was: int, now: int
    ) -> AsyncGenerator[Tx, None]:
        if was != self.frame:
            raise OvertakenError("moved")
        yield MemoryTx()
        if self.fail_before:
            self.fail_before -= 1
            raise LogUnavailableError("away")
        self.frame, self.why = now, ""
        if self.fail_after:
            self.fail_after -= 1
            raise LogUnavailableError("answer lost")

    async def stop(self, projection: str, version: int, shard: str, *, at: int, why: str) -> None:
        if at == self.frame:
            self.why = why


class Numbers:
    """Notes the numbers of the frames of each transaction that it was part of."""

    name = "numbers"
    version = 1

    def __init__(self, cursors: MemoryCursors) -> None:
        self._cursors = cursors
        self.applied: dict[int, int] = {}
        self.poison = "job/6.6"
        self.groups: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def apply(self, tx: Tx, frames: Sequence[tuple[Frame, list[Event]]]) -> None:
        assert self._cursors.frame + 1 == frames[0][0].number
        if self.poison in {entry.stream for frame, _ in frames for entry in frame.entries}:
            raise ZeroDivisionError("poison")
        await self.gate.wait()
        self.groups.append(len(frames))
        for frame, events in frames:
            self.applied[frame.number] = len(events)


class World:
    def __init__(self) -> None:
        self.server = MemoryServer()
        self.log = MemoryLog()
        self.bus = MemoryBus(self.server, subjects=SUBJECTS, identity=daemon("gateway"))
        self.cursors = MemoryCursors()
        self.projection = Numbers(self.cursors)
        self.progress = Progress()
        self._tasks: list[asyncio.Task[None]] = []

    def project(self) -> asyncio.Task[None]:
        task = asyncio.create_task(
            run_projection(
                self.projection,
                "s",
                log=self.log,
                bus=self.bus,
                cursors=self.cursors,
                subjects=SUBJECTS,
                progress=self.progress,
            )
        )
        self._tasks.append(task)
        return task

    @asynccontextmanager
    async def shard(self, *, relayed: bool = True) -> AsyncGenerator[Shard, None]:
        async with Shard.own(self.log, "s", owner="me") as shard:
            tasks = [asyncio.create_task(shard.run())]
            if relayed:
                tasks.append(asyncio.create_task(relay(self.bus, self.log, shard, SUBJECTS)))
            try:
                yield shard
            finally:
                for task in (*tasks, *self._tasks):
                    task.cancel()


async def record(shard: Shard, count: int) -> None:
    for _ in range(count):
        await shard.record([("a", JobRemoved())], now_us=1)


async def test_a_projection_follows_log_and_bus() -> None:
    """
    What was recorded before it began comes from the log, the rest by the bus; each frame is applied once.
    """
    world = World()
    async with world.shard() as shard:
        await record(shard, 5)
        world.project()
        await record(shard, 5)
        assert await world.progress.caught_up("s", 10, deadline=PATIENCE_S)
    assert dict.fromkeys(range(1, 11), 1) == world.projection.applied


async def test_a_shard_that_was_imported_is_followed_in_the_log_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody serves it, so the bus has no stream of it, and may refuse to be asked for one."""
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    world = World()
    monkeypatch.setattr(world.bus, "consume", _refused)
    tenure = await world.log.take("s", owner=IMPORTED)
    entry = Entry("a", 1, tag_of(JobRemoved()), encode(JobRemoved()))
    await world.log.append(Frame("s", tenure.epoch, 1, 1, 1, [entry]))
    task = world.project()
    assert await world.progress.caught_up("s", 1, deadline=PATIENCE_S)
    await world.log.append(Frame("s", tenure.epoch, 2, 2, 2, [entry]))
    assert await world.progress.caught_up("s", 2, deadline=PATIENCE_S)
    assert not task.done()
    task.cancel()


def _refused(*_: object, **__: object) -> None:
    raise AssertionError("the bus was asked")


async def test_a_transaction_takes_about_so_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few frames may be very many events: what the bus brings at once is divided."""
    monkeypatch.setattr(module, "EVENTS", 10)
    data = msgspec.Raw(encode(JobRemoved()))
    six = JobsChanged(cluster=1, type="job.removed/1", data=data, jobs=[Procs(0, 6, 1)])
    world = World()
    async with world.shard() as shard:
        world.project()
        await shard.record([("jobs/1", six)], now_us=1)
        assert await world.progress.caught_up("s", 1, deadline=PATIENCE_S)
        world.projection.gate.clear()
        for _ in range(9):
            await shard.record([("jobs/1", six)], now_us=1)
        world.projection.gate.set()
        assert await world.progress.caught_up("s", 10, deadline=PATIENCE_S)
    assert dict.fromkeys(range(1, 11), 6) == world.projection.applied
    assert 2 == max(world.projection.groups)


async def test_a_projection_needs_no_bus() -> None:
    """If the bus brings nothing, the log is looked at."""
    world = World()
    async with world.shard(relayed=False) as shard:
        world.project()
        await asyncio.sleep(0.05)
        await record(shard, 3)
        assert await world.progress.caught_up("s", 3, deadline=PATIENCE_S)


async def test_a_gap_on_the_bus_is_filled_from_the_log() -> None:
    """A stream that was lost begins later than the projection is."""
    world = World()
    async with world.shard() as shard:
        world.project()
        await record(shard, 3)
        assert await world.progress.caught_up("s", 3, deadline=PATIENCE_S)
        world.server.lose(SUBJECTS.event_stream("s"))
        await record(shard, 4)
        assert await world.progress.caught_up("s", 7, deadline=PATIENCE_S)
    assert list(range(1, 8)) == sorted(world.projection.applied)


@pytest.mark.parametrize("when", ["fail_before", "fail_after"])
async def test_a_database_that_goes_away_is_waited_for(when: str) -> None:
    """
    Whether the transaction was committed is seen from the cursor, so nothing is applied twice or left out.
    """
    world = World()
    setattr(world.cursors, when, 2)
    async with world.shard() as shard:
        world.project()
        await record(shard, 6)
        assert await world.progress.caught_up("s", 6, deadline=PATIENCE_S)
    assert 6 == world.cursors.frame
    assert list(range(1, 7)) == sorted(world.projection.applied)


async def test_one_that_was_overtaken_goes_on_from_there() -> None:
    """Two instances may run; the guard makes it harmless."""
    world = World()
    async with world.shard() as shard:
        world.project()
        await record(shard, 2)
        assert await world.progress.caught_up("s", 2, deadline=PATIENCE_S)
        world.cursors.frame = 3
        await record(shard, 3)
        assert await world.progress.caught_up("s", 5, deadline=PATIENCE_S)
    assert 5 == world.cursors.frame
    assert 3 not in world.projection.applied


async def test_a_log_that_was_restored_from_an_older_copy_stops_the_projection() -> None:
    """New events under known numbers would otherwise never be applied."""
    world = World()
    world.cursors.frame = 9
    async with world.shard(relayed=False) as shard:
        await record(shard, 3)
        with pytest.raises(StoppedError, match="at frame 9, and the log of s ends with frame 3") as stopped:
            await asyncio.wait_for(world.project(), PATIENCE_S)
    assert stopped.value.why == world.cursors.why
    assert {} == world.projection.applied


async def test_an_event_that_cannot_be_read_stops_the_projection() -> None:
    """It never skips: what came before is applied, and frame, position and stream are noted."""
    world = World()
    tenure = await world.log.take("s", owner="me")
    good = Entry("a", 1, tag_of(JobRemoved()), encode(JobRemoved()))
    bad = Entry("job/1.0", 1, "no.such/1", b"\xc1")
    await world.log.append(Frame("s", tenure.epoch, 1, 1, 1, [good]))
    await world.log.append(Frame("s", tenure.epoch, 2, 2, 1, [good, bad]))
    with pytest.raises(
        StoppedError, match=r"at frame 2, position 3, stream job/1\.0: UnknownEvent"
    ) as stopped:
        await asyncio.wait_for(world.project(), PATIENCE_S)
    assert (2, 3, 1) == (stopped.value.frame, stopped.value.position, world.cursors.frame)
    assert stopped.value.why == world.cursors.why


async def test_an_event_that_cannot_be_applied_stops_the_projection() -> None:
    """
    The one that is to blame is found among many frames and inside its own; when that is repaired it goes on.
    """
    world = World()
    async with world.shard(relayed=False) as shard:
        await record(shard, 3)
        streams = ["a", "b", "c", "d", world.projection.poison, "e", "f"]
        await shard.record([(stream, JobRemoved()) for stream in streams], now_us=1)
        await record(shard, 2)
        with pytest.raises(
            StoppedError, match=r"frame 4, position 8, stream job/6\.6: ZeroDivisionError: poison"
        ):
            await asyncio.wait_for(world.project(), PATIENCE_S)
        assert 3 == world.cursors.frame
        assert [1, 2, 3] == sorted(n for n in world.projection.applied if n <= world.cursors.frame)
        world.projection.poison = ""
        world.project()
        assert await world.progress.caught_up("s", 6, deadline=PATIENCE_S)
    assert {1: 1, 2: 1, 3: 1, 4: 7, 5: 1, 6: 1} == world.projection.applied
    assert not world.cursors.why


async def test_waiting_to_read_ones_write_is_bounded() -> None:
    """The asker is told that it was not enough."""
    progress = Progress()
    await progress.move("s", 3)
    assert await progress.caught_up("s", 3, deadline=0.01)
    assert not await progress.caught_up("s", 4, deadline=0.01)
    waiting = asyncio.create_task(progress.caught_up("s", 4, deadline=PATIENCE_S))
    await asyncio.sleep(0)
    await progress.move("s", 4)
    assert await waiting
