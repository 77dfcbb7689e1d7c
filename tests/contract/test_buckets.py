"""What every adapter of the bus promises of its key-value buckets."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from kettle.bus.ports import BucketSpec, Bus, KeyChange, NoResponderError, WrongSequenceError
from kettle.testing.bus_adapters import World
from kettle.testing.patience import PATIENCE_S

Changes = AsyncGenerator[KeyChange | None, None]


async def some(changes: Changes, count: int) -> list[tuple[str, bytes | None] | None]:
    """The next changes, without their revisions."""
    async with asyncio.timeout(PATIENCE_S):
        got = [await anext(changes) for _ in range(count)]
    return [(change.key, change.value) if change else None for change in got]


async def bucket(world: World, bus: Bus, *, ttl: float = 0.0) -> str:
    await bus.ensure_bucket(BucketSpec(name=world.subjects.ads, ttl=ttl))
    return world.subjects.ads


async def begun(bus: Bus, bucket: str, changes: Changes) -> None:
    """
    Show that the watch of an empty bucket has begun. One that must begin a second time, because its first question came
    before a cluster had elected who answers it, hears only of what is there then: of what came and went before, nothing.
    """
    assert [None] == await some(changes, 1)
    await bus.put(bucket, "first", b"0")
    assert [("first", b"0")] == await some(changes, 1)


async def arrived(world: World, bus: Bus, bucket: str) -> None:
    """Everything put before has reached the bucket, wherever it is kept."""
    await bus.update(bucket, "last", b"", expect=0)
    await world.everywhere(f"KV_{bucket}")


async def test_a_watch_begins_with_what_is_there(world: World) -> None:
    """Present entries, the newest of each key; then None; then each change."""
    bus, watcher = await world.connect(), await world.connect()
    ads = await bucket(world, bus)
    for key, value in (("Machine.a", b"1"), ("Machine.b", b"2"), ("Machine.a", b"3"), ("Machine.c", b"4")):
        await bus.put(ads, key, value)
    await bus.delete(ads, "Machine.c")
    await arrived(world, bus, ads)
    async with aclosing(watcher.watch(ads)) as changes:
        present = [("Machine.b", b"2"), ("Machine.a", b"3"), ("Machine.c", None), ("last", b""), None]
        assert present == await some(changes, 5)
        await bus.put(ads, "Machine.a", b"5")
        assert [("Machine.a", b"5")] == await some(changes, 1)
        await bus.delete(ads, "Machine.a")
        assert [("Machine.a", None)] == await some(changes, 1)


async def test_an_entry_is_read_as_it_is_now(world: World) -> None:
    """
    The newest value that was confirmed; None for what was withdrawn, was never there, or is in no bucket.
    """
    bus, reader = await world.connect(), await world.connect()
    ads = await bucket(world, bus)
    await bus.put(ads, "Machine.a", b"1")
    revision = await bus.update(ads, "Machine.b", b"2", expect=0)
    await bus.update(ads, "Machine.b", b"3", expect=revision)
    await bus.put(ads, "Machine.c", b"4")
    await bus.delete(ads, "Machine.c")
    await arrived(world, bus, ads)
    found = [await reader.get(ads, f"Machine.{name}") for name in "abcd"]
    assert [b"1", b"3", None, None] == found
    assert None is await reader.get(world.subjects.leases, "x")


async def test_a_watch_of_an_empty_bucket_says_so_at_once(world: World) -> None:
    """None comes also when nothing is there."""
    bus = await world.connect()
    ads = await bucket(world, bus)
    async with aclosing(bus.watch(ads)) as changes:
        assert [None] == await some(changes, 1)


async def test_a_watch_sees_only_its_keys(world: World) -> None:
    """A filter is for tokens, as in subjects."""
    bus = await world.connect()
    ads = await bucket(world, bus)
    await bus.put(ads, "Machine.a", b"1")
    await bus.put(ads, "Submitter.a", b"2")
    await arrived(world, bus, ads)
    async with aclosing(bus.watch(ads, "Machine.>")) as changes:
        assert [("Machine.a", b"1"), None] == await some(changes, 2)
        await bus.put(ads, "Submitter.b", b"3")
        await bus.put(ads, "Machine.b", b"4")
        assert [("Machine.b", b"4")] == await some(changes, 1)


async def test_an_entry_that_is_not_renewed_expires(world: World) -> None:
    """
    Watchers hear of it as of a deletion; an entry of its own shorter life goes first, one that was renewed stays.
    """
    bus = await world.connect()
    ads = await bucket(world, bus, ttl=3.0)
    heard: list[tuple[str, bytes | None] | None] = []
    async with aclosing(bus.watch(ads)) as changes, asyncio.TaskGroup() as tasks:
        await begun(bus, ads, changes)
        await bus.put(ads, "kept", b"1")
        await bus.put(ads, "kept", b"2", ttl=600.0)
        await bus.put(ads, "long", b"3")
        await bus.put(ads, "short", b"4", ttl=1.0)

        async def listen() -> None:
            while ("long", None) not in heard:
                heard.extend(await some(changes, 1))

        listening = tasks.create_task(listen())
        while not listening.done():
            await world.passes(0.5)
            await asyncio.sleep(0)
    assert heard.index(("short", None)) < heard.index(("long", None))
    assert ("kept", None) not in heard


async def test_a_slow_watcher_learns_of_what_expired_meanwhile(world: World) -> None:
    """It hears of what was there, and of its end."""
    bus = await world.connect()
    ads = await bucket(world, bus)
    async with aclosing(bus.watch(ads)) as changes:
        await begun(bus, ads, changes)
        await bus.put(ads, "short", b"1", ttl=1.0)
        await bus.update(ads, "long", b"2", expect=0, ttl=60.0)
        await world.passes(2.5)
        assert [("short", b"1"), ("long", b"2"), ("short", None)] == await some(changes, 3)


async def test_a_guarded_update_wants_the_revision(world: World) -> None:
    """Revision 0 is for an entry that is not there; a deletion has a revision, too."""
    bus = await world.connect()
    ads = await bucket(world, bus)
    first = await bus.update(ads, "k", b"1", expect=0)
    for wrong in (0, first + 1):
        with pytest.raises(WrongSequenceError):
            await bus.update(ads, "k", b"x", expect=wrong)
    second = await bus.update(ads, "k", b"2", expect=first)
    await bus.delete(ads, "k", expect=first)  # too late: somebody has it
    third = await bus.update(ads, "k", b"3", expect=second)
    await bus.delete(ads, "k", expect=third)
    await arrived(world, bus, ads)
    async with aclosing(bus.watch(ads)) as changes:
        async with asyncio.timeout(PATIENCE_S):
            deleted = await anext(changes)
    assert deleted is not None
    assert ("k", None) == (deleted.key, deleted.value)
    assert deleted.revision < await bus.update(ads, "k", b"4", expect=deleted.revision)


async def test_there_is_no_update_without_a_bucket(world: World) -> None:
    """An unconfirmed put is lost, a confirmed one says so."""
    bus = await world.connect()
    await bus.put(world.subjects.ads, "k", b"1")
    with pytest.raises(NoResponderError):
        await bus.update(world.subjects.ads, "k", b"1", expect=0)


async def test_a_lost_bucket_is_made_again_and_filled_again(world: World) -> None:
    """
    The watch starts over; the service that ensured the bucket is notified to send again; entries that are not sent
    again expire.
    """
    bus = await world.connect()
    returned = asyncio.Event()
    bus.on_return(returned.set)
    ads = await bucket(world, bus, ttl=6.0)
    await bus.put(ads, "dead", b"1")
    await bus.put(ads, "alive", b"2")
    await arrived(world, bus, ads)
    async with aclosing(bus.watch(ads)) as changes:
        assert [("dead", b"1"), ("alive", b"2"), ("last", b""), None] == await some(changes, 4)
        await world.lose_bucket(ads)
        heard: list[tuple[str, bytes | None] | None] = []

        async def listen(*wanted: tuple[str, bytes | None] | None) -> None:
            while not set(wanted) <= set(heard):
                heard.extend(await some(changes, 1))

        listening = asyncio.create_task(listen(None))
        await asyncio.wait_for(returned.wait(), PATIENCE_S)
        await listening
        await bus.put(ads, "alive", b"3")
        await listen(("alive", b"3"))
        listening = asyncio.create_task(listen(("dead", None), ("last", None), ("alive", None)))
        await world.passes(6.1)
        await listening


async def test_a_watch_reads_many_entries(world: World) -> None:
    """More than fit into one request, each once."""
    bus = await world.connect()
    ads = await bucket(world, bus)
    for i in range(2_500):
        await bus.put(ads, f"Machine.{i}", b"%d" % i)
    await arrived(world, bus, ads)
    got: list[str] = []
    async with aclosing(bus.watch(ads)) as changes, asyncio.timeout(PATIENCE_S):
        async for change in changes:
            if change is None:
                break
            got.append(change.key)
    assert [*(f"Machine.{i}" for i in range(2_500)), "last"] == got
