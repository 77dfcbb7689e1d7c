"""
What outlives a restart, and what does not outlive its lease.
"""

import asyncio
import signal
from contextlib import aclosing
from pathlib import Path

from kettle.client import select
from kettle.testing.pool import throwaway_pool
from kettle.wire.events import JobStarted, JobVacated
from kettle.wire.jobs import JobId

from .evidence import Evidence, flaws

WITHIN_S = 60.0


async def test_a_cluster_number_is_given_once(tmp_path: Path, template: Path) -> None:
    """
    A schedd that restarts with an empty queue goes on counting where it was.
    """
    numbers: list[int] = []
    async with throwaway_pool(tmp_path, cpus=2, template=template) as pool, asyncio.timeout(WITHIN_S):
        for _ in range(3):
            submitted = await pool.client.submit("executable = /bin/true\nqueue\n", cwd=tmp_path)
            numbers.append(submitted.cluster)
            await pool.client.wait(select(submitted.cluster))
            await asyncio.sleep(
                1.5
            )  # the working set is saved once a second: now it has no job, and no tail is left
            await pool.restarted("schedd", after=pool.kill("schedd"))
        audit = await pool.log_check()

    assert [1, 2, 3] == numbers
    assert audit.clean, audit.said


async def test_a_silent_worker_is_given_up_when_its_lease_is_over(
    tmp_path: Path, template: Path, evidence: Evidence
) -> None:
    """
    A machine that does not answer ends the job itself when its lease is over; then, and not before, the job runs again.
    """
    settings = {"master": {"not_responding_timeout": 120.0}}
    async with (
        throwaway_pool(tmp_path, cpus=1, template=template, settings=settings) as pool,
        asyncio.timeout(WITHIN_S),
    ):
        submitted = await pool.client.submit(evidence.sweep([6.0]), cwd=evidence.work)
        job = JobId(submitted.cluster, 0)
        async with aclosing(pool.client.follow(job)) as events:
            async for event in events:
                match event.event:
                    case JobStarted(attempt=1):
                        pool.kill("startd", signal.SIGSTOP)
                    case JobVacated():
                        pool.kill("startd", signal.SIGCONT)
                    case _:
                        pass
        told = await pool.client.events(job)
        audit = await pool.log_check()

    vacated = [event.event for event in told if isinstance(event.event, JobVacated)]
    assert [1008] == [event.code for event in vacated]
    assert [] == flaws(told)
    assert ({}, {0: 2}) == (evidence.overlaps(), evidence.runs())
    assert [] == evidence.wrong_results(1)
    assert audit.clean, audit.said
