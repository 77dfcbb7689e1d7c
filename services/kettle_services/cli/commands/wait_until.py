"""`kettle wait --until`: until an expression has been true of each job."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Final

import msgspec

from kettle.client import Client, JobId, Progress, Select

_LOOK_S: Final = 5.0
"""Between two looks although nothing was recorded: an expression may ask for what is measured, and for the time."""
_FLOOR_S: Final = 0.5
_REST: Final = 5.0
"""How many times as long as a look the pause after it lasts, in a queue where that takes long."""


class Reached(msgspec.Struct):
    """Which jobs the expression was true of, and which ended before."""

    met: set[JobId]
    ended: set[JobId]
    """They left the queue, and nobody saw the expression true of them."""
    left: set[JobId]
    """They are all held, and nobody waits for them any longer."""


async def wait_until(pool: Client, select: Select, expression: str, *, through_hold: bool) -> Reached:
    """Look at the queue whenever something happens to the jobs; what has been true once counts."""
    met: set[JobId] = set()
    async with aclosing(pool.watch(select)) as watched:
        progress = await anext(watched)
        changed, over = asyncio.Event(), asyncio.Event()

        async def follow() -> None:
            async for _ in watched:
                changed.set()
            over.set()
            changed.set()

        following = asyncio.create_task(follow(), name="progress of the jobs")
        try:
            while True:
                changed.clear()
                began = time.monotonic()
                met |= await _meeting(pool, progress, expression)
                ended = _ended(progress)  # some may have ended meanwhile
                left = set(progress.jobs) - met - ended
                if not left or over.is_set() or (progress.stuck and not through_hold):
                    return Reached(met, ended - met, left)
                await asyncio.sleep(max(_FLOOR_S, _REST * (time.monotonic() - began)))
                try:
                    async with asyncio.timeout(_LOOK_S):
                        await changed.wait()
                except TimeoutError:
                    pass  # look all the same
                if following.done() and (failure := following.exception()) is not None:
                    raise failure
        finally:
            following.cancel()
            await asyncio.wait([following])


def _ended(progress: Progress) -> set[JobId]:
    jobs: Mapping[JobId, object] = progress.jobs
    return {job for job in jobs if progress.jobs[job].ended}


async def _meeting(pool: Client, progress: Progress, expression: str) -> set[JobId]:
    """The jobs in the queue of which it is true now."""
    clusters = sorted({job.cluster for job in progress.jobs})
    found = await pool.jobs(
        Select(clusters=clusters, constraint=expression), projection=["ClusterId", "ProcId"]
    )
    there = {JobId(int(str(ad["ClusterId"])), int(str(ad["ProcId"]))) for ad in found}
    return there & set(progress.jobs)
