"""What outlives a restart, and what does not outlive its lease."""

import asyncio
import signal
from contextlib import aclosing
from math import inf
from pathlib import Path

from kettle.client import select
from kettle.storage import PgLog, PgWorkingSet
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import SHORT_LEASE, ThrowawayPool
from kettle_wire.events import JobAssigned, JobStarted, JobVacated
from kettle_wire.jobs import JobId

from .evidence import Evidence, flaws
from .waiting import happened


async def test_a_cluster_number_is_given_once(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A schedd that restarts with an empty queue goes on counting where it was."""
    numbers: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(3):
            submitted = await pool.client.submit("executable = /bin/true\nqueue\n", cwd=tmp_path)
            numbers.append(submitted.cluster)
            await pool.client.wait(select(submitted.cluster))
            await saved(pool)  # the working set has no job, and no tail is left
            await pool.restarted("schedd", after=pool.kill("schedd"))
        audit = await pool.log_check()

    assert [numbers[0] + more for more in range(3)] == numbers
    assert audit.clean, audit.said


async def saved(pool: ThrowawayPool) -> None:
    """Wait until the schedd's working set is at the end of its log."""
    async with PgLog.connect(pool.client.pool.database_url) as log:
        while True:
            at, _ = await PgWorkingSet(log.database).load("schedd.schedd")
            tenure = await log.tenure("schedd.schedd")
            assert tenure is not None
            if at == tenure.frame:
                return
            await asyncio.sleep(0.05)


async def test_a_silent_worker_is_given_up_when_its_lease_is_over(
    shared_pool: SharedPool, evidence: Evidence
) -> None:
    """
    A machine that does not answer ends the job itself when its lease is over; then, and not before, the job runs again.
    """
    async with (
        shared_pool.lent(cpus=1, settings={"schedd": SHORT_LEASE}) as pool,
        asyncio.timeout(PATIENCE_S),
    ):
        submitted = await pool.client.submit(evidence.sweep([inf], again=0.0), cwd=evidence.work)
        job = JobId(submitted.cluster, 0)
        await happened(pool.client, job, JobStarted)
        await evidence.begun(0)
        pool.kill("startd", signal.SIGSTOP)
        await given_up(pool, job)
        pool.kill("startd", signal.SIGCONT)
        await pool.client.wait(select(submitted.cluster))
        told = await pool.client.events(job)
        audit = await pool.log_check()

    # On a machine that is suspended for some seconds the lease of a later attempt may be over as well.
    assert {1008} == {event.event.ending.code for event in told if isinstance(event.event, JobVacated)}
    assert [] == flaws(told)
    assert {} == evidence.overlaps()
    assert 2 <= evidence.runs()[0]
    assert [] == evidence.wrong_results(1)
    assert audit.clean, audit.said


async def test_a_job_is_given_up_after_its_own_lease(shared_pool: SharedPool, evidence: Evidence) -> None:
    """
    Given two jobs on a machine that does not answer, when the lease of the one is over, then it was ended there and runs
    again, and the other goes on, whose lease is the pool's.
    """
    settings = {
        "schedd": {"lease": 30.0, "alive_interval": 5.0, "shortest_job_lease": 1.0},
    }
    async with (
        shared_pool.lent(settings=settings) as pool,
        asyncio.timeout(PATIENCE_S),
    ):
        head, _, _ = evidence.sweep([], again=0.0).partition("queue ")
        jobs = f"{head}+JobLeaseDuration = $(lease)\nqueue seconds, lease from (\ninf, 1.5\ninf, 0\n)\n"
        submitted = await pool.client.submit(jobs, cwd=evidence.work)
        short, usual = (JobId(submitted.cluster, proc) for proc in range(2))
        for job in (usual, short):
            await happened(pool.client, job, JobStarted)
            await evidence.begun(job.proc)
        pool.kill("startd", signal.SIGSTOP)
        await given_up(pool, short)
        pool.kill("startd", signal.SIGCONT)
        evidence.let_go()
        await pool.client.wait(select(submitted.cluster))
        told = {job: await pool.client.events(job) for job in (short, usual)}
        audit = await pool.log_check()

    vacated = {
        job: {each.event.ending.code for each in events if isinstance(each.event, JobVacated)}
        for job, events in told.items()
    }
    assert {short: {1008}, usual: set()} == vacated
    assert [] == [flaw for events in told.values() for flaw in flaws(events)]
    assert {} == evidence.overlaps()
    assert (True, 1) == (2 <= evidence.runs()[0], evidence.runs()[1])
    assert audit.clean, audit.said


async def given_up(pool: ThrowawayPool, job: JobId) -> None:
    """Wait until the attempt of a job is over that is the last one now."""
    told = [event.event for event in await pool.client.events(job)]
    last = max(event.attempt for event in told if isinstance(event, JobAssigned))
    async with aclosing(pool.client.follow(job)) as events:
        async for event in events:
            if isinstance(event.event, JobVacated) and event.event.attempt >= last:
                return
