"""Everything that a pool consists of is killed while it works: what was promised happens all the same."""

import asyncio
import os
import random
import shutil
from contextlib import aclosing, suppress
from math import inf
from pathlib import Path

import pytest

from kettle.client import Progress, select
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

from .evidence import Evidence, true_to_record, verified

JOBS = 100
PARTS = ("schedd", "shadow", "startd", "nats", "postgres")
SEEDS = [int(seed) for seed in os.environ.get("KETTLE_TEST_SEEDS", "1").split(",")]
"""More of them, given as `1,2,3`, are more moments at which something dies."""
WITHIN_S = float(os.environ.get("KETTLE_TEST_WITHIN_S", "120"))


class Watched:
    """The jobs of one cluster, followed while something else happens."""

    def __init__(self) -> None:
        self.cluster = 0
        self.progress = Progress({})
        self._changed = asyncio.Event()

    @property
    def left(self) -> int:
        return self.progress.total - self.progress.counts["completed"]

    async def submit(self, pool: ThrowawayPool, evidence: Evidence, seconds: list[float]) -> None:
        submitted = await pool.client.submit(evidence.sweep(seconds), cwd=evidence.work)
        self.cluster = submitted.cluster

    async def follow(self, pool: ThrowawayPool) -> None:
        """Follow the jobs to their end; if that does not come, say where those that are left stand."""
        try:
            async with (
                asyncio.timeout(WITHIN_S),
                aclosing(pool.client.watch(select(self.cluster))) as watched,
            ):
                async for progress in watched:
                    self.progress = progress
                    self._changed.set()
        except TimeoutError:
            pytest.fail(await self._autopsy(pool))

    async def _autopsy(self, pool: ThrowawayPool) -> str:
        left = [job for job, state in self.progress.jobs.items() if not state.ended]
        found = [f"{len(left)} jobs did not end: {dict(self.progress.counts)}"]
        for job in left[:5]:
            found += [f"{job}: {each.at:.3f} {each.event}" for each in await pool.client.events(job)][1:]
            found += [str(await pool.client.why(job))[:1500]]
        return "\n".join(found)

    async def some_completed(self, number: int) -> None:
        while self.progress.counts["completed"] < number:
            self._changed.clear()
            await self._changed.wait()


def all_ended(watched: Watched, jobs: int) -> None:
    """What was watched ended, and well."""
    assert jobs == watched.progress.counts["completed"]
    assert [] == list(watched.progress.bad())


async def check(pool: ThrowawayPool, evidence: Evidence, watched: Watched, jobs: int) -> None:
    """What was watched is what was recorded, and all of it is right."""
    all_ended(watched, jobs)
    await verified(pool, evidence, watched.cluster, jobs)


@pytest.mark.breaks_servers
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_part_is_killed_once(
    tmp_path: Path, template: Path, evidence: Evidence, seed: int
) -> None:
    """
    100 jobs complete although schedd, shadow, startd, NATS and PostgreSQL are killed one after the other.
    """
    chance = random.Random(seed)
    # A portion of the jobs for each part, so that all kinds of jobs are there when it dies.
    portions = {name: (portion_of(evidence, name), Watched()) for name in PARTS}
    jobs = JOBS // len(PARTS)
    async with throwaway_pool(tmp_path, cpus=8, template=template) as pool:
        async with asyncio.TaskGroup() as group:
            for name, (portion, watched) in portions.items():
                # The last one is there until its part has died: no machine is too fast or too slow.
                await watched.submit(
                    pool, portion, [*(chance.uniform(0.3, 0.8) for _ in range(jobs - 1)), inf]
                )
                group.create_task(watched.follow(pool))
                await watched.some_completed(2)
                await asyncio.sleep(chance.uniform(0.0, 1.0))
                killed = pool.kill(name)
                await pool.restarted(name, after=killed)
                assert watched.left
                portion.let_go()
        for portion, watched in portions.values():
            all_ended(watched, jobs)
            await true_to_record(pool, portion, watched.cluster, jobs)
        audit = await pool.log_check()
        assert audit.clean, audit.said
    assert [] == pool.left


def portion_of(evidence: Evidence, name: str) -> Evidence:
    """A place of its own for the evidence of some of the jobs."""
    portion = Evidence(evidence.directory / name, evidence.work / name)
    portion.directory.mkdir()
    portion.directory.chmod(evidence.directory.stat().st_mode)
    portion.work.mkdir()
    return portion


@pytest.mark.breaks_servers
@pytest.mark.parametrize("seed", SEEDS)
async def test_all_parts_are_killed_at_once(
    tmp_path: Path, template: Path, evidence: Evidence, seed: int
) -> None:
    """Jobs complete although everything but the master dies in the same moment."""
    chance = random.Random(seed)
    jobs = 40
    watched = Watched()
    async with throwaway_pool(tmp_path, cpus=8, template=template) as pool:
        # What is served first may run all others before the last service is back.
        await watched.submit(pool, evidence, [*(chance.uniform(0.3, 0.8) for _ in range(jobs - 1)), inf])
        async with asyncio.TaskGroup() as group:
            group.create_task(watched.follow(pool))
            await watched.some_completed(3)
            killed = {daemon.name: daemon.pid for daemon in pool.state.daemons}
            for name in killed:
                with suppress(ProcessLookupError):  # the end of another one was its own
                    pool.kill(name)
            for name, pid in killed.items():
                await pool.restarted(name, after=pid)
            assert watched.left
            evidence.let_go()
        await check(pool, evidence, watched, jobs)
    assert [] == pool.left


async def test_the_whole_pool_is_killed(tmp_path: Path, template: Path, evidence: Evidence) -> None:
    """
    A pool whose master is killed, and with it everything, goes on where it was when it is brought up again.
    """
    jobs = 24
    watched = Watched()
    async with throwaway_pool(tmp_path, cpus=4, template=template) as pool:
        await watched.submit(pool, evidence, [0.5] * (jobs - 1) + [inf])
        async with asyncio.TaskGroup() as group:
            group.create_task(watched.follow(pool))
            await watched.some_completed(3)
            pool.kill_master()
            await pool.start()
            assert watched.left
            evidence.let_go()
        await check(pool, evidence, watched, jobs)
    assert [] == pool.left


@pytest.mark.breaks_servers
async def test_jetstream_lost(tmp_path: Path, template: Path, evidence: Evidence) -> None:
    """
    JetStream's directory is deleted while the pool works: the streams are made again, and nothing is lost.
    """
    jobs = 40
    watched = Watched()
    async with throwaway_pool(tmp_path, cpus=4, template=template) as pool:
        await watched.submit(pool, evidence, [0.5] * (jobs - 1) + [inf])
        async with asyncio.TaskGroup() as group:
            group.create_task(watched.follow(pool))
            await watched.some_completed(3)
            shutil.rmtree(pool.home / "nats" / "data" / "jetstream", ignore_errors=True)
            killed = pool.kill("nats")
            await pool.restarted("nats", after=killed)
            assert watched.left
            evidence.let_go()
        await check(pool, evidence, watched, jobs)
        again = Watched()
        await again.submit(pool, evidence, [0.0] * 4)
        await again.follow(pool)
        assert again.progress.counts["completed"] == 4
    assert [] == pool.left
