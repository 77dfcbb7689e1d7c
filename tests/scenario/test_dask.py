"""
Dask clusters whose scheduler and workers are jobs of a pool, with the real Dask and the real service of sessions.
"""

# distributed has no types:
# pyright: reportUnknownArgumentType=false, reportGeneralTypeIssues=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportPrivateUsage=false

import asyncio
import logging
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pytest
from distributed import Client, wait
from distributed.comm.registry import backends
from tests.integration.dask.sessions_here import issued

from kettle.dask.addresses import SCHEME
from kettle.dask.comm import KettleBackend
from kettle.dask.placement import Placement
from kettle.dask.security import security_of
from kettle.dask.versions import EQUAL, own_versions
from kettle.testing.commands.running import execute
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, merged

from .client_environments import SCRIPTS, python_with
from .dask_pools import SETTINGS, cluster_in, jobs_left, kill
from .hub_programs import TOP
from .test_tutorials import follow

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
from distributed import Client
from kettle.dask import KettleCluster

with KettleCluster.from_name("analysis") as cluster, cluster.get_client() as client:
    print(cluster.kept_results(client)["square"].result(), len(cluster.scheduler_info["workers"]))
    address = cluster.scheduler_address
with Client(address) as client:  # as the panel of dask-labextension has it
    print(client.submit(sum, [1, 2]).result())
"""


APART: Final = """
import os, sys
from kettle.dask import placement
placement.machine_network = lambda: f"machine:{os.getpid()}"
from kettle.dask.worker.__main__ import main
sys.exit(main())
"""
"""A worker that takes its network for one of its own, so that nobody comes to it directly, nor it to anybody."""
PROFILES: Final = f"""
[dask]
kind = "dask"
python = "{sys.executable}"
cpus_allowed = [1, 4]
memory_allowed = [64, 4000]

[apart]
kind = "dask"
python = "{sys.executable}"
worker_command = ["{{python}}", "-c", {msgspec.json.encode(APART).decode()}]
memory = 400
"""
BYTES: Final = 100_000_000


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """Have this process in no network of the pool's machines."""
    backends[SCHEME] = KettleBackend(Placement())
    yield
    backends[SCHEME] = KettleBackend()


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    profiles = tmp_path_factory.mktemp("profiles") / "profiles.toml"
    profiles.write_text(PROFILES)
    return {"cpus": 6, "settings": merged(SETTINGS, {"sessions": {"profiles": str(profiles)}})}


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
            kept = client.map(np.arange, range(100, 140), pure=False)
            await wait(kept)
            victim = min(jobs)
            kill(victim)
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    names = {each["name"] for each in cluster.scheduler_info["workers"].values()}
                    if victim not in names and len(names) == 2:
                        break
                    await asyncio.sleep(0.05)
            assert list(range(100, 140)) == [len(each) for each in await client.gather(kept)]
        await by_hand(pool, LOST, tmp_path)
        assert "144 2\n3" == await by_hand(pool, FOUND, tmp_path)
        with pytest.raises(OSError):
            await Client(
                cluster.scheduler_address, security=security_of(issued("s1")), asynchronous=True, timeout=1
            )
    async with asyncio.timeout(PATIENCE_S):
        while await jobs_left(pool):
            await asyncio.sleep(0.05)


async def test_a_client_in_another_network(pool: ThrowawayPool, elsewhere: None) -> None:
    """
    All that it sends and gets goes through the gateway: functions, results of many MB, and what runs on workers.
    """
    async with cluster_in(pool, 1) as cluster, Client(cluster, asynchronous=True) as client:
        await client.wait_for_workers(1, timeout=PATIENCE_S)
        began = time.monotonic()
        data = await client.submit(np.ones, BYTES // 8)
        took = time.monotonic() - began
        assert BYTES == data.nbytes
        assert BYTES // 8 == data.sum()
        logging.getLogger(__name__).info("%.0f MB/s through the gateway", BYTES / took / 1e6)
        assert {platform.python_version()} == set((await client.run(platform.python_version)).values())


async def test_a_scheduler_in_a_program(pool: ThrowawayPool) -> None:
    """
    Its workers are jobs, of which it has as many as it wants; a killed one is replaced; with the object all of it ends.
    """
    async with (
        cluster_in(pool, 1, scheduler="local", cores=1, memory="256 MB") as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        await client.wait_for_workers(1, timeout=PATIENCE_S)
        assert 45 == await client.submit(sum, client.map(lambda n: n + 1, range(9)))
        (victim,) = await jobs_left(pool)
        kill(victim)
        async with asyncio.timeout(PATIENCE_S):
            while {victim} >= {each["name"] for each in cluster.scheduler_info["workers"].values()}:
                await asyncio.sleep(0.05)
        assert 10 == await client.submit(sum, [1, 2, 3, 4], pure=False)
        assert cluster.why().startswith(("ready", "degraded")), cluster.why()
    async with asyncio.timeout(PATIENCE_S):
        while await jobs_left(pool):
            await asyncio.sleep(0.05)


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


async def test_the_tutorial_works_as_it_stands(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Every command of it ends well, and prints what the page shows."""
    await follow("dask-cluster", pool, tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        while await jobs_left(pool):
            await asyncio.sleep(0.05)


async def test_the_panel_of_dask_labextension(pool: ThrowawayPool, place: Path, tmp_path: Path) -> None:
    """
    Unmodified, with KettleCluster as its factory: new, scale, adapt, shutdown; and a client that has the cluster's address alone, as the
    panel writes it into a notebook, computes with it.
    """
    own = own_versions()
    same = [f"{name}=={own[name]}" for name in EQUAL]
    packages = [f"{TOP}[dask]", "dask_labextension==7.0.0", "jupyterlab", "bokeh", *same]
    python = await python_with(packages, "dask-labextension", tmp_path)
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "HARNESS_FACTORY": "kettle.dask"}
    words = [python, str(SCRIPTS / "labextension_panel.py"), str(place), "--timeout", "150"]
    said = await execute(words, tmp_path, environ, within_s=400.0)
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    assert [] == await jobs_left(pool)


async def test_workers_of_different_networks(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    They and their scheduler reach each other through the gateway by what their session gets them there: results move
    between workers, and functions run on them.
    """
    async with cluster_in(pool, 2, profile="apart") as cluster, Client(cluster, asynchronous=True) as client:
        await client.wait_for_workers(2, timeout=PATIENCE_S)
        one, other = (each["name"] for each in cluster.scheduler_info["workers"].values())
        left = client.submit(np.ones, 1000, workers=one, pure=False)
        right = client.submit(np.ones, 1000, workers=other, pure=False)
        both = client.submit(lambda a, b: float((a + b).sum()), left, right, workers=one, pure=False)
        assert 2000.0 == await asyncio.wait_for(both, PATIENCE_S)
        assert 2 == len(await client.run(platform.python_version))
