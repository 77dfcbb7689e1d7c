"""What every adapter of the bus promises of streams and their readers. Commands are in test_commands.py."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from kettle.bus.batching import BatchingDelay
from kettle.bus.ports import (
    Batch,
    Bus,
    BusUnavailableError,
    NoResponderError,
    RefusedError,
    ReplyTimeoutError,
    StreamSpec,
    WrongSequenceError,
)
from kettle.testing.bus_adapters import MemoryWorld, World
from kettle.testing.patience import PATIENCE_S


async def take(
    bus: Bus, stream: str, subject: str, count: int, *, durable: str = "d", after: int = 0
) -> list[bytes]:
    """Read and acknowledge until `count` messages came."""
    got: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        async with aclosing(bus.consume(stream, durable, subject=subject, after=after)) as batches:
            async for batch in batches:
                got += [message.data for message in batch.messages]
                await batch.ack()
                if len(got) >= count:
                    break
    return got


async def collect(batches: AsyncGenerator[Batch, None], count: int) -> list[bytes]:
    got: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(got) < count:
            got += [message.data for message in (await anext(batches)).messages]
    return got


def stream(world: World) -> tuple[str, str]:
    return world.subjects.event_stream("x"), world.subjects.events("x")


async def found(bus: Bus, name: str) -> int | None:
    """The newest number of a stream, if there is one whose leader is known."""
    try:
        return await bus.last_sequence(name)
    except ReplyTimeoutError:
        return None


async def stored(bus: Bus, subject: str, data: bytes) -> None:
    """Append to a stream that somebody else made: in a cluster not every server knows of it at once."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await bus.append(subject, data)
            except NoResponderError:
                await asyncio.sleep(0.02)
            else:
                return


async def test_what_is_too_large_is_refused(world: World) -> None:
    """A message beyond the server's limit is refused before it is sent."""
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    with pytest.raises(RefusedError) as refused:
        await bus.append(subject, bytes(bus.payload_limit + 1))
    assert "too_large" == refused.value.code


async def test_a_stream_counts_from_where_it_is_told(world: World) -> None:
    """So that the sequence can be the number of a frame."""
    bus = await world.connect()
    name, subject = stream(world)
    assert await bus.last_sequence(name) is None
    assert await bus.first_sequence(name) is None
    with pytest.raises(NoResponderError):
        await bus.append(subject, b"x")
    assert 41 == await bus.ensure_stream(StreamSpec(name=name, subjects=[subject], first_sequence=42))
    assert [42, 43] == [await bus.append(subject, b"x"), await bus.append(subject, b"x", expect_last=42)]
    assert 43 == await bus.ensure_stream(StreamSpec(name=name, subjects=[subject], first_sequence=7))
    assert 43 == await bus.last_sequence(name)
    assert await bus.first_sequence(name) in {42, 43}


async def test_a_guarded_append_wants_the_last_sequence(world: World) -> None:
    """Of many that expect the same one wins, and the error says what was expected."""
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    outcomes = await asyncio.gather(
        *(bus.append(subject, bytes([i]), expect_last=0) for i in range(5)), return_exceptions=True
    )
    assert [1] == [o for o in outcomes if isinstance(o, int)]
    assert [0] * 4 == [o.expected for o in outcomes if isinstance(o, WrongSequenceError)]


async def test_guarded_appends_may_be_sent_at_once(world: World) -> None:
    """Those that are sent in order arrive in order."""
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    sequences = await asyncio.gather(*(bus.append(subject, b"%d" % i, expect_last=i) for i in range(200)))
    assert list(range(1, 201)) == sequences
    assert [b"%d" % i for i in range(200)] == await take(bus, name, subject, 200)


async def test_a_durable_reader_goes_on_after_what_it_acknowledged(world: World) -> None:
    """Across connections; what was not acknowledged comes again, in order."""
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    for i in range(5):
        await bus.append(subject, b"%d" % i)
    first = await world.connect()
    assert [b"1", b"2", b"3", b"4"] == await take(first, name, subject, 4, after=1)
    await bus.append(subject, b"5")
    await bus.append(subject, b"6")
    async with aclosing(first.consume(name, "d", subject=subject)) as batches:
        assert b"5" == (await collect(batches, 1))[0]
    await world.leave(first)
    assert [b"5", b"6"] == await take(await world.connect(), name, subject, 2)


async def test_a_cancelled_reader_has_acknowledged_nothing(world: World) -> None:
    """
    Cancellation is not completion: what was in hand, committed by nobody, comes again to the next reader.
    """
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    await bus.append(subject, b"1")
    in_hand = asyncio.Event()

    async def commit() -> None:
        async with aclosing(bus.consume(name, "d", subject=subject)) as batches:
            async for batch in batches:
                in_hand.set()
                await asyncio.Event().wait()  # a transaction that does not end
                await batch.ack()

    reading = asyncio.create_task(commit())
    await asyncio.wait_for(in_hand.wait(), PATIENCE_S)
    reading.cancel()
    await asyncio.wait([reading])
    assert [b"1"] == await take(bus, name, subject, 1)


async def test_a_reader_without_a_name_leaves_nothing_behind(world: World) -> None:
    """It reads what follows the given sequence, each time again."""
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    for i in range(1, 6):
        await bus.append(subject, b"%d" % i)
    for _ in range(2):
        async with aclosing(bus.consume(name, "", subject=subject, after=3, ephemeral=True)) as batches:
            assert [b"4", b"5"] == await collect(batches, 2)


