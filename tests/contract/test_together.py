"""
What every adapter of the bus promises about messages that are stored together, and about reading from a time on.
"""

import asyncio
from contextlib import aclosing

import pytest

from kettle.bus.ports import Bus, BusError, Message, Post, StreamSpec, WrongSequenceError
from kettle.testing.bus_adapters import World
from kettle.testing.patience import PATIENCE_S


def spec(world: World, **more: object) -> StreamSpec:
    fields: dict[str, object] = {
        "name": world.subjects.monitor_stream,
        "subjects": [world.subjects.tail_all],
        "transform": world.subjects.monitor_transform,
        "together": True,
    }
    return StreamSpec(**(fields | more))  # type: ignore[arg-type]


def posts(world: World, *texts: str) -> list[Post]:
    return [
        Post(world.subjects.tail("a", number, 0, "job.held"), text.encode())
        for number, text in enumerate(texts)
    ]


async def stored(bus: Bus, stream: str, count: int, *, subject: str = ">", since: float = 0) -> list[Message]:
    """The first `count` messages."""
    got: list[Message] = []
    reading = bus.consume(stream, "", subject=subject, ephemeral=True, since=since)
    async with aclosing(reading) as batches, asyncio.timeout(PATIENCE_S):
        while len(got) < count:
            got += (await anext(batches)).messages
    return got


async def test_messages_are_stored_together_with_a_note(world: World) -> None:
    """They follow one another, and the note is found with the last of them."""
    bus = await world.connect()
    stream = spec(world)
    assert 0 == await bus.ensure_stream(stream)
    assert (0, "") == await bus.last_note(stream.name)
    assert 3 == await bus.append_together(posts(world, "1", "2", "3"), expect_last=0, note="three")
    assert (3, "three") == await bus.last_note(stream.name)
    assert 4 == await bus.append_together(posts(world, "4"), expect_last=3, note="four")
    assert (4, "four") == await bus.last_note(stream.name)
    assert [(n, str(n).encode()) for n in range(1, 5)] == [
        (message.sequence, message.data) for message in await stored(bus, stream.name, 4)
    ]


async def test_who_is_mistaken_about_the_end_stores_nothing(world: World) -> None:
    """Of messages that would not come right after the expected one, none is stored."""
    bus = await world.connect()
    stream = spec(world)
    await bus.ensure_stream(stream)
    await bus.append_together(posts(world, "1", "2"), expect_last=0, note="two")
    for wrong in (0, 1, 3):
        with pytest.raises(WrongSequenceError):
            await bus.append_together(posts(world, "x", "y"), expect_last=wrong, note="wrong")
    assert (2, "two") == await bus.last_note(stream.name)


async def test_so_many_at_once_and_no_more(world: World) -> None:
    """A thousand messages are stored together; none at all, or more, is refused before anything is sent."""
    bus = await world.connect()
    stream = spec(world)
    await bus.ensure_stream(stream)
    assert 1000 == await bus.append_together(posts(world, *map(str, range(1000))), expect_last=0)
    for wrong in (0, 1001):
        with pytest.raises(BusError, match="1 to 1000"):
            await bus.append_together(posts(world, *map(str, range(wrong))), expect_last=1000)
    assert 1000 == await bus.last_sequence(stream.name)


async def test_job_ids_are_not_stored(world: World) -> None:
    """A live subject loses its job ids when it is stored; one of another shape is stored as it is."""
    bus = await world.connect()
    stream = spec(world)
    await bus.ensure_stream(stream)
    live: list[str] = []
    heard = asyncio.Event()

    def hear(subject: str, _data: bytes) -> None:
        live.append(subject)
        if len(live) == 2:
            heard.set()

    await bus.listen(world.subjects.tail_all, hear)
    said = [world.subjects.tail("a.b", 12, 3, "job.held"), world.subjects.tail_pool("machine.left")]
    await bus.append_together([Post(subject, b"") for subject in said], expect_last=0)
    await asyncio.wait_for(heard.wait(), PATIENCE_S)
    assert said == live
    kept = [message.subject for message in await stored(bus, stream.name, 2)]
    assert [world.subjects.monitor("a.b", "job.held"), said[1]] == kept
    only = await stored(bus, stream.name, 1, subject=world.subjects.monitor("a.b"))
    assert [kept[0]] == [message.subject for message in only]


async def test_a_reader_begins_at_a_time(world: World) -> None:
    """What was stored before `since` is passed over."""
    bus = await world.connect()
    stream = spec(world)
    await bus.ensure_stream(stream)
    await bus.append_together(posts(world, "early"), expect_last=0)
    await world.passes(0.1)
    now = world.now()
    await world.passes(0.1)
    await bus.append_together(posts(world, "late"), expect_last=1)
    assert [b"late"] == [message.data for message in await stored(bus, stream.name, 1, since=now)]


async def test_what_is_there_is_read_to_its_end(world: World) -> None:
    """A reading ends with what the stream has of a subject, which may be nothing."""
    bus = await world.connect()
    stream = spec(world)
    await bus.ensure_stream(stream)
    mine = world.subjects.monitor("a")
    assert [] == [message async for message in bus.read(stream.name, subject=mine)]
    await bus.append_together(posts(world, *map(str, range(10))), expect_last=0)
    await bus.append_together([Post(world.subjects.tail_pool("machine.left"), b"")], expect_last=10)
    await world.everywhere(stream.name)  # a reader on a replica that lags sees the end that this has
    async with asyncio.timeout(PATIENCE_S):
        read = [int(message.data) async for message in bus.read(stream.name, subject=mine, batch=3)]
        later = [int(message.data) async for message in bus.read(stream.name, subject=mine, after=8)]
        nothing = [message async for message in bus.read(stream.name, subject=mine, after=10)]
    assert list(range(10)) == read
    assert [8, 9] == later
    assert [] == nothing


async def test_streams_are_found_by_their_subjects(world: World) -> None:
    """A filter finds the subjects of all streams that take anything of it, and of no others."""
    bus = await world.connect()
    assert [] == await bus.stored_subjects(world.subjects.events_all)
    names = {f"schedd.ap{number}" for number in range(3)}
    for name in names:
        subjects = [world.subjects.events(name)]
        await bus.ensure_stream(StreamSpec(name=world.subjects.event_stream(name), subjects=subjects))
    await bus.ensure_stream(spec(world))
    found = await bus.stored_subjects(world.subjects.events_all)
    assert names == set(map(world.subjects.shard_of, found))
    assert len(names) == len(found)
