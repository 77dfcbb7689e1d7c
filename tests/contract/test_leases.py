"""What leases promise over every adapter of the bus."""

import asyncio
from contextlib import aclosing

import pytest

from kettle.bus.leases import KeyLeases
from kettle.bus.ports import BucketSpec, Bus
from kettle.testing.bus_adapters import World
from kettle.testing.patience import PATIENCE_S

TTL = 3.0
"""Seconds: long enough that who renews is not late on a busy machine."""


async def leases(world: World) -> tuple[Bus, KeyLeases]:
    bus = await world.connect()
    await bus.ensure_bucket(BucketSpec(name=world.subjects.leases, memory=False))
    return bus, KeyLeases(bus, world.subjects.leases)


async def test_one_holds_it_and_the_next_gets_it_at_once_when_it_is_released(world: World) -> None:
    """The second waits as long as the first renews, and no longer."""
    _, first = await leases(world)
    _, second = await leases(world)
    held = await first.acquire("shard", "a", ttl=30.0)
    waiting = asyncio.create_task(second.acquire("shard", "b", ttl=30.0))
    _, pending = await asyncio.wait({waiting}, timeout=0.3)
    assert {waiting} == pending
    await held.release()
    async with asyncio.timeout(PATIENCE_S):
        await (await waiting).release()


async def test_different_keys_do_not_contend(world: World) -> None:
    """Each shard has a lease of its own."""
    _, ours = await leases(world)
    async with asyncio.timeout(PATIENCE_S):
        held = [await ours.acquire(key, "a", ttl=30.0) for key in ("x", "y")]
    for lease in held:
        await lease.release()


async def test_what_is_left_of_ones_own_lease_is_taken_over(world: World) -> None:
    """A renewal that was carried out, and whose answer was lost, does not keep its holder waiting."""
    bus, ours = await leases(world)
    await bus.update(world.subjects.leases, "shard", b"a", expect=0, ttl=30 * PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        await (await ours.acquire("shard", "a", ttl=30.0)).release()


async def test_a_lease_outlives_its_time_by_being_renewed(world: World) -> None:
    """Nobody else gets it meanwhile."""
    bus, ours = await leases(world)
    _, theirs = await leases(world)
    held = await ours.acquire("shard", "a", ttl=2 * TTL)
    waiting = asyncio.create_task(theirs.acquire("shard", "b", ttl=TTL))
    async with asyncio.timeout(PATIENCE_S), aclosing(bus.watch(world.subjects.leases, "shard")) as renewals:
        while await anext(renewals) is not None:
            pass
        for _ in range(2):
            await anext(renewals)
            await world.passes(1.2 * TTL)
    assert not waiting.done()
    await held.release()
    async with asyncio.timeout(PATIENCE_S):
        await (await waiting).release()


async def test_the_lease_of_a_dead_holder_runs_out(world: World) -> None:
    """Then the next one gets it."""
    bus, first = await leases(world)
    _, second = await leases(world)
    asked = world.now()
    held = await first.acquire("shard", "a", ttl=1.0)
    await world.leave(bus)

    async def acquired() -> float:
        lease = await second.acquire("shard", "b", ttl=30.0)
        moment = world.now()
        await lease.release()
        return moment

    waiting = asyncio.create_task(acquired())
    await asyncio.sleep(0.2)
    await world.passes(1.1)
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting - asked >= 1.0
    await held.release()


async def test_a_holder_that_was_overtaken_learns_of_it(world: World) -> None:
    """`lost` is done, and releasing does not take the lease from who has it now."""
    bus, ours = await leases(world)
    held = await ours.acquire("shard", "a", ttl=1.0)
    await bus.put(world.subjects.leases, "shard", b"b")
    await asyncio.wait_for(asyncio.ensure_future(held.lost), PATIENCE_S)
    await held.release()
    _, theirs = await leases(world)
    waiting = asyncio.create_task(theirs.acquire("shard", "c", ttl=30.0))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    waiting.cancel()


async def test_a_lost_bucket_does_not_cost_the_lease(world: World) -> None:
    """The holder writes itself into the new bucket."""
    bus, ours = await leases(world)
    _, theirs = await leases(world)
    held = await ours.acquire("shard", "a", ttl=4 * TTL)
    lost = asyncio.ensure_future(held.lost)
    await world.lose_bucket(world.subjects.leases)
    await bus.ensure_bucket(BucketSpec(name=world.subjects.leases, memory=False))
    async with asyncio.timeout(PATIENCE_S), aclosing(bus.watch(world.subjects.leases, "shard")) as changes:
        while (written := await anext(changes)) is None:
            pass
    assert (b"a", False) == (written.value, lost.done())
    waiting = asyncio.create_task(theirs.acquire("shard", "b", ttl=TTL))
    await asyncio.wait({waiting}, timeout=0.3)
    assert not waiting.done()
    await held.release()
    async with asyncio.timeout(PATIENCE_S):
        await (await waiting).release()
    lost.cancel()


async def test_a_lease_shorter_than_the_server_can_count_is_refused(world: World) -> None:
    """With a sentence that says how long it must be."""
    _, ours = await leases(world)
    with pytest.raises(ValueError, match=r"at least 1\.0"):
        await ours.acquire("shard", "a", ttl=0.5)
