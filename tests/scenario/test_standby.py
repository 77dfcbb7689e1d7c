"""
A schedd, a negotiator and a collector each run twice: when one dies, is suspended or is cut off, the other one continues.
"""

import asyncio
import os
import signal
from contextlib import aclosing
from pathlib import Path

import pytest

from kettle.client import Client, select
from kettle.pool.personal_settings import Tables, Value
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import fresh_database, server_directory, servers
from kettle.testing.throwaway_pool import SHORT_LEASE, ThrowawayPool, throwaway_pool

from .evidence import Evidence, verified

TWICE = ["collector", "collector#2", "negotiator", "negotiator#2", "schedd", "schedd#2", "shadow", "startd"]
JOBS = 40


async def stands_by(pool: ThrowawayPool, *names: str) -> tuple[str, str]:
    """Which of two serves, and which stands by."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status = {name: pool.daemon(name).status for name in names}
            if sorted(status.values()) == ["running", "standby"]:
                return tuple(sorted(names, key=status.__getitem__))  # type: ignore[return-value] # two
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("role", ["schedd", "negotiator", "collector"])
async def test_the_one_that_stands_by_takes_over_from_one_that_was_killed(
    tmp_path: Path, template: Path, evidence: Evidence, role: str
) -> None:
    """Jobs complete once, and the one that was killed comes back to stand by."""
    settings = {"master": {"daemon_list": TWICE}}
    async with throwaway_pool(tmp_path, cpus=8, template=template, settings=settings) as pool:
        serving, standing = await stands_by(pool, role, f"{role}#2")
        submitted = await pool.client.submit(evidence.sweep([0.3] * JOBS), cwd=evidence.work)
        async with aclosing(pool.client.watch(select(submitted.cluster))) as watched:
            async for progress in watched:
                if progress.counts["completed"] >= 5 and pool.daemon(serving).starts == 1:
                    pool.kill(serving)
                    await pool.restarted(standing)
        assert (standing, serving) == await stands_by(pool, role, f"{role}#2")
        await verified(pool, evidence, submitted.cluster, JOBS)
    assert [] == pool.left


async def test_an_owner_that_was_paused_finds_that_it_was_overtaken(
    tmp_path: Path, template: Path, evidence: Evidence
) -> None:
    """
    A schedd that is suspended loses its queue to the one that stands by, and when it goes on it writes nothing and ends.
    """
    settings: Tables = {
        "master": {"daemon_list": TWICE},
        "schedd": {**SHORT_LEASE, "owner_lease": 2.0},
    }
    async with throwaway_pool(tmp_path, cpus=8, template=template, settings=settings) as pool:
        serving, standing = await stands_by(pool, "schedd", "schedd#2")
        submitted = await pool.client.submit(evidence.sweep([0.3] * JOBS), cwd=evidence.work)
        paused = pool.kill(serving, signal.SIGSTOP)
        try:
            await pool.restarted(standing)
            while_paused = await pool.client.submit(evidence.sweep([0.1]), cwd=evidence.work)
        finally:
            os.kill(paused, signal.SIGCONT)
        assert while_paused.cluster == submitted.cluster + 1
        assert JOBS == await completed(pool.client, submitted.cluster)
        assert (standing, serving) == await stands_by(pool, "schedd", "schedd#2")
        assert paused != pool.pid(serving)
        assert "overtaken" in pool.log(serving)
        await verified(pool, evidence, submitted.cluster, JOBS)
    assert [] == pool.left


async def test_a_second_access_point_has_a_queue_and_a_database_of_its_own(
    tmp_path: Path, template: Path, evidence: Evidence
) -> None:
    """Jobs of two schedds run on the same machine, and each schedd's events are in its own database."""
    daemons = ["collector", "negotiator", "schedd", "schedd.ap1", "shadow", "shadow.ap1", "startd"]
    with server_directory() as directory:
        async with servers(directory, template=template) as own, fresh_database(own.postgres.dsn) as database:
            settings: dict[str, dict[str, Value]] = {
                "master": {
                    "daemon_list": daemons,
                    "environment": {"schedd.ap1": {"KETTLE_DATABASE_URL": database}},
                }
            }
            async with throwaway_pool(tmp_path, cpus=4, template=template, settings=settings) as pool:
                here = await pool.client.submit(evidence.sweep([0.2] * 4), cwd=evidence.work)
                async with Client.connect(home=pool.home, schedd="ap1") as ap1:
                    there = await ap1.submit(evidence.sweep([0.2] * 4), cwd=evidence.work)
                    assert 4 == await completed(pool.client, here.cluster)
                    assert 4 == await completed(ap1, there.cluster)
                assert (here.position.shard, there.position.shard) == ("schedd.schedd", "schedd.ap1")
                shards = {
                    name: await shards_in(url) for name, url in ((0, pool.state.database_url), (1, database))
                }
                assert "schedd.ap1" not in shards[0]
                assert ["schedd.ap1"] == shards[1]
            assert [] == pool.left


async def completed(client: Client, cluster: int) -> int:
    """Follow the jobs of a cluster to their end; how many completed."""
    count = 0
    async with aclosing(client.watch(select(cluster))) as watched:
        async for progress in watched:
            count = progress.counts["completed"]
    return count


async def shards_in(database: str) -> list[str]:
    async with PgLog.connect(database) as log:
        return [tenure.shard for tenure in await log.shards()]
