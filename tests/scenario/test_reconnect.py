"""A machine that goes away: the job's owner sees it, and within the lease nothing else happens."""

import asyncio
import math
import signal
from contextlib import aclosing
from pathlib import Path

from kettle.client import select
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Terminated
from kettle_wire.events import Event, JobAssigned, JobDisconnected, JobReconnected, JobStarted, JobVacated
from kettle_wire.jobs import JobId

from .evidence import Evidence, flaws
from .job_log import logged

WITHIN_S = 150.0
LONG_LEASE = {"schedd": {"lease": 120.0}}
SHORT_LEASE = {"schedd": {"lease": 6.0}}


async def numbers_in(path: Path) -> list[int]:
    """The events in the log of a job that has ended, from the first start on and without 006."""
    return [event.number for event in await logged(path, Terminated) if event.number not in {0, 6}]


def recorded(told: list[Event], *kinds: type[Event]) -> list[str]:
    return [type(event).__name__ for event in told if isinstance(event, kinds)]


async def until(pool: ThrowawayPool, job: JobId, kind: type[Event]) -> None:
    async with aclosing(pool.client.follow(job)) as events:
        async for event in events:
            if isinstance(event.event, kind):
                return


async def test_a_machine_that_comes_back_within_the_lease_finishes_its_job(
    shared_pool: SharedPool, evidence: Evidence
) -> None:
    """
    The log says 022 and 023, the ad says since when and how often, and the job runs once, also if its machine is silent again.
    """
    async with (
        shared_pool.lent(cpus=1, settings=LONG_LEASE) as pool,
        asyncio.timeout(WITHIN_S),
    ):
        description = f"log = job.log\n{evidence.sweep([math.inf])}"
        job = JobId((await pool.client.submit(description, cwd=evidence.work)).cluster, 0)
        await until(pool, job, JobStarted)
        pool.kill("startd", signal.SIGSTOP)
        await until(pool, job, JobDisconnected)
        (away,) = await pool.client.jobs(select(job))
        pool.kill("startd", signal.SIGCONT)
        await until(pool, job, JobReconnected)
        (back,) = await pool.client.jobs(select(job))
        evidence.let_go()
        await pool.client.wait(select(job))
        told = [event.event for event in await pool.client.events(job)]
        numbers = await numbers_in(evidence.work / "job.log")
        while not (done := await pool.client.history(select(job))):
            await asyncio.sleep(0.05)
        audit = await pool.log_check()

    assert (2, True, True) == (
        away["JobStatus"],
        isinstance(away["JobDisconnectedDate"], int),
        away["JobCurrentReconnectAttempt"] in range(1, 1000),
    )
    assert (2, 1, False) == (back["JobStatus"], back["NumJobReconnects"], "JobDisconnectedDate" in back)
    found = recorded(told, JobDisconnected, JobReconnected, JobVacated)
    assert ["JobDisconnected", "JobReconnected"] * (len(found) // 2) == found
    assert (found.count("JobReconnected"), 1) == (done[0]["NumJobReconnects"], done[0]["NumJobStarts"])
    assert [1, *[22, 23] * (len(found) // 2), 5] == numbers
    assert ({}, {0: 1}, []) == (evidence.overlaps(), evidence.runs(), evidence.wrong_results(1))
    assert audit.clean, audit.said


async def test_a_machine_that_stays_away_loses_its_job(shared_pool: SharedPool, evidence: Evidence) -> None:
    """
    When the lease is over, and not before, the log says 024 and the job runs again; what ran has ended by then.

    A machine as busy as to lose so short a lease once more has the job run again.
    """
    async with (
        shared_pool.lent(cpus=1, settings=SHORT_LEASE) as pool,
        asyncio.timeout(WITHIN_S),
    ):
        description = f"log = job.log\n{evidence.sweep([math.inf], again=0.0)}"
        job = JobId((await pool.client.submit(description, cwd=evidence.work)).cluster, 0)
        await until(pool, job, JobStarted)
        await evidence.begun(0)
        pool.kill("startd", signal.SIGSTOP)
        await until(pool, job, JobVacated)
        (idle,) = await pool.client.jobs(select(job))
        pool.kill("startd", signal.SIGCONT)
        await pool.client.wait(select(job))
        told = await pool.client.events(job)
        numbers = await numbers_in(evidence.work / "job.log")
        audit = await pool.log_check()

    assert (1, 1008, 1) == (idle["JobStatus"], idle["VacateReasonCode"], idle["NumVacates"])
    assert [] == flaws(told)
    assert ["JobAssigned", "JobDisconnected", "JobVacated", "JobAssigned"] == recorded(
        [event.event for event in told], JobAssigned, JobDisconnected, JobReconnected, JobVacated
    )[:4]
    assert ([1, 22, 24, 1], 5) == (numbers[:4], numbers[-1])
    assert evidence.runs()[0] >= 2
    assert ({}, []) == (evidence.overlaps(), evidence.wrong_results(1))
    assert audit.clean, audit.said
