"""A machine that is to be empty is so when the results of its jobs are where they belong."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.execution.system.linux import boottime
from kettle.testing.patience import PATIENCE_S
from kettle.testing.submit_side import LEASE, SCHEDD, SubmitSide, script
from kettle.testing.worker import WorkerPool
from kettle_services.startd import startd as module
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.startd import Startd
from kettle_services.startd.wiring import running
from kettle_wire.commands.startd import ALIVE, RELEASE, Alive, ClaimKey, Release
from kettle_wire.identity import daemon
from kettle_wire.subjects import machine_key


async def unconfirmed(submitter: SubmitSide, count: int) -> None:
    """Wait until the machine says that so many results of its jobs have not been recorded."""
    name = machine_key(submitter.startd, f"slot1@{submitter.startd}")
    async with aclosing(submitter.schedd.watch(submitter.subjects.ads)) as changes:
        async for change in changes:
            if change is not None and change.key == name and change.value is not None:
                ad = msgspec.msgpack.decode(change.value)
                if ad.get("UnconfirmedReports") == count:
                    return


@asynccontextmanager
async def machine(pool: WorkerPool, settings: StartdSettings) -> AsyncGenerator[Startd]:
    """A startd, in one of its lives."""
    bus = MemoryBus(pool.server, subjects=pool.submitter.subjects, identity=daemon("startd"))
    try:
        async with running(bus, settings) as startd:
            yield startd
    finally:
        bus.close()


async def ended(pool: WorkerPool, *, given_back: bool) -> ClaimKey:
    """
    A job has ended and its results are still to be fetched; its claim, which the schedd may have given back.
    """
    submitter = pool.submitter
    activation = await submitter.start(script("head -c 700000 /dev/zero > big"))
    await submitter.final(activation)
    if given_back:
        release = Release(claims=[activation.key], reason="enough")
        await submitter.schedd.call(RELEASE, submitter.startd, release)
    return activation.key


async def ends_with_the_results(pool: WorkerPool, startd: Startd) -> None:
    """A peaceful end lasts until the results have arrived, and no longer."""
    finishing = asyncio.create_task(startd.finish(asyncio.Event()))
    await unconfirmed(pool.submitter, 1)
    for _ in range(100):
        await asyncio.sleep(0)  # all that can happen by itself does
    assert not finishing.done()
    assert 1 == len(list(pool.execute.glob("dir_*")))
    await pool.submitter.settle()
    await finishing


async def test_a_peaceful_end_waits_until_results_have_arrived(
    pool: WorkerPool, settings: StartdSettings
) -> None:
    """The machine says in its ads what is still to be fetched from it; while it is in use it does not."""
    async with asyncio.timeout(PATIENCE_S), machine(pool, settings) as startd:
        await ended(pool, given_back=False)
        await ends_with_the_results(pool, startd)
        await unconfirmed(pool.submitter, 0)
        await startd.drain()


@pytest.mark.parametrize("given_back", [False, True])
async def test_a_peaceful_end_waits_for_the_results_of_an_earlier_startd(
    pool: WorkerPool, settings: StartdSettings, *, given_back: bool
) -> None:
    """They are on the disk, and their claim may be gone."""
    async with asyncio.timeout(PATIENCE_S):
        async with machine(pool, settings):
            await ended(pool, given_back=given_back)
        async with machine(pool, settings) as startd:
            await ends_with_the_results(pool, startd)
            await startd.drain()


@pytest.mark.parametrize("given_back", [False, True])
async def test_a_peaceful_end_waits_for_results_as_long_as_their_lease_is_renewed(
    pool: WorkerPool, settings: StartdSettings, monkeypatch: pytest.MonkeyPatch, *, given_back: bool
) -> None:
    """
    The lease that the claim had when its job ended is over by then; a schedd renews also what is gone, until it is on record.
    """
    passed = 0.0
    monkeypatch.setattr(module, "boottime", lambda: boottime() + passed)
    async with asyncio.timeout(PATIENCE_S), machine(pool, settings) as startd:
        claim = await ended(pool, given_back=given_back)
        passed = LEASE * 0.7
        alive = Alive(schedd=SCHEDD, claims=[claim], deadline=boottime() + passed + LEASE)
        assert [] == (await pool.submitter.schedd.call(ALIVE, pool.submitter.startd, alive)).unknown
        passed = LEASE * 1.4
        await ends_with_the_results(pool, startd)
        await startd.drain()
