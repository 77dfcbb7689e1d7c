"""Dask clusters whose scheduler and workers are jobs of a pool, with the real Dask and the real service of sessions."""

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from distributed import Client, wait
from distributed.comm.registry import backends
from tests.integration.dask.sessions_here import issued

from kettle.dask.addresses import SCHEME
from kettle.dask.comm import KettleBackend
from kettle.dask.placement import Placement
from kettle.dask.security import security_of
from kettle.testing.commands.running import execute
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .dask_pools import SETTINGS, cluster_in, jobs_left, kill

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

LOST: Final = """
import os, sys
from distributed import Client
from kettle.dask import KettleCluster

cluster = KettleCluster.from_name("analysis")
client = cluster.get_client()
future = client.submit(lambda n: n * n, 12, key="square", pure=False)
assert future.result() == 144
os._exit(0)  # as a kernel dies: nobody says goodbye
"""
FOUND: Final = """
from kettle.dask import KettleCluster

with KettleCluster.from_name("analysis") as cluster, cluster.get_client() as client:
    print(cluster.kept_results(client)["square"].result(), len(cluster.scheduler_info["workers"]))
"""


BYTES: Final = 100_000_000


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """This process is in no network of the pool's machines."""
    backends[SCHEME] = KettleBackend(Placement())
    yield
    backends[SCHEME] = KettleBackend()


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 6, "settings": SETTINGS}


async def by_hand(pool: ThrowawayPool, script: str, work: Path) -> str:
    """What a program of a person prints."""
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home)}
    said = await execute([sys.executable, "-c", script], work, environ, within_s=PATIENCE_S)
    assert 0 == said.status, said
    return said.out.strip()


async def test_a_cluster_of_jobs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    It computes; grows; has a killed worker replaced; is found again by another program, with the results of one that died;
    lets in nobody with a certificate of another session; and leaves no job.
    """
    async with cluster_in(pool, 2, name="analysis", cores=1, memory="256 MB") as cluster:
        async with Client(cluster, asynchronous=True) as client:
            await client.wait_for_workers(2, timeout=PATIENCE_S)
            assert [n + 1 for n in range(20)] == await client.gather(client.map(lambda n: n + 1, range(20)))
            jobs = {each["name"] for each in cluster.scheduler_info["workers"].values()}
            assert jobs < set(await jobs_left(pool))
            kept = client.map(lambda n: np.arange(n), range(100, 140), pure=False)
            await wait(kept)
            victim = sorted(jobs)[0]
            kill(victim)
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    names = {each["name"] for each in cluster.scheduler_info["workers"].values()}
                    if victim not in names and len(names) == 2:
                        break
                    await asyncio.sleep(0.05)
            assert list(range(100, 140)) == [len(each) for each in await client.gather(kept)]
        await by_hand(pool, LOST, tmp_path)
        assert "144 2" == await by_hand(pool, FOUND, tmp_path)
        with pytest.raises(OSError):
            await Client(
                cluster.scheduler_address, security=security_of(issued("s1")), asynchronous=True, timeout=1
            )
    async with asyncio.timeout(PATIENCE_S):
        while await jobs_left(pool):
            await asyncio.sleep(0.05)


async def test_a_client_in_another_network(pool: ThrowawayPool, elsewhere: None) -> None:
    """All that it sends and gets goes through the gateway: functions, results of many MB, and what runs on workers."""
    async with cluster_in(pool, 1) as cluster, Client(cluster, asynchronous=True) as client:
        await client.wait_for_workers(1, timeout=PATIENCE_S)
        began = time.monotonic()
        data = await client.submit(np.ones, BYTES // 8)
        took = time.monotonic() - began
        assert BYTES == data.nbytes
        assert BYTES // 8 == data.sum()
        print(f"{BYTES / took / 1e6:.0f} MB/s through the gateway")
        assert {sys.version} == set((await client.run(lambda: sys.version)).values())


async def test_clusters_at_a_terminal(pool: ThrowawayPool) -> None:
    """`kettle dask` begins, lists, scales and stops them, and shows what their jobs have written."""

    async def said(*words: str) -> str:
        answer = await pool.kettle("dask", *words)
        assert 0 == answer.status, answer
        return answer.out

    assert "requested" in await said("create", "typed", "--workers", "1")
    async with cluster_in(pool, existing="typed") as cluster:
        await cluster.wait_for_workers(1, timeout=PATIENCE_S)
        assert "typed" in await said("list")
        assert "wanted 2" in await said("scale", "typed", "2")
        await cluster.wait_for_workers(2, timeout=PATIENCE_S)
        assert "Registered to" in await said("logs", "typed")
    refused = await pool.kettle("dask", "adapt", "typed", "3", "2")
    assert (2, "at least 3 and at most 2" in refused.err) == (refused.status, True)
    await said("stop", "typed")
    async with asyncio.timeout(PATIENCE_S):
        while "typed" in await said("list"):
            await asyncio.sleep(0.05)
    assert [] == await jobs_left(pool)
