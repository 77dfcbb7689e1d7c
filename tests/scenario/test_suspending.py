"""Jobs that their owner suspends for a while, in a real pool."""

import asyncio
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Suspended, Unsuspended
from kettle_wire.commands.schedd import Action
from kettle_wire.events import (
    JobAssigned,
    JobCompleted,
    JobContinued,
    JobOrdered,
    JobStarted,
    JobSuspended,
    JobVacated,
)

from .evidence import Evidence
from .job_log import logged
from .test_machine_policies import kettle
from .waiting import happened

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "startd": {
        "polling_interval": 0.1,
        "want_suspend": "TARGET.Pausing =?= true",
        "suspend": "TotalJobSuspendTime =?= undefined",
        "continue": "TARGET.Pausing =!= true || TARGET.NumShadowStarts > 1",
        "preempt": 'TARGET.Unwanted =?= true && TARGET.NumShadowStarts < 2 && Activity == "Suspended"',
    },
}
"""A machine that suspends jobs that say so, and lets none go on; its CONTINUE is true of all others."""
TICKS: Final = "while [ ! -e {go} ]; do date +%s.%N >> {ticks}; sleep 0.1; done\n"


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 4, "settings": SETTINGS}


async def submit(pool: ThrowawayPool, evidence: Evidence, more: str = "") -> tuple[str, Path, Path]:
    """A job that writes the time ten times a second; its id, where, and the file that lets it end."""
    ticks, go = evidence.directory / "ticks", evidence.directory / "go"
    path = evidence.work / "job.sh"
    path.write_text(f"#!/bin/sh\n{TICKS.format(go=go, ticks=ticks)}")
    path.chmod(0o755)
    small = "request_memory = 16\nrequest_disk = 1024\n"
    submitted = await pool.client.submit(
        f"executable = job.sh\nlog = log\n{small}{more}queue\n", cwd=evidence.work
    )
    return f"{submitted.cluster}.0", ticks, go


def moments(ticks: Path) -> list[float]:
    """When the job has run."""
    return [float(line) for line in ticks.read_text().split()]


async def ticking(ticks: Path, *, after: float = 0.0) -> None:
    """Wait until the job writes, after a moment."""
    async with asyncio.timeout(PATIENCE_S):
        while not ticks.exists() or not ticks.read_text() or moments(ticks)[-1] <= after:
            await asyncio.sleep(0.05)


async def test_a_job_stands_still_until_its_owner_lets_it_go_on(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    Whatever CONTINUE says, and although shadow, schedd and startd are killed meanwhile; its log and its ad tell.
    """
    job, ticks, go = await submit(pool, evidence)
    await ticking(ticks)

    acted = [(await pool.client.act("suspend", select(job))).outcomes[0] for _ in range(2)]
    await happened(pool.client, job, JobSuspended)
    (ad,) = await pool.client.jobs(select(job))
    stood: list[int] = []
    for daemon in ("shadow", "schedd", "startd"):
        killed = pool.kill(daemon, signal.SIGKILL)
        await pool.restarted(daemon, after=killed)
        stood.append(len(moments(ticks)))
    continued = await pool.client.act("continue", select(job))
    went_on = await happened(pool.client, job, JobContinued)
    await ticking(ticks, after=went_on.at)
    again = await pool.client.act("continue", select(job))
    go.touch()
    await happened(pool.client, job, JobCompleted)

    assert [("done", "running"), "already_done"] == [(acted[0].outcome, acted[0].status), acted[1].outcome]
    assert (7, 1) == (ad["JobStatus"], ad["TotalSuspensions"])
    assert ["done"] == [one.outcome for one in continued.outcomes]
    assert [("bad_status", "running")] == [(one.outcome, one.status) for one in again.outcomes]
    assert [stood[0]] * 3 == stood
    events = await logged(evidence.work / "log", Unsuspended)
    assert [1, 1] == [sum(isinstance(each, kind) for each in events) for kind in (Suspended, Unsuspended)]


async def test_an_order_reaches_a_machine_that_was_away(pool: ThrowawayPool, evidence: Evidence) -> None:
    """It is silent when the job is suspended and continued and suspended: the last one counts."""
    job, ticks, go = await submit(pool, evidence)
    await ticking(ticks)
    await happened(pool.client, job, JobStarted)
    pool.kill("startd", signal.SIGSTOP)
    try:
        orders: list[Action] = ["suspend", "continue", "suspend"]
        for order in orders:
            acted = await pool.client.act(order, select(job))
            assert ["done"] == [one.outcome for one in acted.outcomes]
        killed = pool.kill("shadow", signal.SIGKILL)
        await pool.restarted("shadow", after=killed)
    finally:
        pool.kill("startd", signal.SIGCONT)

    suspended = await happened(pool.client, job, JobSuspended)
    assert "suspend" == (await happened(pool.client, job, JobOrdered, times=3)).order
    await pool.client.act("continue", select(job))
    await happened(pool.client, job, JobContinued)
    await ticking(ticks, after=suspended.at + 0.5)
    go.touch()
    await happened(pool.client, job, JobCompleted)


async def test_what_the_machine_suspended_only_the_machine_continues(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    Its owner is told so; what she has suspended as well, she may continue, and it stays suspended all the same.
    """
    job, ticks, go = await submit(pool, evidence, "+Pausing = true\n")
    await happened(pool.client, job, JobSuspended)

    refused = (await pool.client.act("continue", select(job))).outcomes[0]
    told = await kettle(pool, "continue", job)
    both = (await pool.client.act("suspend", select(job))).outcomes[0]
    lifted = (await pool.client.act("continue", select(job))).outcomes[0]
    vacated = (await pool.client.act("vacate", select(job))).outcomes[0]
    await happened(pool.client, job, JobVacated)
    await happened(pool.client, job, JobAssigned, times=2)
    await ticking(ticks)  # one that was suspended before its first tick has begun again
    go.touch()
    await happened(pool.client, job, JobCompleted)

    assert [
        ("bad_status", "suspended"),
        ("done", "suspended"),
        ("done", "suspended"),
        ("done", "suspended"),
    ] == [(one.outcome, one.status) for one in (refused, both, lifted, vacated)]
    assert 1 == told[0]
    assert f"Job {job} is suspended by the policy of its machine, not by its owner" in told[2]
    assert ticks.exists()


async def test_the_machine_may_preempt_what_its_owner_has_suspended(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """A suspended job is no reason to keep a machine; the next run knows nothing of the order."""
    job, ticks, go = await submit(pool, evidence, "+Unwanted = true\n")
    await ticking(ticks)
    await pool.client.act("suspend", select(job))

    vacated = await happened(pool.client, job, JobVacated)
    await happened(pool.client, job, JobStarted, times=2)
    go.touch()
    await happened(pool.client, job, JobCompleted)

    assert 1011 == vacated.ending.code
