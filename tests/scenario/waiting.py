"""Waiting for what is recorded, or said, about a job."""

import asyncio
import time
from contextlib import aclosing
from pathlib import Path
from typing import Final, TypeVar

from kettle.client import Client, job_id
from kettle.client.explanations.job_state import answer
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import Event
from kettle_wire.jobs import JobId

WORKFLOW_S: Final = 3 * PATIENCE_S
"""For the end of a workflow: many jobs, one after the other, of which each may be slow."""

T = TypeVar("T", bound=Event)


async def happened(client: Client, job: str | JobId, kind: type[T], *, times: int = 1) -> T:
    """Wait until something has been recorded of a job so many times; the last one."""
    found = 0
    job = job_id(job) if isinstance(job, str) else job
    async with asyncio.timeout(PATIENCE_S), aclosing(client.follow(job)) as events:
        async for each in events:
            if isinstance(each.event, kind):
                found += 1
                if found == times:
                    return each.event
    raise AssertionError(f"{kind.__name__} did not happen {times} times to job {job}")


async def there(*paths: Path) -> None:
    """Wait for what jobs make."""
    async with asyncio.timeout(PATIENCE_S):
        while not all(path.exists() for path in paths):
            await asyncio.sleep(0.05)


async def the_machine(pool: ThrowawayPool) -> str:
    """The name of the pool's machine, as soon as its collector knows it."""
    async with asyncio.timeout(PATIENCE_S):
        while not (ads := await pool.client.ads("Machine", projection=["Machine"])):
            await asyncio.sleep(0.05)
    return str(ads[0]["Machine"])


async def explained(pool: ThrowawayPool, job: str, text: str) -> str:
    """What `kettle why` says of a job, as soon as `text` is in it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            report = await pool.client.why(job_id(job))
            if any(text in sentence for sentence in answer(report, now=time.time()).sentences):
                _, said, _ = await pool.kettle("why", job)
                if text in said:  # who is slow for a moment is done without, and then it is not
                    return said
            await asyncio.sleep(0.05)
