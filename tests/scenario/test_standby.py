"""
A schedd, a negotiator and a collector each run twice: whoever dies, is paused or is cut off, the other one goes on.
"""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from kettle.client import select
from kettle.testing.pool import ThrowawayPool, throwaway_pool

from .evidence import Evidence, verified

TWICE = ["collector", "collector#2", "negotiator", "negotiator#2", "schedd", "schedd#2", "shadow", "startd"]
JOBS = 40


async def stands_by(pool: ThrowawayPool, *names: str) -> tuple[str, str]:
    """
    Which of two serves, and which stands by.
    """
    async with asyncio.timeout(30):
        while True:
            status = {name: pool.daemon(name).status for name in names}
            if sorted(status.values()) == ["running", "standby"]:
                return tuple(sorted(names, key=status.__getitem__))  # type: ignore[return-value] # two
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("role", ["schedd", "negotiator", "collector"])
async def test_the_one_that_stands_by_takes_over_from_one_that_was_killed(
    tmp_path: Path, template: Path, evidence: Evidence, role: str
) -> None:
    """
    Jobs complete once, and the one that was killed comes back to stand by.
    """
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
