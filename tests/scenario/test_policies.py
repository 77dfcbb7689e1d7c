"""What becomes of jobs by their own policies and by the site's, in a real pool."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kettle.client import Client, job_id, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Evicted, Held, Terminated
from kettle_wire.ads.types import Ad
from kettle_wire.events import (
    JobAssigned,
    JobCompleted,
    JobDisconnected,
    JobHeld,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobVacated,
)

from .job_log import logged
from .waiting import happened

SLEEP = "executable = /bin/sleep\narguments = 600\n"
SITE: dict[str, dict[str, Any]] = {
    "schedd": {
        "periodic_expr_interval": 0.2,
        "system_periodic_hold": [
            {
                "name": "banned",
                "expression": "Banned",
                "reason": 'strcat("not here, ", Owner)',
                "subcode": "40 + 2",
            }
        ],
    },
    "startd": {"monitor_interval": 0.2, "measure_interval": 0.5},
}


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 4, "settings": SITE}


async def submit(pool: ThrowawayPool, text: str, cwd: Path) -> str:
    """Submit one job; its id."""
    submitted = await pool.client.submit(f"{text}queue\n", cwd=cwd)
    return f"{submitted.cluster}.0"


async def queued(client: Client, job: str) -> Ad:
    (ad,) = await client.jobs(select(job_id(job)))
    return ad


async def test_a_running_job_is_held_by_its_policy_and_released_by_it(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """The hold ends the attempt and says why, in the owner's words; the release lets the job run again."""
    job = await submit(
        pool,
        SLEEP
        + 'log = log\nperiodic_hold = NumJobStarts == 1\nperiodic_hold_reason = strcat("start ", NumJobStarts)\n'
        "periodic_hold_subcode = 7\nperiodic_release = HoldReasonSubCode == 7 && NumHolds == 1\n",
        tmp_path,
    )
    held = await happened(pool.client, job, JobHeld)
    assert (3, 7, "start 1") == (held.code, held.subcode, held.reason)
    released = await happened(pool.client, job, JobReleased)
    assert (
        "The job attribute PeriodicRelease expression 'HoldReasonSubCode == 7 && NumHolds == 1' evaluated to TRUE"
        == released.reason
    )
    again = await happened(pool.client, job, JobAssigned, times=2)
    assert again.attempt == 2
    ad = await queued(pool.client, job)
    assert ("start 1", 3, 7) == (ad["VacateReason"], ad["VacateReasonCode"], ad["VacateReasonSubCode"])
    events = await logged(tmp_path / "log", Held)
    assert [(3, 7, "start 1")] == [(e.code, e.subcode, e.reason) for e in events if isinstance(e, Held)]
    assert [(3, 7)] == [(e.code, e.subcode) for e in events if isinstance(e, Evicted)]
    await pool.client.remove(select(job_id(job)))