async def test_only_the_wanted_subjects_are_read(world: World) -> None:
    """The filter is the reader's."""
    bus = await world.connect()
    await bus.ensure_stream(StreamSpec(name=world.subjects.work_stream, subjects=[world.subjects.work_all]))
    for schedd in ("a", "b", "a"):
        await bus.append(world.subjects.work(schedd, "host.example.org"), schedd.encode())
    assert [b"a", b"a"] == await take(bus, world.subjects.work_stream, world.subjects.work_of("a"), 2)


async def test_a_reader_waits_for_a_stream_that_comes_later(world: World) -> None:
    """Services may start in any order."""
    bus = await world.connect()
    name, subject = stream(world)
    reading = asyncio.create_task(take(bus, name, subject, 1))
    await asyncio.sleep(0.1)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    await bus.append(subject, b"x")
    assert [b"x"] == await reading


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_a_stream_that_is_made_again_is_read_from_its_beginning(world: World, ephemeral: bool) -> None:
    """A reader in the middle of a lost stream goes over to its successor by itself."""
    bus = await world.connect()
    name, subject = stream(world)
    spec = StreamSpec(name=name, subjects=[subject], remake=False)
    await bus.ensure_stream(spec)
    await bus.append(subject, b"old")
    async with aclosing(bus.consume(name, "d", subject=subject, ephemeral=ephemeral)) as batches:
        assert [b"old"] == await collect(batches, 1)
        await world.lose(name)
        await bus.ensure_stream(spec)
        await bus.append(subject, b"new")
        assert [b"new"] == await collect(batches, 1)


async def test_a_lost_stream_is_made_again_by_who_ensured_it(world: World) -> None:
    """A reader that misses it makes it, unless somebody refills it."""
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    await bus.append(subject, b"old")
    async with aclosing(bus.consume(name, "d", subject=subject)) as batches:
        assert [b"old"] == await collect(batches, 1)
        await world.lose(name)
        reading = asyncio.create_task(collect(batches, 1))
        async with asyncio.timeout(PATIENCE_S):
            while await found(bus, name) is None:
                await asyncio.sleep(0.02)
        await stored(bus, subject, b"new")
        assert [b"new"] == await reading


def objects(world: World, *, most: int = -1) -> StreamSpec:
    subjects = [world.subjects.objects_all]
    return StreamSpec(name=world.subjects.object_stream, subjects=subjects, objects=True, max_messages=most)


async def test_the_newest_of_each_subject_is_found(world: World) -> None:
    """By its subject alone; what was never stored is not, nor what is in a stream that nobody made."""
    bus = await world.connect()
    stream, piece = world.subjects.object_stream, world.subjects.object_piece
    assert None is await bus.newest(stream, piece("a", 0))
    await bus.ensure_stream(objects(world))
    for number, data in ((0, b"old"), (1, b"other"), (0, b"new")):
        await bus.append(piece("a", number), data, ttl=60.0)
    found = [await bus.newest(stream, piece("a", number)) for number in range(3)]

    assert [b"new", b"other", None] == found


async def test_an_object_ends_by_itself(world: World) -> None:
    """Nobody has to take it away; others stay."""
    bus = await world.connect()
    stream, piece = world.subjects.object_stream, world.subjects.object_piece
    await bus.ensure_stream(objects(world))
    await bus.append(piece("a", 0), b"short", ttl=1.0)
    await bus.append(piece("b", 0), b"long", ttl=600.0)
    async with asyncio.timeout(PATIENCE_S):
        while await bus.newest(stream, piece("a", 0)) is not None:
            await world.passes(0.5)

    assert b"long" == await bus.newest(stream, piece("b", 0))


async def test_a_full_store_of_objects_refuses(world: World) -> None:
    """What is in it is somebody's."""
    bus = await world.connect()
    stream, piece = world.subjects.object_stream, world.subjects.object_piece
    await bus.ensure_stream(objects(world, most=1))
    await bus.append(piece("a", 0), b"x" * 3000, ttl=600.0)
    with pytest.raises(BusUnavailableError):
        await bus.append(piece("b", 0), b"y" * 3000, ttl=600.0)
    found = [await bus.newest(stream, piece(name, 0)) for name in "ab"]

    assert [b"x" * 3000, None] == found


async def test_messages_gather_for_who_has_the_time(world: World) -> None:
    """
    One batch instead of three; who is waited for takes what is there, and who is behind does not wait at all.
    """
    name, subject = stream(world)
    bus = await world.connect()
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    # Much longer than three messages take that are sent at once: in memory they take none.
    gather = BatchingDelay(0.2 if isinstance(world, MemoryWorld) else 6.0)
    reading = bus.consume(name, "", subject=subject, ephemeral=True, gather=gather)
    async with aclosing(reading) as batches:
        first = asyncio.create_task(anext(batches))
        await asyncio.gather(*(bus.append(subject, data) for data in (b"1", b"2", b"3")))
        assert [b"1", b"2", b"3"] == [message.data for message in (await first).messages]

        with gather.hurried():
            for data in (b"4", b"5"):
                await bus.append(subject, data)
                assert [data] == [message.data for message in (await anext(batches)).messages]
