"""
A Dask cluster at a site that nothing reaches: its scheduler and its workers are jobs of a machine in a network of its own, out of which
bus, gateway and iam are reached, and into which nothing leads.
"""

# distributed has no types:
# pyright: reportUnknownArgumentType=false, reportGeneralTypeIssues=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

import asyncio
import logging
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import numpy as np
import pytest
import pytest_asyncio
from distributed import Client

from kettle.pool.personal_settings import Tables
from kettle.testing.commands.running import execute
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.cli.facility.analysis import columns, histogram

from .dask_pools import cluster_in, jobs_left
from .machines_behind_nat import behind_nat, joined

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        "KETTLE_TEST_LONG" not in os.environ,
        reason="it takes minutes: a site in a network of its own (KETTLE_TEST_LONG=1 makes it)",
    ),
    pytest.mark.skipif(
        not selection.servers_are_ours(), reason="whom servers of somebody else let in is theirs to say"
    ),
]

LOG: Final = logging.getLogger(__name__)
SITE: Final = "T2_Behind"
NAME: Final = "behind.example.org"
SERVICES: Final = [
    "collector", "negotiator", "schedd", "shadow", "accounting", "iam", "sessions", "gateway",
]  # fmt: skip
BYTES: Final = 100_000_000
PARTS: Final = range(4)
KERNEL: Final = """
import os, sys
from kettle.dask import KettleCluster

cluster = KettleCluster.from_name("analysis")
client = cluster.get_client()
future = client.submit(lambda n: n * n, 12, key="square", pure=False)
assert future.result() == 144
os._exit(0)  # as a kernel dies: nobody says goodbye
"""
NEXT_KERNEL: Final = """
from kettle.dask import KettleCluster

with KettleCluster.from_name("analysis") as cluster, cluster.get_client() as client:
    print(cluster.kept_results(client)["square"].result(), len(cluster.scheduler_info["workers"]))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(template: Path) -> AsyncIterator[ThrowawayPool]:
    settings: Tables = {"master": {"daemon_list": SERVICES}, "gateway": {"rest": True}}
    with tempfile.TemporaryDirectory(prefix="kettle-") as directory:
        async with throwaway_pool(Path(directory), cpus=0, settings=settings, template=template) as running:
            home = Path(directory) / "machines" / "home"
            home.parent.mkdir(mode=0o700)
            await joined(
                running, home, NAME, cpus=3, memory=8000, more=f'attributes = {{ SiteName = "{SITE}" }}\n'
            )
            async with behind_nat(running, home, NAME):
                yield running
        assert [] == running.left


async def dashboard(pool: ThrowawayPool, link: str) -> str:
    """The first page behind a link, as its owner sees it."""
    token = (pool.home / "gateway" / "token").read_text().strip()
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
        session.get(link) as answer,
    ):
        assert 200 == answer.status, await answer.text()
        return await answer.text()


async def test_a_cluster_at_a_site_that_nothing_reaches(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A client outside computes, calls functions on its workers, sees its dashboard and gets 100 MB; the columns that the workers make have
    the histogram that is made here; a kernel that dies leaves its results to the next one; and no job is left, lost or doubled.
    """
    async with cluster_in(pool, 2, name="analysis", cores=1, memory="1 GB") as cluster:
        async with Client(cluster, asynchronous=True) as client:
            await client.wait_for_workers(2, timeout=PATIENCE_S)
            jobs = set(await jobs_left(pool))
            names = await client.run(lambda: [name for _, name in __import__("socket").if_nameindex()])
            assert [["lo"], ["lo"]] == list(names.values())
            await nothing_leads_in(str(cluster.scheduler_info["address"]))
            began = time.monotonic()
            data: Any = await client.submit(np.arange, BYTES // 8)
            took = time.monotonic() - began
            assert np.array_equal(np.arange(BYTES // 8), data)
            LOG.info("%s", f"{BYTES / took / 1e6:.0f} MB/s from a worker behind NAT to a client")
            assert "Dask" in await dashboard(pool, cluster.dashboard_link)
            total = np.sum(await client.gather(client.map(histogram, PARTS)), axis=0)
            assert np.array_equal(np.sum([histogram(part) for part in PARTS], axis=0), total)
            assert columns(0)["first_pt"].size * len(PARTS) > total.sum() > 0
        await by_hand(pool, KERNEL, tmp_path)
        assert "144 2" == await by_hand(pool, NEXT_KERNEL, tmp_path)
        assert jobs == set(await jobs_left(pool)), "no job was lost or doubled"
        shown = await pool.client.sessions.show("analysis")
        assert {SITE} == {each.site for each in shown.members}
    async with asyncio.timeout(PATIENCE_S):
        while await jobs_left(pool):
            await asyncio.sleep(0.05)


async def nothing_leads_in(address: str) -> None:
    """The place where the scheduler listens is not to be reached from here."""
    LOG.info("%s", f"the scheduler says it is at {address}")
    place = address.partition("@")[2].partition(",")[0]
    host, _, port = place.rpartition(":")
    with pytest.raises(OSError):
        await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), 5)


async def by_hand(pool: ThrowawayPool, script: str, work: Path) -> str:
    """What a program of a person prints."""
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home)}
    said = await execute([sys.executable, "-c", script], work, environ, within_s=PATIENCE_S)
    assert 0 == said.status, said
    return said.out.strip()
