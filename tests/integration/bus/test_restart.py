"""
NATS may be killed, and may come back with nothing: nobody has to be told, nothing is lost that the log has.
"""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.bus.nats import NatsBus
from kettle.bus.ports import (
    BucketSpec,
    BusError,
    BusUnavailableError,
    KeyChange,
    ReplyTimeoutError,
    Served,
    StreamSpec,
)
from kettle.embedded import EmbeddedNats
from kettle.eventsourcing.log import FencedError, Log
from kettle.eventsourcing.memory import MemoryLog
from kettle.eventsourcing.relay import BusAheadError, not_ahead, relay
from kettle.eventsourcing.shard import Shard
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING
from kettle_wire import frames
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.events import JobRemoved
from kettle_wire.identity import Identity, daemon
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("test")


class Echo(msgspec.Struct, frozen=True):
    text: str


CALLERS = tuple(Caller)
ECHO = Endpoint("test", "echo", Echo, Echo, callers=CALLERS, repeat=Repeat.HARMLESS)

WAIT = Endpoint("test", "wait", Echo, Echo, callers=CALLERS, repeat=Repeat.HARMLESS)


async def echo(request: Echo, _caller: Identity) -> Echo:
    return request


@pytest_asyncio.fixture
async def nats(directory: Path) -> AsyncIterator[EmbeddedNats]:
    async with EmbeddedNats(
        directory / "nats", credentials=directory / "keys", permissions=EVERYTHING
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


async def kill(nats: EmbeddedNats) -> None:
    os.kill(nats.pid, signal.SIGKILL)
    await nats.wait()


async def revive(nats: EmbeddedNats, *, empty: bool) -> None:
    if empty:
        shutil.rmtree(nats.store)
    await nats.start()


@pytest.mark.parametrize("empty", [False, True], ids=["with its data", "with nothing"])
async def test_commands_and_readers_go_on(nats: EmbeddedNats, empty: bool) -> None:
    """
    While the server is away commands say so; afterwards services answer, streams are there, readers read on.
    """
    asked = asyncio.Event()

    async def wait(request: Echo, _caller: Identity) -> Echo:
        asked.set()
        await asyncio.Event().wait()
        return request

    async with connected(nats) as bus, connected(nats) as caller:
        await bus.serve("test", "a", [Served(ECHO, echo), Served(WAIT, wait)], version="1.0.0")
        await bus.ensure_stream(StreamSpec(name=SUBJECTS.work_stream, subjects=[SUBJECTS.work_all]))
        subject = SUBJECTS.work("schedd", "host")
        async with aclosing(bus.consume(SUBJECTS.work_stream, "d", subject=SUBJECTS.work_all)) as batches:
            await caller.append(subject, b"before")
            batch = await asyncio.wait_for(anext(batches), PATIENCE_S)
            await batch.ack()
            waiting = asyncio.ensure_future(anext(batches))
            in_hand = asyncio.create_task(caller.call(WAIT, "a", Echo("x"), deadline=PATIENCE_S))
            await asyncio.wait_for(asked.wait(), PATIENCE_S)
            await kill(nats)
            with pytest.raises(ReplyTimeoutError, match="connection was lost"):
                await in_hand
            assert not caller.connected
            with pytest.raises(BusUnavailableError):
                await caller.call(ECHO, "a", Echo("x"), deadline=0.3)
            await caller.publish("unheard", b"")
            await revive(nats, empty=empty)
            assert Echo("y") == await until_answered(caller, "y")
            await until_stored(caller, subject, b"after")
            got = await asyncio.wait_for(waiting, PATIENCE_S)
            assert [b"after"] == [message.data for message in got.messages]


async def until_answered(bus: NatsBus, text: str) -> Echo:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await bus.call(ECHO, "a", Echo(text), deadline=2.0)
        except BusError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.05)


async def until_stored(bus: NatsBus, subject: str, data: bytes) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            await bus.append(subject, data)
            return
        except BusError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("empty", [False, True], ids=["with its data", "with nothing"])
async def test_ads_are_there_again_without_a_watcher_noticing_more_than_that(
    nats: EmbeddedNats, empty: bool
) -> None:
    """A bucket in memory is lost with its server; who filled it is told to, and the watch starts all over."""
    async with connected(nats) as startd, connected(nats) as collector:
        spec = BucketSpec(name=SUBJECTS.ads, ttl=600.0)
        await startd.ensure_bucket(spec)
        await collector.ensure_bucket(spec)
        returns = asyncio.Event()
        startd.on_return(returns.set)
        await startd.update(SUBJECTS.ads, "Machine.a", b"1", expect=0)
        async with aclosing(collector.watch(SUBJECTS.ads)) as changes:
            first: list[KeyChange | None] = [
                await asyncio.wait_for(anext(changes), PATIENCE_S) for _ in range(2)
            ]
            assert [("Machine.a", b"1"), None] == [c and (c.key, c.value) for c in first]
            waiting = asyncio.ensure_future(anext(changes))
            await kill(nats)
            await startd.put(SUBJECTS.ads, "Machine.b", b"sent while it was away")
            await revive(nats, empty=empty)
            await asyncio.wait_for(returns.wait(), PATIENCE_S)
            await startd.put(SUBJECTS.ads, "Machine.a", b"2")
            seen = await asyncio.wait_for(waiting, PATIENCE_S)
            while seen is None or (seen.key, seen.value) != ("Machine.a", b"2"):
                seen = await asyncio.wait_for(anext(changes), PATIENCE_S)


@asynccontextmanager
async def owned(log: Log, bus: NatsBus, *, refill: int = 10_000) -> AsyncGenerator[Shard, None]:
    async with Shard.own(log, "schedd.a", owner="test") as shard, asyncio.TaskGroup() as tasks:
        loops = [
            tasks.create_task(shard.run()),
            tasks.create_task(relay(bus, log, shard, SUBJECTS, refill=refill)),
        ]
        yield shard
        for loop in loops:
            loop.cancel()


