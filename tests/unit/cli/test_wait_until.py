"""`kettle wait --until`, with jobs that end while the queue is asked."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from kettle.client import JobId, Progress, Select
from kettle.client.events.progress import JobState
from kettle.testing.patience import PATIENCE_S
from kettle_services.cli.commands.wait_until import Reached, wait_until
from kettle_wire.ads import Ad

ENDING, OTHER = JobId(1, 0), JobId(1, 1)


class Pool:
    """A job ends when the queue has been asked, and before it answers."""

    def __init__(self, other: JobState) -> None:
        self.progress = Progress({ENDING: JobState("running"), OTHER: other})
        self.asked, self.told = asyncio.Event(), asyncio.Event()

    async def watch(self, _select: Select) -> AsyncGenerator[Progress]:
        yield self.progress
        await self.asked.wait()
        self.progress.put(ENDING, JobState("completed", 0))
        self.told.set()
        yield self.progress

    async def jobs(self, _select: Select, *, projection: list[str]) -> list[Ad]:
        del projection
        self.asked.set()
        await self.told.wait()
        await asyncio.sleep(0)
        return []


@pytest.mark.parametrize(
    ("other", "reached"),
    [
        (JobState("completed", 0), Reached(met=set(), ended={ENDING, OTHER}, left=set())),
        (JobState("held"), Reached(met=set(), ended={ENDING}, left={OTHER})),
    ],
)
async def test_a_job_that_has_just_ended_is_none_that_is_held(other: JobState, reached: Reached) -> None:
    """Nobody is told to release or remove it."""
    async with asyncio.timeout(PATIENCE_S):
        found = await wait_until(
            cast("Any", Pool(other)), Select(clusters=[1]), "JobPrio == 9", through_hold=False
        )
    assert reached == found
