"""Dask clusters while what they stand on is killed, and while they are scaled up and down again and again."""

# distributed has no types:
# pyright: reportUnknownArgumentType=false, reportGeneralTypeIssues=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

import asyncio
import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
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
TASKS: Final = 5_000
PROFILE: Final = """\
[{name}]
kind = "dask"
python = {python}
cpus_allowed = [1, 4]
memory_allowed = [64, 4000]
disk_allowed = [16, 4000]
grace = {grace}
"""
GRACE_S: Final = {"dask": 60, "hasty": 2}
"""By profile, how long a worker may keep its results that are to go with it."""


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """More slots than the machine has cores: what the workers do here is little."""
    profiles = tmp_path_factory.mktemp("profiles") / "profiles.toml"
    python = msgspec.json.encode(sys.executable).decode()
    profiles.write_text("\n".join(PROFILE.format(name=n, python=python, grace=s) for n, s in GRACE_S.items()))
    more: dict[str, dict[str, Any]] = {"sessions": {"limit": 50, "profiles": str(profiles)}}
    return {"cpus": 52, "memory_mib": 64 * 1024, "settings": merged(SETTINGS, more)}


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


async def test_a_graph_survives_that_all_its_workers_go(pool: ThrowawayPool) -> None:
    """
    Of 5,000 tasks some are done when the cluster is scaled to none; with their last worker the results go, which nobody could take; when
    there are workers again all is computed that is missing, and nothing is wrong.
    """
    async with (
        cluster_in(pool, 4, profile="hasty", **SMALL) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        await client.wait_for_workers(4, timeout=PATIENCE_S)
        squares = client.map(
            lambda n: (threading.Event().wait(0.01), n * n)[1], range(TASKS // 2), pure=False
        )
        sums = client.map(lambda square, n: square + n, squares, range(TASKS // 2), pure=False)
        await _until(lambda: sum(each.done() for each in sums) > 100)
        await cluster.scale(0)
        assert any(not each.done() for each in sums), "it still runs"
        await _until(lambda: not cluster.scheduler_info["workers"])
        LOG.info(
            "%s", f"{sum(each.done() for each in sums)} of {len(sums)} done without workers: {cluster.why()}"
        )
        assert "error" not in {each.status for each in sums}
        await cluster.scale(4)
        assert [n * n + n for n in range(TASKS // 2)] == await asyncio.wait_for(
            client.gather(sums), 4 * PATIENCE_S
        )
    await gone(pool)


async def _until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(2 * PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.05)


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
