"""The pool that tests use in turn: what one leaves, the next does not find."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kettle.client import select
from kettle.pool import processes
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.ads import Ad
from kettle_wire.events import JobStarted

from .waiting import happened

SLEEPS = "executable = /bin/sleep\narguments = 600\n"
STAYS = "executable = /bin/true\nleave_in_queue = true\nrequirements = false\nqueue 3\n"


async def slot_with(pool: ThrowawayPool, constraint: str) -> Ad:
    """The ad of the only slot, when the collector has the one of a startd that was configured so."""
    async with asyncio.timeout(PATIENCE_S):
        while not (slots := await pool.client.ads("Machine", constraint=constraint)):
            await asyncio.sleep(0.05)
    (slot,) = slots
    return slot


async def test_jobs_and_claims_are_gone_and_settings_are_those_that_are_wanted(
    shared_pool: SharedPool, tmp_path: Path
) -> None:
    """
    Jobs that run, wait, and stay in the queue after their end leave it; what has other settings starts again, and
    nothing else does.
    """
    async with shared_pool.lent() as pool:
        before = {daemon.name: daemon.pid for daemon in pool.state.daemons}
        starts = shared_pool.starts
        running = (await pool.client.submit(f"{SLEEPS}queue 2\n", cwd=tmp_path)).cluster
        for proc in range(2):
            await happened(pool.client, f"{running}.{proc}", JobStarted)
        staying = (await pool.client.submit(STAYS, cwd=tmp_path)).cluster
        await pool.client.remove(select(f"{staying}.0"))
        waiting = (
            await pool.client.submit(f"{SLEEPS}max_idle = 2\nrequirements = false\nqueue 100\n", cwd=tmp_path)
        ).cluster
        seen = {ad["ClusterId"] for ad in await pool.client.jobs()}
        assert {running, staying, waiting} == seen
        assert 2 == len(pool.sandboxes)
        async with asyncio.timeout(PATIENCE_S):  # one that has just been forked is not yet what it will be
            while 2 != len([line for line in pool.processes() if "sleep 600" in line]):
                await asyncio.sleep(0.05)

    rack = {"startd": {"attributes": {"Rack": "r7"}}}
    async with shared_pool.lent(cpus=3, settings=rack) as again:
        assert pool is again
        assert [] == await again.client.jobs()
        assert [] == (await again.client.queue()).unmade
        assert [] == again.sandboxes
        assert [] == [line for line in again.processes() if "sleep" in line]
        slot = await slot_with(again, 'Rack =?= "r7"')
        assert ("Unclaimed", 3) == (slot["State"], slot["Cpus"])
        assert 'attributes = { "Rack" = "r7" }' in (again.home / "kettle.toml").read_text()
        assert "r7" in str(again.settings["startd"])
        assert {"running"} == {daemon.status for daemon in again.state.daemons}
        after = {daemon.name: daemon.pid for daemon in again.state.daemons}
        assert {"startd"} == {name for name, pid in after.items() if before[name] != pid}

    assert again.lives
    async with shared_pool.lent() as last:
        assert pool is last
        assert "r7" not in (last.home / "kettle.toml").read_text()
        assert 2 == (await slot_with(last, "Rack =?= undefined"))["Cpus"]
        assert starts == shared_pool.starts


@pytest.fixture
def own(tmp_path: Path, template: Path) -> Iterator[SharedPool]:
    with SharedPool(tmp_path / "own", template=template, within_s=5.0) as pool:
        yield pool


async def test_what_a_failure_left_is_not_handed_on(own: SharedPool, tmp_path: Path) -> None:
    """
    After a test that failed, and after one that left what does not go away, the pool ends, and the next test has a new one.
    """
    async with AsyncExitStack() as stack:
        broken = await stack.enter_async_context(own.lent())
        await broken.client.hosts.control("off", daemons=["negotiator"])
        with pytest.raises(TimeoutError):
            await stack.aclose()
    assert (1, False, []) == (own.starts, broken.lives, broken.left)

    async with own.lent() as failed:
        master = failed.state.pid
        await failed.client.submit(f"{SLEEPS}queue\n", cwd=tmp_path)
        own.spoil()
    assert broken is not failed
    assert broken.home != failed.home
    assert [] == failed.sandboxes
    assert [] == [line for line in failed.processes() if "sleep" in line]
    assert (2, False, []) == (own.starts, failed.lives, failed.left)
    assert not processes.start_ticks(master)
