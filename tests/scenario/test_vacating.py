"""Jobs that their owner wants off their machines, in a real pool."""

import asyncio
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import Client, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Evicted
from kettle_wire.ads.types import Ad
from kettle_wire.events import JobAssigned, JobCompleted, JobOrdered, JobStarted, JobVacated

from .evidence import Evidence
from .job_log import logged
from .persons import somebody
from .waiting import happened, there

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "startd": {"machine_max_vacate_time": 600},
}
USER_VACATE_JOB: Final = 1004
STUBBORN: Final = "trap '' TERM\n[ -e {mark} ] && exit 0\ntouch {mark}\nwhile :; do sleep 0.05; done\n"
"""It does not end when it is asked to, and ends by itself when it runs again."""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 4, "settings": SETTINGS}


async def submit(pool: ThrowawayPool, program: str, cwd: Path, more: str = "", *, count: int = 1) -> str:
    """Submit a shell script with a log; the id of the first job."""
    path = cwd / "job.sh"
    path.write_text(f"#!/bin/sh\n{program}")
    path.chmod(0o755)
    small = "request_memory = 16\nrequest_disk = 1024\n"
    description = f"executable = job.sh\nlog = log\n{small}{more}queue {count}\n"
    submitted = await pool.client.submit(description, cwd=cwd)
    return f"{submitted.cluster}.0"


async def past(client: Client, job: str) -> Ad:
    """The ad of a job that has left the queue."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await client.history(select(job))):
            await asyncio.sleep(0.05)
    return found[0]


async def test_a_job_leaves_its_machine_and_goes_on_from_what_it_saved(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    It hears its soft kill signal, saves, is idle, and runs again on another claim; who wanted it is told everywhere.
    """
    ready = evidence.directory / "ready"
    job = await submit(
        pool,
        f"trap 'echo half > state; exit 0' TERM\n[ -e state ] && exec cat state\n"
        f"touch {ready}\nwhile :; do sleep 0.05; done\n",
        evidence.work,
        "should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\noutput = out\n",
    )
    await there(ready)

    acted = await pool.client.act("vacate", select(job), "somebody needs it more")

    assert ["done"] == [one.outcome for one in acted.outcomes]
    reason = f"somebody needs it more (by user {pool.client.pool.user})"
    ordered = await happened(pool.client, job, JobOrdered)
    assert ("vacate", reason, pool.client.pool.user) == (ordered.order, ordered.reason, ordered.by)
    vacated = await happened(pool.client, job, JobVacated)
    assert (USER_VACATE_JOB, reason) == (vacated.ending.code, vacated.ending.reason)
    first, second = [await happened(pool.client, job, JobAssigned, times=times) for times in (1, 2)]
    assert first.claim != second.claim
    await happened(pool.client, job, JobCompleted)
    assert (evidence.work / "out").read_text() == "half\n"
    ad = await past(pool.client, job)
    assert (reason, USER_VACATE_JOB, 1) == (ad["VacateReason"], ad["VacateReasonCode"], ad["NumVacates"])
    (evicted,) = [each for each in await logged(evidence.work / "log", Evicted) if isinstance(each, Evicted)]
    assert reason in evicted.reason


async def test_one_that_does_not_listen_is_gone_at_once(pool: ThrowawayPool, evidence: Evidence) -> None:
    """It may take its time when it is asked to leave; then it is said that it may not."""
    mark = evidence.directory / "mark"
    job = await submit(pool, STUBBORN.format(mark=mark), evidence.work)
    await there(mark)

    asked = [
        (await pool.client.act("vacate_fast" if fast else "vacate", select(job))).outcomes[0]
        for fast in (False, False, True, True)
    ]
    vacated = await happened(pool.client, job, JobVacated)
    await happened(pool.client, job, JobCompleted)

    assert [("done", "running"), ("already_done", "vacating"), ("done", "vacating")] == [
        (one.outcome, one.status) for one in asked[:3]
    ]
    assert asked[3].outcome in {"already_done", "bad_status", "done"}, "it may be gone already, or run again"
    assert USER_VACATE_JOB == vacated.ending.code
    assert f"(by user {pool.client.pool.user})" in vacated.ending.reason


async def test_what_was_ordered_outlives_who_should_do_it(pool: ThrowawayPool, evidence: Evidence) -> None:
    """The machine does not answer, and the schedd and the shadow are killed: the job leaves all the same."""
    mark = evidence.directory / "mark"
    job = await submit(pool, STUBBORN.format(mark=mark), evidence.work)
    await there(mark)
    await happened(pool.client, job, JobStarted)

    stopped = pool.kill("startd", signal.SIGSTOP)
    try:
        acted = await pool.client.act("vacate_fast", select(job))
        for daemon in ("shadow", "schedd"):
            killed = pool.kill(daemon, signal.SIGKILL)
            await pool.restarted(daemon, after=killed)
    finally:
        pool.kill("startd", signal.SIGCONT)
    vacated = await happened(pool.client, job, JobVacated)
    await happened(pool.client, job, JobCompleted)

    assert stopped
    assert ["done"] == [one.outcome for one in acted.outcomes]
    assert USER_VACATE_JOB == vacated.ending.code


async def test_each_job_has_its_answer(pool: ThrowawayPool, evidence: Evidence, tmp_path: Path) -> None:
    """
    Of thousands, those that run are asked to leave, the others are on no machine; and nobody vacates another's.
    """
    mark = evidence.directory / "mark"
    runs = await submit(pool, STUBBORN.format(mark=mark), evidence.work)
    waits = await submit(pool, "exit 0\n", tmp_path, "requirements = false\n", count=2000)
    await there(mark)
    async with somebody(pool, "eve", tmp_path) as eve:
        others = await eve.act("vacate", select(runs))

    acted = await pool.client.act(
        "vacate",
        select(runs.partition(".")[0], waits.partition(".")[0], "99999.0", constraint="JobPrio == 0"),
    )

    assert [("denied", "running")] == [(one.outcome, one.status) for one in others.outcomes]
    found = {str(one.job): (one.outcome, one.status) for one in acted.outcomes}
    assert ("done", "running") == found.pop(runs)
    assert ("not_found", "") == found.pop("99999.0")
    assert 2000 == len(found)
    assert {("bad_status", "idle")} == set(found.values())
    await pool.client.act("vacate_fast", select(runs))
    await happened(pool.client, runs, JobCompleted)
    await pool.client.remove(select(waits.partition(".")[0]))