async def record(shard: Shard, count: int) -> None:
    for _ in range(count):
        await shard.record([("job/1.0", JobRemoved())], now_us=1)


async def on_the_bus(bus: NatsBus, frame: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await bus.last_sequence(SUBJECTS.event_stream("schedd.a")) != frame:
            await asyncio.sleep(0.02)


async def test_frames_are_refilled_from_the_log(nats: EmbeddedNats) -> None:
    """
    A server that lost its data has all frames again, under their numbers, without a new one being recorded.
    """
    log = MemoryLog()
    async with connected(nats) as bus, owned(log, bus) as shard:
        await record(shard, 30)
        await on_the_bus(bus, 30)
        await kill(nats)
        await record(shard, 5)
        await revive(nats, empty=True)
        await on_the_bus(bus, 35)
        async with aclosing(
            bus.consume(
                SUBJECTS.event_stream("schedd.a"), "", subject=SUBJECTS.events("schedd.a"), ephemeral=True
            )
        ) as batches:
            got: list[int] = []
            async with asyncio.timeout(PATIENCE_S):
                async for batch in batches:
                    for message in batch.messages:
                        assert message.sequence == frames.decode(message.data).number
                        got.append(message.sequence)
                    if got[-1] == 35:
                        break
        assert list(range(1, 36)) == got


async def test_a_deleted_stream_is_refilled_as_far_as_wanted(nats: EmbeddedNats) -> None:
    """Its first sequence is the first frame that is put back, so that sequence and number stay equal."""
    log = MemoryLog()
    async with connected(nats) as bus, owned(log, bus, refill=10) as shard:
        await record(shard, 40)
        await on_the_bus(bus, 40)
        await bus.delete_stream(SUBJECTS.event_stream("schedd.a"))
        await record(shard, 1)
        await on_the_bus(bus, 41)
        stream, subject = SUBJECTS.event_stream("schedd.a"), SUBJECTS.events("schedd.a")
        async with aclosing(bus.consume(stream, "", subject=subject, ephemeral=True)) as batches:
            first = (await asyncio.wait_for(anext(batches), PATIENCE_S)).messages[0]
        assert (32, 32) == (first.sequence, frames.decode(first.data).number)


async def test_a_bus_that_is_ahead_of_the_log_stops_the_owner(nats: EmbeddedNats) -> None:
    """A log restored from an old copy must not be papered over."""
    async with connected(nats) as bus:
        async with owned(MemoryLog(), bus) as shard:
            await record(shard, 5)
            await on_the_bus(bus, 5)
        with pytest.raises(ExceptionGroup) as stopped:
            async with owned(MemoryLog(), bus) as shard:
                await asyncio.sleep(PATIENCE_S)
        assert "restored from an older copy" in str(stopped.value.exceptions[0])
        assert isinstance(stopped.value.exceptions[0], BusAheadError)


async def test_an_overtaken_owner_is_told_just_that(nats: EmbeddedNats) -> None:
    """If its successor has published more than it knows of, no truth was lost: it is fenced."""
    log = MemoryLog()
    async with connected(nats) as bus, Shard.own(log, "schedd.a", owner="paused") as paused:
        async with owned(log, bus) as shard:
            await record(shard, 5)
            await on_the_bus(bus, 5)
        with pytest.raises(FencedError):
            await relay(bus, log, paused, SUBJECTS)


async def test_an_owner_does_not_begin_on_a_log_that_the_bus_is_ahead_of(nats: EmbeddedNats) -> None:
    """It refuses before it has recorded anything that would contradict what others have seen."""
    async with connected(nats) as bus:
        async with owned(MemoryLog(), bus) as shard:
            await record(shard, 5)
            await on_the_bus(bus, 5)
        async with Shard.own(MemoryLog(), "schedd.a", owner="restored") as shard:
            with pytest.raises(BusAheadError, match="restored from an older copy"):
                await not_ahead(bus, shard, SUBJECTS)


async def test_two_owners_never_publish_a_frame_twice(nats: EmbeddedNats) -> None:
    """A second relay of the same frames changes nothing."""
    log = MemoryLog()
    async with connected(nats) as bus, connected(nats) as other, owned(log, bus) as shard:
        second = asyncio.create_task(relay(other, log, shard, SUBJECTS))
        await asyncio.gather(*(record(shard, 20) for _ in range(5)))
        await on_the_bus(bus, shard.frame)
        await asyncio.sleep(0.2)
        assert not second.done()
        assert shard.frame == await bus.last_sequence(SUBJECTS.event_stream("schedd.a"))
        second.cancel()


async def test_wrong_credentials_are_told_at_once(nats: EmbeddedNats, directory: Path) -> None:
    """Waiting would not help."""
    stranger = directory / "stranger.nk"
    stranger.write_text(KeyPair.new(Kind.USER).seed)
    with pytest.raises(BusUnavailableError, match="does not accept our credentials"):
        async with (
            asyncio.timeout(PATIENCE_S),
            NatsBus.connect(
                nats.url,
                subjects=SUBJECTS,
                identity=daemon("gateway"),
                credentials=str(stranger),
                patience=100 * PATIENCE_S,
            ),
        ):
            pass


async def test_a_server_that_is_not_there_is_waited_for(nats: EmbeddedNats) -> None:
    """As long as the caller has patience."""
    await kill(nats)
    with pytest.raises(BusUnavailableError, match=r"within 0\.5 seconds"):
        async with NatsBus.connect(nats.url, subjects=SUBJECTS, identity=daemon("gateway"), patience=0.5):
            pass
