"""A pool's services are killed at every named step of append, relay, working set, projection and takeover."""

import asyncio
from contextlib import aclosing
from pathlib import Path

from kettle.client import select
from kettle.faults import POINTS
from kettle.pool.personal_settings import Value
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

from .evidence import Evidence, verified

JOBS = 120
WITHIN_S = 4 * PATIENCE_S
"""Each of the many steps costs a start of a service."""
OWNER = [name for name in POINTS if name.partition(".")[0] in {"append", "relay", "working_set", "takeover"}]
PROJECTION = [name for name in POINTS if name.startswith("projection.")]


def at_each(points: list[str], directory: Path) -> dict[str, str]:
    """
    The variables with which a process dies at the first of the places that it passes for the third time.
    """
    faults = (f"{name}=kill@{1 if name.startswith('takeover.') else 3}" for name in points)
    return {"KETTLE_FAULT_POINTS": ",".join(faults), "KETTLE_FAULT_ONCE": str(directory)}


async def finished(pool: ThrowawayPool, description: str, work: Path) -> int:
    """The number of a cluster that was submitted, and has left the queue."""
    submitted = await pool.client.submit(description, cwd=work)
    async with asyncio.timeout(WITHIN_S), aclosing(pool.client.watch(select(submitted.cluster))) as watched:
        async for _ in watched:
            pass
    return submitted.cluster


async def test_killed_at_every_step(tmp_path: Path, template: Path, evidence: Evidence) -> None:
    """
    Whatever step is the last one of a process, every job that was submitted completes once and the record is sound.
    """
    done = tmp_path / "done"
    done.mkdir()
    settings: dict[str, dict[str, Value]] = {
        "master": {
            "daemon_list": [
                "collector",
                "negotiator",
                "schedd",
                "schedd#2",
                "shadow",
                "startd",
                "accounting",
            ],
            "environment": {
                "schedd": at_each(OWNER, done),
                "schedd#2": at_each(OWNER, done),
                "accounting": at_each(PROJECTION, done),
            },
        }
    }
    async with throwaway_pool(tmp_path, cpus=8, template=template, settings=settings) as pool:
        cluster = await finished(pool, evidence.sweep([0.2] * JOBS), evidence.work)
        await verified(pool, evidence, cluster, JOBS)
        async with asyncio.timeout(WITHIN_S):
            while set(OWNER + PROJECTION) - {
                path.name for path in done.iterdir()
            }:  # a fast machine was too soon done
                await finished(pool, "executable = /bin/true\nrequest_memory = 16\nqueue 8\n", evidence.work)
        audit = await pool.log_check()
        assert audit.clean, audit.said
    assert [] == pool.left
