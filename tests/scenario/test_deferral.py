"""Jobs that start at a time of their own."""

import asyncio
import os
import time
from contextlib import aclosing
from pathlib import Path

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.events import Event, JobAssigned, JobDeferred, JobHeld, JobStarted, JobVacated
from kettle_wire.jobs import JobId

WITHIN_S = 150.0
SOON_S = 8
"""Until the minute of a calendar: a pool has started and got a job by then, or it takes the minute after."""


async def events_of(pool: ThrowawayPool, cluster: int) -> list[Event]:
    return [each.event for each in await pool.client.events(JobId(cluster, 0))]


async def begun(pool: ThrowawayPool, tmp_path: Path, lead: int) -> tuple[bool, bool]:
    """
    Of a job that is to start in so many seconds: whether it had its machine before that, and whether it started not before.
    """
    at = int(time.time()) + lead
    submitted = await pool.client.submit(
        f"executable = /bin/true\ntransfer_executable = false\ndeferral_time = {at}\ndeferral_window = 1000\nqueue\n",
        cwd=tmp_path,
    )
    async with asyncio.timeout(WITHIN_S):
        await pool.client.wait(select(submitted.cluster))
    said = await pool.client.events(JobId(submitted.cluster, 0))
    (assigned,) = (each for each in said if isinstance(each.event, JobAssigned))
    (started,) = (each.event for each in said if isinstance(each.event, JobStarted))
    return assigned.at < at, at <= started.at


async def test_a_job_starts_at_its_time(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    It has its machine before, and its program starts at the time and not before; where that is too soon for a busy machine, later.
    """
    waited = False
    for lead in (3, 9, 27, 81):
        waited, in_time = await begun(pool, tmp_path, lead)
        assert in_time
        if waited:
            break
    assert waited


async def test_a_job_that_is_late_is_held(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A machine that is ready after the window does not start the job: it is held with HTCondor's code."""
    window = "ifThenElse(JobStatus == 1, 10000, 5)"
    submitted = await pool.client.submit(
        "executable = /bin/true\ntransfer_executable = false\n"
        f"deferral_time = {int(time.time()) - 100}\ndeferral_window = {window}\nqueue\n",
        cwd=tmp_path,
    )
    async with asyncio.timeout(WITHIN_S), aclosing(pool.client.watch(select(submitted.cluster))) as watched:
        async for progress in watched:
            if progress.counts["held"]:
                break
    (held,) = (each for each in await events_of(pool, submitted.cluster) if isinstance(each, JobHeld))
    assert (20, True) == (held.code, "missed" in held.reason)


def waits_again(said: list[Event]) -> bool:
    """Whether a job has run, left its machine, and been told when to run next."""
    kinds = [type(each) for each in said]
    return JobStarted in kinds and JobVacated in kinds[kinds.index(JobStarted) : -1]


def ahead_by(seconds: int) -> str:
    """A time zone whose clocks are that far ahead of UTC; its minutes begin when ours do not."""
    return f"<test>-00:00:{seconds:02}"


async def test_a_job_of_the_calendar_runs_again(tmp_path: Path, template: Path) -> None:
    """It runs at a full minute, and when its policy keeps it in the queue, it waits for the next one."""
    # The next minute of the calendar begins soon after the pool is there.
    ahead = -int(time.time() + SOON_S) % 60
    environ = {**os.environ, "TZ": ahead_by(ahead)}
    async with (
        throwaway_pool(tmp_path, cpus=1, template=template, environ=environ) as pool,
        asyncio.timeout(WITHIN_S),
    ):
        submitted = await pool.client.submit(
            "executable = /bin/true\ntransfer_executable = false\ncron_minute = *\ncron_window = 50\n"
            "on_exit_remove = false\nqueue\n",
            cwd=tmp_path,
        )
        while not waits_again(said := await events_of(pool, submitted.cluster)):
            await asyncio.sleep(0.1)
    deferred = [each.until for each in said if isinstance(each, JobDeferred)]
    (started,) = (each.at for each in said if isinstance(each, JobStarted))
    assert [0, 0] == [(each + ahead) % 60 for each in deferred[-2:]]
    assert deferred[-2] <= started < deferred[-1]
    assert [] == pool.left
