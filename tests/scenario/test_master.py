"""Administrators at work on a pool that runs jobs."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.client import Client, select
from kettle.pool import processes
from kettle.pool.personal_settings import Tables
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.jobs import JobId

from .evidence import Evidence
from .test_basic import ended, happened, until

COMPLETED = {0: ("completed", 0, None)}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    """A pool for those tests after which it is up, with all of its daemons, and idle."""
    place = tmp_path_factory.mktemp("master")
    async with throwaway_pool(place, cpus=1, template=template) as running:
        yield running
    assert [] == running.left


async def switched_to(pool: ThrowawayPool, name: str, status: str) -> None:
    """Wait until a daemon has a status."""
    async with asyncio.timeout(PATIENCE_S):
        while pool.daemon(name).status != status:
            await asyncio.sleep(0.02)


async def held_up(pool: ThrowawayPool, gate: Path) -> int:
    """A job that runs, and ends when somebody writes to the gate; its cluster."""
    os.mkfifo(gate)
    gate.chmod(0o666)
    script = gate.with_suffix(".sh")
    script.write_text(f"#!/bin/sh\ntrap '' TERM\nread line < {gate}\n")
    script.chmod(0o755)
    submitted = await pool.client.submit(f"executable = {script}\nqueue\n", cwd=pool.home.parent)
    async with asyncio.timeout(PATIENCE_S):
        while "JobStarted" not in happened(await pool.client.events(JobId(submitted.cluster, 0))):
            await asyncio.sleep(0.05)
    return submitted.cluster


async def open_up(gate: Path) -> None:
    await asyncio.to_thread(gate.write_text, "go\n")


async def attempts(client: Client, cluster: int) -> tuple[int, int]:
    """How often the only job of a cluster was assigned, and how often it was vacated."""
    counts = Counter(type(each.event).__name__ for each in await client.events(JobId(cluster, 0)))
    return counts["JobAssigned"], counts["JobVacated"]


async def test_the_masters_ad_tells_of_each_daemon(pool: ThrowawayPool) -> None:
    """
    A daemon that died is counted in the ad, which the collector has soon, and `kettle status --master` shows it.
    """
    killed = pool.kill("negotiator")
    await pool.restarted("negotiator", after=killed)
    async with asyncio.timeout(PATIENCE_S):
        again = 'NEGOTIATOR_Restarts == 1 && NEGOTIATOR_State == "Running"'
        while not (ads := await pool.client.ads("DaemonMaster", constraint=again)):
            await asyncio.sleep(0.05)
    [ad] = ads
    assert ("DaemonMaster", os.getuid(), pool.state.pid) == (ad["MyType"], ad["RealUid"], ad["MasterPid"])
    assert ad["NEGOTIATOR_LastExit"] == "signal 9"
    assert pool.pid("schedd") == ad["SCHEDD_Pid"]
    assert int(pool.daemon("schedd").since) == ad["SCHEDD_StartTime"]
    status, said, _ = await pool.kettle("status", "--master")
    assert status == 0
    [row] = [line for line in said.splitlines() if "negotiator" in line]
    assert ["negotiator", "Running", str(pool.pid("negotiator"))] == row.split()[:3]
    assert "signal 9" in row


async def test_a_peaceful_end_lets_the_job_end(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    A startd that is switched off peacefully takes no further job and ends when the running one has; on, it takes the next.
    """
    first = await held_up(pool, evidence.directory / "gate")
    off = asyncio.create_task(pool.kettle("off", "--daemon", "startd", "--peaceful", within_s=PATIENCE_S))
    await switched_to(pool, "startd", "stopping")
    second = (await pool.client.submit("executable = /bin/true\nqueue\n")).cluster
    await open_up(evidence.directory / "gate")
    assert COMPLETED == await ended(pool.client, first)
    assert (0, "The startd is off.\n", "") == await off
    assert (1, 0) == await attempts(pool.client, first)
    await until(pool.client, second, "idle")
    status, _, trouble = await pool.kettle("on", "--daemon", "startd", within_s=PATIENCE_S)
    assert status == 0, trouble
    assert COMPLETED == await ended(pool.client, second)


