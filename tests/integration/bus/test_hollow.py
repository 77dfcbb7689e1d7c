"""
Frames that are too large for the bus, and frames that it no longer has: nobody who follows a shard misses them.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from kettle import VERSION
from kettle.audit.bus_frames import OnBus
from kettle.audit.report import AuditReport
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError
from kettle.embedded import EmbeddedNats, Limits
from kettle.eventsourcing.log import Log
from kettle.eventsourcing.memory import MemoryLog
from kettle.eventsourcing.relay import relay
from kettle.eventsourcing.replay import ROLE, head_frame, missing_frames, served_frames
from kettle.eventsourcing.shard import Shard
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING
from kettle.userlog import Appender, Checkpoint, UserLogError, UserLogProjector, Writer, follow
from kettle_wire import frames
from kettle_wire.ads.types import Ad
from kettle_wire.commands.log import READ_FRAMES, ReadFrames
from kettle_wire.events import ClusterSubmitted, JobRemoved
from kettle_wire.frames import Hollow
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("test")
SHARD = "schedd.a"
STREAM, EVENTS = SUBJECTS.event_stream(SHARD), SUBJECTS.events(SHARD)
MB = 1_000_000


@pytest_asyncio.fixture
async def nats(directory: Path) -> AsyncIterator[EmbeddedNats]:
    """A server with the limit that NATS has by itself."""
    async with EmbeddedNats(
        directory / "nats",
        credentials=directory / "keys",
        permissions=EVERYTHING,
        limits=Limits(max_payload="1MB"),
    ) as server:
        yield server


@asynccontextmanager
async def connected(nats: EmbeddedNats) -> AsyncGenerator[NatsBus, None]:
    async with NatsBus.connect(
        nats.url,
        subjects=SUBJECTS,
        identity=daemon("gateway"),
        credentials=str(nats.credentials("test")),
        patience=PATIENCE_S,
        deadline=PATIENCE_S / 4,  # what a server that went away did not answer is sent again
    ) as bus:
        yield bus


@asynccontextmanager
async def owned(log: Log, bus: NatsBus, *, refill: int = 10_000) -> AsyncGenerator[Shard, None]:
    async with Shard.own(log, SHARD, owner="test") as shard, asyncio.TaskGroup() as tasks:
        await bus.serve(ROLE, SHARD, [served_frames(log, SHARD)], version=VERSION)
        loops = [
            tasks.create_task(shard.run()),
            tasks.create_task(relay(bus, log, shard, SUBJECTS, refill=refill)),
        ]
        yield shard
        for loop in loops:
            loop.cancel()


def submission(cluster: int, log: Path, size: int = 0) -> tuple[str, ClusterSubmitted]:
    ad: Ad = {"UserLog": str(log), "Iwd": "/", "Environment": "x" * size}
    return f"cluster/{cluster}", ClusterSubmitted(cluster=cluster, owner="ada", ad=ad, columns=[], rows=[[]])


async def on_the_bus(bus: NatsBus, frame: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await bus.last_sequence(STREAM) != frame:
            await asyncio.sleep(0.02)


async def test_a_frame_too_large_for_the_bus_goes_there_hollow(nats: EmbeddedNats, tmp_path: Path) -> None:
    """
    The stream's sequences stay the frames' numbers, readers get the entries from the owner, and the audit agrees.
    """
    log = MemoryLog()
    async with connected(nats) as bus, owned(log, bus) as shard:
        for number, size in enumerate([10, 3 * MB, 10], start=1):
            await shard.record([submission(number, tmp_path / "l", size)], now_us=number)
        await on_the_bus(bus, 3)
        seen: list[tuple[int, bool, int]] = []
        async with aclosing(bus.consume(STREAM, "", subject=EVENTS, ephemeral=True)) as batches:
            async with asyncio.timeout(PATIENCE_S):
                while len(seen) < 3:
                    for message in (await anext(batches)).messages:
                        frame = frames.decode(message.data)
                        assert message.sequence == frame.number
                        seen.append((frame.number, isinstance(frame, Hollow), frame.head))
        assert [(1, False, 1), (2, True, 2), (3, False, 3)] == seen
        recorded = [frame async for frame in log.read(SHARD)]
        assert recorded[1:] == [frame async for frame in missing_frames(bus, SHARD, 1, 3)]
        report = AuditReport.empty()
        async with AsyncExitStack() as stack:
            audit = OnBus(SHARD, report)
            await audit.open(bus, SUBJECTS, stack, after=0, head=3)
            for frame in recorded:
                await audit.feed(frame)
            await audit.finish()
        assert (3, None) == (audit.compared, report.check("bus").first)


async def test_the_owner_answers_with_what_was_asked_for(nats: EmbeddedNats, tmp_path: Path) -> None:
    """In order, at most so many bytes, at least one frame, never beyond the end, which it tells."""
    log = MemoryLog()
    async with connected(nats) as bus, owned(log, bus) as shard:
        for number in range(1, 11):
            await shard.record([submission(number, tmp_path / "l", 1000)], now_us=number)

        async def asked(**what: int) -> tuple[list[int], int]:
            answer = await bus.call(READ_FRAMES, SHARD, ReadFrames(**what))
            return [frames.recorded(data).number for data in answer.frames], answer.head

        assert (list(range(1, 11)), 10) == await asked()
        assert ([4, 5, 6], 10) == await asked(after=3, until=6)
        assert ([9, 10], 10) == await asked(after=8, until=99)
        assert ([], 10) == await asked(after=10)
        assert ([1], 10) == await asked(max_bytes=1)
        assert ([1, 2], 10) == await asked(max_bytes=3000)
        assert 10 == await head_frame(bus, SHARD)
        with pytest.raises(BusError, match="ends with frame 10: it has no frame 11"):
            _ = [frame async for frame in missing_frames(bus, SHARD, 8, 12)]


async def test_who_misses_frames_waits_for_the_owner(nats: EmbeddedNats, tmp_path: Path) -> None:
    """Nothing is skipped because nobody answers at the moment."""
    log = MemoryLog()
    async with connected(nats) as bus, owned(log, bus) as shard:
        for number in (1, 2):
            await shard.record([submission(number, tmp_path / "l")], now_us=number)
    async with connected(nats) as bus, connected(nats) as reader:

        async def read() -> list[int]:
            return [frame.number async for frame in missing_frames(reader, SHARD, 0, 2)]

        reading = asyncio.create_task(read())
        await asyncio.sleep(0.1)
        assert not reading.done()
        async with owned(log, bus):
            assert [1, 2] == await asyncio.wait_for(reading, PATIENCE_S)


def unexpected(error: UserLogError) -> None:
    raise error


@asynccontextmanager
async def writing(bus: NatsBus, state: Path) -> AsyncGenerator[None, None]:
    """Somebody writes job event logs by the bus alone."""
    checkpoint = Checkpoint(state)
    projector = UserLogProjector("ap", snapshot=checkpoint.load())
    deliveries = bus.consume(STREAM, "", subject=EVENTS, after=projector.frame, ephemeral=True)
    writer = Writer(Appender(), failed=unexpected)
    task = asyncio.create_task(
        follow(deliveries, projector, writer, checkpoint, partial(missing_frames, bus, SHARD))
    )
    yield
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def events_in(log: Path) -> list[str]:
    text = log.read_text() if log.exists() else ""
    return [f"{event[:3]} {int(event[5:8])}" for event in text.split("...\n")[:-1]]


async def until_written(log: Path, expected: list[str]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while len(events_in(log)) < len(expected):
            await asyncio.sleep(0.02)
    assert expected == events_in(log)


async def test_a_stream_made_again_with_its_newest_frames_costs_no_line(
    nats: EmbeddedNats, tmp_path: Path
) -> None:
    """
    Of forty frames that came while nobody wrote logs the stream has only five; the others are asked for.
    """
    log, job_log, state = MemoryLog(), tmp_path / "log", tmp_path / "state"
    async with connected(nats) as bus, connected(nats) as reader, owned(log, bus, refill=5) as shard:
        async with writing(reader, state):
            await shard.record([submission(1, job_log)], now_us=1)
            await until_written(job_log, ["000 1"])
        for number in range(2, 21):
            await shard.record([submission(number, job_log)], now_us=number)
            await shard.record([(f"job/{number}.0", JobRemoved(reason="r"))], now_us=number)
        await bus.delete_stream(STREAM)
        await shard.record([("job/1.0", JobRemoved(reason="r"))], now_us=21)
        await on_the_bus(bus, 40)
        expected = ["000 1", *(f"{what} {n}" for n in range(2, 21) for what in ("000", "009")), "009 1"]
        async with writing(reader, state):
            await until_written(job_log, expected)


async def test_a_stream_lost_under_its_reader_costs_no_line(nats: EmbeddedNats, tmp_path: Path) -> None:
    """The reader goes over to the stream that replaces it, which begins later than where it stood."""
    log, job_log = MemoryLog(), tmp_path / "log"
    async with (
        connected(nats) as bus,
        connected(nats) as reader,
        owned(log, bus, refill=2) as shard,
        writing(reader, tmp_path / "state"),
    ):
        await shard.record([submission(1, job_log)], now_us=1)
        await until_written(job_log, ["000 1"])
        await bus.delete_stream(STREAM)
        for number in range(2, 31):
            await shard.record([submission(number, job_log, 3 * MB if number == 15 else 0)], now_us=number)
        await until_written(job_log, [f"000 {number}" for number in range(1, 31)])
