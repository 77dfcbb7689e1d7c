"""A pool on servers of a site that are there more than once, and lose one."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from kettle.client import Client, select
from kettle.embedded import Permissions
from kettle.pool.personal_settings import Value
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.nats_cluster import NODES, NatsCluster
from kettle.testing.servers.postgres_pair import PostgresPair
from kettle.testing.throwaway_pool import throwaway_pool
from kettle_wire.subjects import Subjects

LONG = "KETTLE_TEST_LONG"
EVERYTHING = {"test": Permissions(publish=(">",), subscribe=(">",))}
CLUSTERS = 30
AT_ONCE = 5
WITHIN_S = 600.0
DESCRIPTION = f"executable = /bin/true\nrequest_memory = 16\nqueue {AT_ONCE}\n"


@pytest.mark.skipif(
    LONG not in os.environ,
    reason=f"it takes minutes: two databases and a cluster of NATS ({LONG}=1 breaks them)",
)
async def test_a_primary_and_a_leader_are_lost(tmp_path: Path) -> None:
    """
    Whatever was acknowledged is there after the standby has taken over, and all jobs end; the log is clean.
    """
    with server_directory() as directory:
        async with (
            NatsCluster(directory / "nats", permissions=EVERYTHING) as cluster,
            PostgresPair(directory / "postgres") as pair,
        ):
            bus: dict[str, Value] = {
                "nats_url": cluster.url,
                "nats_credentials": str(cluster.credentials("test")),
                "nats_replicas": NODES,
                "pool": "personal",
            }
            settings: dict[str, dict[str, Value]] = {"kettle": bus, "master": {"database_url": pair.dsn}}
            async with throwaway_pool(tmp_path, cpus=4, settings=settings) as pool:
                acknowledged: list[int] = []
                waits: list[float] = []

                async def submit() -> None:
                    async with Client.connect(home=pool.home, patience=WITHIN_S) as client:
                        for _ in range(CLUSTERS):
                            began = asyncio.get_running_loop().time()
                            submitted = await client.submit(DESCRIPTION, cwd=tmp_path)
                            waits.append(asyncio.get_running_loop().time() - began)
                            acknowledged.append(submitted.cluster)
                            await asyncio.sleep(0.1)

                async def reached(number: int) -> None:
                    async with asyncio.timeout(WITHIN_S):
                        while len(acknowledged) < number:
                            await asyncio.sleep(0.05)

                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(submit())
                    await reached(CLUSTERS // 3)
                    await pair.fail_over()
                    await reached(2 * CLUSTERS // 3)
                    stream = Subjects("personal").event_stream("schedd.schedd")
                    await cluster.kill((await cluster.leaders())[stream])
                assert len(acknowledged) == len(set(acknowledged)) == CLUSTERS
                for each in acknowledged:
                    await pool.client.wait(select(each))
                history = await pool.client.history(limit=0)
                assert CLUSTERS * AT_ONCE == len(history)
                audit = await pool.log_check()
                assert audit.clean, audit.said
                (tmp_path / "figures.json").write_bytes(msgspec.json.encode({"submit_max_s": max(waits)}))
