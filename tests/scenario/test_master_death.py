"""The master is killed: its services end with it, jobs go on for the length of their leases."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from kettle.client import select
from kettle.pool import processes
from kettle.pool.home import Home
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import SHORT_LEASE, ThrowawayPool, throwaway_pool
from kettle_wire.jobs import JobId

from .evidence import Evidence, verified
from .test_basic import ended, happened
from .test_master import COMPLETED, attempts, held_up, open_up


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)


def services(pool: ThrowawayPool) -> list[str]:
    """The pool's living processes that are no starters, and no jobs."""
    home = Home(pool.home)
    return [each.command for each in processes.of_services(home.pool_id(), home.execute)]


async def test_the_next_master_takes_over_what_runs(
    tmp_path: Path, template: Path, evidence: Evidence
) -> None:
    """
    A job outlives its master and all services; after the next `kettle up` the same attempt ends, counted once.
    """
    gate = evidence.directory / "gate"
    async with throwaway_pool(tmp_path, cpus=1, template=template) as pool:
        cluster = await held_up(pool, gate)
        (sandbox,) = pool.sandboxes
        before = pool.processes()
        pool.kill_master()
        await until(lambda: not services(pool))
        job = {process for process in pool.processes() if "kettle_services.starter" not in process}
        assert job
        assert job <= set(before)
        await pool.start()
        assert job <= set(pool.processes())
        await open_up(gate)
        assert COMPLETED == await ended(pool.client, cluster)
        assert (1, 0) == await attempts(pool.client, cluster)
        async with asyncio.timeout(PATIENCE_S):
            while not (history := await pool.client.history(select(cluster))):
                await asyncio.sleep(0.05)
        assert [1] == [ad["NumJobStarts"] for ad in history]
        await until(lambda: not sandbox.exists())
        audit = await pool.log_check()
        assert audit.clean, audit.said
    assert [] == pool.left


async def test_without_a_next_master_a_job_ends_with_its_lease(
    tmp_path: Path, template: Path, evidence: Evidence
) -> None:
    """
    When nobody comes, the lease ends the job, and of the pool nothing runs any more; the next master has it run again.
    """
    async with throwaway_pool(tmp_path, cpus=1, template=template, settings={"schedd": SHORT_LEASE}) as pool:
        submitted = await pool.client.submit(evidence.sweep([600.0], again=0.0), cwd=evidence.work)
        job = JobId(submitted.cluster, 0)
        async with asyncio.timeout(PATIENCE_S):
            while not (evidence.runs() and "JobStarted" in happened(await pool.client.events(job))):
                await asyncio.sleep(0.05)
        pool.kill_master()
        await until(lambda: not pool.processes())
        assert [] == pool.sandboxes
        await pool.start()
        await asyncio.wait_for(pool.client.wait(select(job)), PATIENCE_S)
        await verified(pool, evidence, submitted.cluster, 1)
        assert {0: 2} == evidence.runs()
    assert [] == pool.left