async def test_a_fast_end_leaves_no_job(tmp_path: Path, template: Path, evidence: Evidence) -> None:
    """
    A startd that is switched off fast ends even a job that ignores SIGTERM, and the job waits for another machine.
    """
    startd: dict[str, str | float] = {"shutdown_kill_timeout": 1000.0, "machine_max_vacate_time": "1000"}
    # Should the startd end before its last report is recorded, the job waits again when its lease is over.
    settings: Tables = {"startd": startd, "schedd": {"lease": 20.0}}
    async with throwaway_pool(tmp_path, cpus=1, template=template, settings=settings) as pool:
        cluster = await held_up(pool, evidence.directory / "gate")
        assert pool.sandboxes
        off = await pool.kettle("off", "--daemon", "startd", "--fast", within_s=PATIENCE_S)
        assert (0, "The startd is off.\n", "") == off
        assert "has not ended when it was asked to" not in pool.log("master")
        assert not [line for line in pool.processes() if "gate.sh" in line]
        await until(pool.client, cluster, "idle")
    assert [] == pool.left


async def test_settings_change_under_a_running_job(
    tmp_path: Path, template: Path, evidence: Evidence
) -> None:
    """
    `kettle reconfig` gives the startd its new settings while its job goes on and ends as if nothing had been.
    """
    # A busy machine may take seconds to start a startd; that is not what this test is about.
    settings = {"schedd": {"lease": 60.0}, "startd": {"adoption_patience": 30.0}}
    async with throwaway_pool(tmp_path, cpus=1, template=template, settings=settings) as pool:
        cluster = await held_up(pool, evidence.directory / "gate")
        startd, schedd = pool.pid("startd"), pool.pid("schedd")
        file = pool.home / "kettle.toml"
        file.write_text(file.read_text().replace("[startd]\n", '[startd]\nattributes = { Rack = "r7" }\n'))
        status, said, trouble = await pool.kettle("reconfig", within_s=PATIENCE_S)
        assert status == 0, trouble
        assert "The startd is running with its new settings." in said
        assert "The schedd: nothing to do, unchanged." in said
        assert pool.pid("startd") not in {0, startd}
        assert schedd == pool.pid("schedd")
        async with asyncio.timeout(PATIENCE_S):
            while not await pool.client.ads("Machine", constraint='Rack == "r7"'):
                await asyncio.sleep(0.05)
        await open_up(evidence.directory / "gate")
        assert COMPLETED == await ended(pool.client, cluster)
        assert (1, 0) == await attempts(pool.client, cluster)
    assert [] == pool.left


async def test_down_is_stronger_than_a_peaceful_restart(
    tmp_path: Path, template: Path, evidence: Evidence
) -> None:
    """A host that waits for its jobs to restart goes down when it is told to, and does not come back."""
    async with throwaway_pool(tmp_path, cpus=1, template=template) as pool:
        await held_up(pool, evidence.directory / "gate")
        status, _, trouble = await pool.kettle("restart", "--peaceful", "--no-wait", within_s=PATIENCE_S)
        assert status == 0, trouble
        await switched_to(pool, "startd", "stopping")
        master = pool.state.pid
        await pool.stop()
        assert not pool.lives
        assert not processes.start_ticks(master)
        assert [] == pool.left


async def test_a_restarted_pool_goes_on_with_its_queue(pool: ThrowawayPool) -> None:
    """
    `kettle restart` takes master, servers and services through an end and a start, and the queue is what it was.
    """
    waiting = (await pool.client.submit("executable = /bin/true\nrequirements = false\nqueue\n")).cluster
    before = pool.state
    status, _, trouble = await pool.kettle("restart", within_s=PATIENCE_S)
    assert status == 0, trouble
    assert before.pid == pool.state.pid
    assert before.started < pool.state.started
    async with Client.connect(home=pool.home) as client:
        assert [waiting] == [ad["ClusterId"] for ad in await client.jobs(select(waiting))]
        after = (await client.submit("executable = /bin/true\nqueue\n")).cluster
        assert COMPLETED == await ended(client, after)
