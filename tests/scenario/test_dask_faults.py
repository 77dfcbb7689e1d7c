"""Dask clusters while what they stand on is killed, and while they are scaled up and down again and again."""

# distributed has no types:
# pyright: reportUnknownArgumentType=false, reportGeneralTypeIssues=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

import asyncio
import faulthandler
import logging
import os
import time
from typing import Any, Final

import numpy as np
import pytest
from distributed import Client, wait

from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, merged

from .dask_pools import SETTINGS, cluster_in, jobs_left, kill

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        "KETTLE_TEST_LONG" not in os.environ,
        reason="it takes minutes: clusters that are broken and scaled (KETTLE_TEST_LONG=1 breaks them)",
    ),
]

LOG: Final = logging.getLogger(__name__)
SMALL: Final = {"cores": 1, "memory": "200 MB", "disk": "64 MiB"}
ROUNDS: Final = 20
MANY: Final = 50


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    """More slots than the machine has cores: what the workers do here is little."""
    return {"cpus": 52, "memory_mib": 64 * 1024, "settings": merged(SETTINGS, {"sessions": {"limit": 50}})}


async def gone(pool: ThrowawayPool, within_s: float = 60.0) -> None:
    """No job is left of any cluster."""
    async with asyncio.timeout(within_s):
        while await jobs_left(pool):
            await asyncio.sleep(0.1)


async def test_a_scheduler_is_killed(pool: ThrowawayPool) -> None:
    """
    The session says that it is degraded, its client gets an error and does not hang, another scheduler comes, workers join it,
    and a new client computes; afterwards nothing is left.
    """
    async with cluster_in(pool, 2, **SMALL) as cluster:
        before = cluster.scheduler_address
        client = await Client(cluster, asynchronous=True)
        await client.wait_for_workers(2, timeout=PATIENCE_S)
        assert cluster.situation is not None
        slow = client.submit(time.sleep, 600)
        killed = time.monotonic()
        kill(cluster.situation.scheduler_job)
        async with asyncio.timeout(PATIENCE_S):
            while cluster.situation.state == "ready" and cluster.scheduler_address == before:
                await asyncio.sleep(0.01)
        LOG.info("%s", f"{cluster.situation.state} after {time.monotonic() - killed:.2f} s: {cluster.why()}")
        async with asyncio.timeout(PATIENCE_S):
            while cluster.scheduler_address == before or cluster.status.name != "running":
                await asyncio.sleep(0.01)
        LOG.info("%s", f"another scheduler after {time.monotonic() - killed:.2f} s")
        with pytest.raises(Exception):  # noqa: B017  Dask has several for it
            await asyncio.wait_for(slow, PATIENCE_S)
        await client.close()
        async with Client(cluster, asynchronous=True) as again:
            await again.wait_for_workers(2, timeout=PATIENCE_S)
            assert 3 == await again.submit(sum, [1, 2])
        LOG.info("%s", f"two workers after {time.monotonic() - killed:.2f} s")
    await gone(pool)


@pytest.mark.parametrize("role", ["gateway", "sessions", "shadow", "schedd", "startd", "nats"])
async def test_a_service_is_killed(pool: ThrowawayPool, role: str) -> None:
    """What is computed goes on, and the cluster can be scaled afterwards."""
    async with cluster_in(pool, 2, **SMALL) as cluster, Client(cluster, asynchronous=True) as client:
        await client.wait_for_workers(2, timeout=PATIENCE_S)
        jobs = set(await jobs_left(pool))
        futures = client.map(lambda n: (pow(3, 300_000), n)[1], range(100), pure=False)
        pid = pool.kill(role)
        assert list(range(100)) == await asyncio.wait_for(client.gather(futures), PATIENCE_S)
        await pool.restarted(role, after=pid)
        assert jobs == set(await jobs_left(pool)), "no job was lost or doubled"
        assert cluster.why().startswith(("ready", "degraded", "starting")), cluster.why()
        await cluster.scale(3)
        await client.wait_for_workers(3, timeout=PATIENCE_S)
    await gone(pool)


async def test_up_to_fifty_and_back(pool: ThrowawayPool) -> None:
    """
    Twenty times: scaled up, and adapted down by a load that is none, without a lost result, and without a job that is left.
    """
    faulthandler.cancel_dump_traceback_later()  # what ends a test that hangs knows nothing of this one
    async with cluster_in(pool, 4, **SMALL) as cluster, Client(cluster, asynchronous=True) as client:
        await client.wait_for_workers(4, timeout=PATIENCE_S)
        kept = client.map(lambda n: np.full(1000, n), range(200), pure=False)
        await wait(kept)
        for _ in range(ROUNDS):
            began = time.monotonic()
            await cluster.scale(MANY)
            await client.wait_for_workers(MANY, timeout=20 * PATIENCE_S)
            up = time.monotonic() - began
            await client.rebalance()
            await cluster.adapt(minimum=4, maximum=MANY)
            async with asyncio.timeout(20 * PATIENCE_S):
                while len(cluster.scheduler_info["workers"]) > 4:
                    await asyncio.sleep(0.05)
            LOG.info("%s", f"4 to {MANY}: {up:.1f} s; and back: {time.monotonic() - began - up:.1f} s")
        runs = await client.run_on_scheduler(
            lambda dask_scheduler: {task.state for task in dask_scheduler.tasks.values()}
        )
        assert {"memory"} == runs
        assert list(range(200)) == [int(each[0]) for each in await client.gather(kept)]
        async with asyncio.timeout(PATIENCE_S):
            while len(await jobs_left(pool)) != 5:
                await asyncio.sleep(0.1)
    await gone(pool)