async def test_what_a_running_job_uses_decides(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A policy sees the memory that the worker measures, while the job runs; when it fires, the job is vacated and runs again.
    """
    job = await submit(pool, SLEEP + "periodic_vacate = MemoryUsage > 0 && NumJobStarts < 2\n", tmp_path)
    vacated = await happened(pool.client, job, JobVacated)
    assert vacated.ending.code == 1000
    assert "PeriodicVacate" in vacated.ending.reason
    await happened(pool.client, job, JobAssigned, times=2)
    await pool.client.remove(select(job_id(job)))


async def test_an_idle_job_is_removed_by_its_policy(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A job that waits too long leaves the queue."""
    job = await submit(
        pool,
        SLEEP + "requirements = false\nperiodic_remove = JobStatus == 1 && time() - QDate >= 1\n",
        tmp_path,
    )
    removed = await happened(pool.client, job, JobRemoved)
    assert "The job attribute PeriodicRemove expression" in removed.reason


async def test_the_site_holds_jobs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """The rule's reason and subcode are worked out in the job's ad; `kettle why` would tell it."""
    job = await submit(pool, SLEEP + "requirements = false\n+Banned = true\n", tmp_path)
    held = await happened(pool.client, job, JobHeld)
    owner = (await queued(pool.client, job))["Owner"]
    assert (26, 42, f"not here, {owner}") == (held.code, held.subcode, held.reason)
    explanation = (await pool.client.why(job_id(job))).explanation
    assert explanation is not None
    assert held.reason == explanation.reason
    await pool.client.remove(select(job_id(job)))


async def test_a_policy_without_a_value_never_fires(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Undefined, an error and a string leave the job alone, though it is looked at several times."""
    job = await submit(
        pool,
        "executable = /bin/sleep\narguments = 1\nperiodic_hold = NoSuchThing > 3\nperiodic_remove = 1 / 0\n"
        'periodic_vacate = "true"\non_exit_hold = strcat()\non_exit_remove = 1 / 0\n',
        tmp_path,
    )
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(job_id(job)))
    told = [each.event for each in await pool.client.events(job_id(job))]
    silent = JobDisconnected | JobReconnected  # a busy machine that did not answer for a while
    assert ["ClusterSubmitted", "JobAssigned", "JobStarted", "JobCompleted"] == [
        type(event).__name__ for event in told if not isinstance(event, silent)
    ]


async def test_a_failed_job_is_held_at_its_exit(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Its output is brought home, and how it ended is in its ad."""
    script(tmp_path / "fail.sh", "echo done\nexit 9\n")
    job = await submit(
        pool,
        "executable = fail.sh\noutput = out\non_exit_hold = ExitCode != 0\non_exit_hold_subcode = ExitCode + 1\n"
        'on_exit_hold_reason = strcat("it said ", ExitCode)\n',
        tmp_path,
    )
    held = await happened(pool.client, job, JobHeld)
    assert (3, 10, "it said 9") == (held.code, held.subcode, held.reason)
    ad = await queued(pool.client, job)
    assert (5, 9, False, 1, 1) == tuple(
        ad[name] for name in ("JobStatus", "ExitCode", "ExitBySignal", "NumJobCompletions", "NumHolds")
    )
    assert "[ JobPolicy = 1 ]" == ad["NumHoldsByReason"].expr  # type: ignore[union-attr]  # an ad within the ad
    assert (tmp_path / "out").read_text() == "done\n"
    await pool.client.remove(select(job_id(job)))


async def test_a_failed_job_is_tried_again(pool: ThrowawayPool, tmp_path: Path) -> None:
    """With max_retries = 2 a job that always fails runs three times, and its log tells each end."""
    script(tmp_path / "fail.sh", "exit 3\n")
    job = await submit(pool, "executable = fail.sh\nlog = log\nmax_retries = 2\n", tmp_path)
    completed = await happened(pool.client, job, JobCompleted)
    assert (3, 3) == (completed.attempt, completed.exit.code)
    events = await logged(tmp_path / "log", Terminated)
    requeued = [each for each in events if isinstance(each, Evicted)]
    assert [(1005, 3), (1005, 3)] == [(each.code, each.requeued and each.requeued.code) for each in requeued]
    assert (
        "The job attribute OnExitRemove expression 'NumJobCompletions > JobMaxRetries || ExitCode =?= 0' "
        "evaluated to FALSE" == requeued[0].reason
    )


async def test_a_retried_job_ends_when_it_succeeds(pool: ThrowawayPool, tmp_path: Path) -> None:
    """The code that counts as success is the job's own."""
    script(tmp_path / "seven.sh", "exit 7\n")
    job = await submit(pool, "executable = seven.sh\nsuccess_exit_code = 7\n", tmp_path)
    completed = await happened(pool.client, job, JobCompleted)
    assert (1, 7) == (completed.attempt, completed.exit.code)


@pytest.mark.parametrize(
    ("command", "code", "what"),
    [("allowed_execute_duration = 1", 47, "execute"), ("allowed_job_duration = 0 + RequestCpus", 46, "job")],
)
async def test_a_job_that_runs_for_too_long_is_held(
    pool: ThrowawayPool, tmp_path: Path, command: str, code: int, what: str
) -> None:
    """
    Whether the worker enforces it, of a number, or the schedd, of an expression: the reason is the same.
    """
    job = await submit(pool, f"{SLEEP}{command}\n", tmp_path)
    held = await happened(pool.client, job, JobHeld)
    assert (code, f"The job exceeded allowed {what} duration of 00:01") == (held.code, held.reason)
    await happened(pool.client, job, JobVacated)
    await pool.client.remove(select(job_id(job)))


async def test_a_job_that_its_owner_holds_is_not_released_by_policy(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """Also one that its policy had held before: the owner's hold replaces the policy's."""
    job = await submit(
        pool,
        SLEEP + "requirements = false\nperiodic_hold = NumHolds < 1\nperiodic_release = NumHolds > 1\n",
        tmp_path,
    )
    await happened(pool.client, job, JobHeld)
    acted = await pool.client.hold(select(job_id(job)), "wait for me")
    assert ["done"] == [outcome.outcome for outcome in acted.outcomes]
    for _ in range(3):  # looks of the schedd, of which those at another job are seen
        other = await submit(pool, SLEEP + "requirements = false\nperiodic_hold = true\n", tmp_path)
        await happened(pool.client, other, JobHeld)
    ad = await queued(pool.client, job)
    assert (5, 1, 2) == (ad["JobStatus"], ad["HoldReasonCode"], ad["NumHolds"])
    await pool.client.remove(select(job_id(job)))


async def test_the_record_is_sound(pool: ThrowawayPool) -> None:
    """After all of this the audit finds nothing."""
    audit = await pool.log_check()
    assert audit.clean, audit.said


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
