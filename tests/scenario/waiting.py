"""Waiting for what is recorded about a job."""

import asyncio
from contextlib import aclosing
from typing import Final, TypeVar

from kettle.client import Client, job_id
from kettle_wire.events import Event
from kettle_wire.jobs import JobId

WITHIN_S: Final = 60.0

T = TypeVar("T", bound=Event)


async def happened(client: Client, job: str | JobId, kind: type[T], *, times: int = 1) -> T:
    """Wait until something has been recorded of a job so many times; the last one."""
    found = 0
    job = job_id(job) if isinstance(job, str) else job
    async with asyncio.timeout(WITHIN_S), aclosing(client.follow(job)) as events:
        async for each in events:
            if isinstance(each.event, kind):
                found += 1
                if found == times:
                    return each.event
    raise AssertionError(f"{kind.__name__} did not happen {times} times to job {job}")
