"""
Jobs that stay in the queue after their end, as long as their LeaveJobInQueue is true: they are in the queue or in the
history, whichever process dies meanwhile, and never in both.
"""

import asyncio
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import job_id, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Aborted, Terminated
from kettle_wire.ads.types import Ad
from kettle_wire.events import JobStarted

from .job_log import logged
from .waiting import happened

SITE: dict[str, dict[str, Any]] = {"schedd": {"periodic_expr_interval": 0.2}}
_SHORT: Final = "executable = /bin/true\ntransfer_executable = false\nlog = log\nrequest_memory = 16\n"
_LONG: Final = "executable = /bin/sleep\narguments = 600\nlog = log\nrequest_memory = 16\n"
_NEVER: Final = f"{_LONG}requirements = false\n"


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": SITE}


async def submit(pool: ThrowawayPool, text: str, cwd: Path, *, count: int = 1) -> str:
    """Submit jobs; the id of the first."""
    submitted = await pool.client.submit(f"{text}queue {count}\n", cwd=cwd)
    return f"{submitted.cluster}.0"


async def ended(pool: ThrowawayPool, job: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(job_id(job)))


async def statuses(pool: ThrowawayPool, job: str) -> tuple[list[object], list[object]]:
    """JobStatus of a job in the queue, and in the history."""
    queued = await pool.client.jobs(select(job_id(job)), projection=["JobStatus"])
    past = await pool.client.history(select(job_id(job)))
    return [ad["JobStatus"] for ad in queued], [ad["JobStatus"] for ad in past]


async def left(pool: ThrowawayPool, job: str) -> Ad:
    """The ad of a job in the history, as soon as it is there; it is in the queue no more."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await pool.client.history(select(job_id(job)))):
            await asyncio.sleep(0.05)
    assert [] == await pool.client.jobs(select(job_id(job)))
    return found[0]


async def test_a_completed_job_stays_until_an_edit_lets_it_go(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    In between the schedd is killed. It is counted as completed, is not run again, and its log has one end.
    """
    job = await submit(pool, f"{_SHORT}leave_in_queue = true\n", tmp_path)
    await ended(pool, job)
    assert ([4], []) == await statuses(pool, job)
    killed = pool.kill("schedd", signal.SIGKILL)
    await pool.restarted("schedd", after=killed)
    assert ([4], []) == await statuses(pool, job)
    assert {"completed": 1} == (await pool.client.totals(select(job_id(job)))).statuses
    (ad,) = await pool.client.jobs(select(job_id(job)))
    assert (0, True, 1) == (ad["ExitCode"], ad["KeptInQueue"], ad["NumJobStarts"])
    for command in ("hold", "release", "vacate"):
        status, _, err = await pool.kettle(command, job)
        assert (1, True) == (status, "it is completed" in err), command
    status, out, err = await pool.kettle("why", job)
    assert (0, "") == (status, err)
    assert "its LeaveJobInQueue keeps it in the queue" in out
    status, out, err = await pool.kettle("log", "check")
    assert status == 0, f"{out}{err}"
    status, out, err = await pool.kettle("log", "rebuild", "jobs")
    assert status == 0, f"{out}{err}"

    status, out, err = await pool.kettle("edit", job, "LeaveJobInQueue=JobStatus == 3")
    assert (0, f"Job {job} changed.", "") == (status, out.strip(), err)
    ad = await left(pool, job)
    assert (4, 0, 1) == (ad["JobStatus"], ad["ExitCode"], ad["NumEdits"])
    assert "KeptInQueue" not in ad
    ends = [
        one for one in await logged(tmp_path / "log", Terminated) if isinstance(one, Terminated | Aborted)
    ]
    assert [Terminated] == [type(one) for one in ends]


async def test_a_removed_job_stays_until_it_is_forced(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    As Parsl does it: condor_rm X; condor_rm -forcex X. Forcing what is not removed is refused and says why.
    """
    job = await submit(pool, f"{_NEVER}leave_in_queue = true\n", tmp_path)
    status, _, err = await pool.kettle("rm", "--forcex", job)
    assert (1, f"Job {job} cannot be removed by force before it is removed: it is idle.") == (
        status,
        err.strip(),
    )
    assert 0 == (await pool.kettle("rm", job))[0]
    assert ([3], []) == await statuses(pool, job)
    killed = pool.kill("schedd", signal.SIGKILL)
    await pool.restarted("schedd", after=killed)
    assert ([3], []) == await statuses(pool, job)
    status, out, err = await pool.kettle("rm", job)
    assert (0, f"Job {job} already removed.", "") == (status, out.strip(), err)
    status, out, err = await pool.kettle("rm", "--forcex", job)
    assert (0, f"Job {job} removed locally (remote state unknown).", "") == (status, out.strip(), err)
    assert (await left(pool, job))["JobStatus"] == 3
    assert 1 == sum(isinstance(one, Aborted) for one in await logged(tmp_path / "log", Aborted))
    assert 1 == (await pool.kettle("rm", "--forcex", job))[0]


async def test_a_running_job_is_removed_and_forced_at_once(pool: ThrowawayPool, tmp_path: Path) -> None:
    """It leaves as soon as its attempt has ended, although its expression is true."""
    job = await submit(pool, f"{_LONG}leave_in_queue = true\n", tmp_path)
    await happened(pool.client, job, JobStarted)
    assert 0 == (await pool.kettle("rm", job))[0]
    assert 0 == (await pool.kettle("rm", "--forcex", job))[0]
    ad = await left(pool, job)
    assert (3, 0) == (ad["JobStatus"], ad["CurrentHosts"])
    assert 1 == sum(isinstance(one, Aborted) for one in await logged(tmp_path / "log", Aborted))


async def test_a_running_job_that_is_removed_stays(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Its machine is free, and the next job runs there."""
    job = await submit(pool, f"{_LONG}leave_in_queue = JobStatus == 3\nrequest_cpus = 2\n", tmp_path)
    await happened(pool.client, job, JobStarted)
    assert 0 == (await pool.kettle("rm", job))[0]
    following = await submit(pool, f"{_SHORT}request_cpus = 2\n", tmp_path)
    await ended(pool, following)
    assert (await left(pool, following))["JobStatus"] == 4
    assert ([3], []) == await statuses(pool, job)
    assert 0 == (await pool.kettle("rm", "--forcex", job))[0]
    await left(pool, job)


async def test_a_completed_job_stays_for_a_time(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Of the two expressions the one is about the status alone, the other about the time: the periodic look ends it.
    """
    text = f"{_SHORT}leave_in_queue = JobStatus == 4 && time() - EnteredCurrentStatus < 3\n"
    job = await submit(pool, text, tmp_path)
    ad = await left(pool, job)
    assert ad["JobStatus"] == 4
    events = await pool.client.events(job_id(job))
    names = [type(each.event).__name__ for each in events]
    assert ["JobKept", "JobCompleted", "JobLeft"] == names[-3:]
    assert events[-2].frame == events[-3].frame
    assert events[-1].at - events[-2].at >= 2
    other = await submit(pool, f"{_SHORT}leave_in_queue = JobStatus == 3\n", tmp_path)
    await left(pool, other)
    names = [type(each.event).__name__ for each in await pool.client.events(job_id(other))]
    assert "JobCompleted" == names[-1]


async def test_a_completed_job_is_removed(pool: ThrowawayPool, tmp_path: Path) -> None:
    """It is removed then, and stays as such as long as its expression is true, or leaves at once."""
    stays = await submit(pool, f"{_SHORT}leave_in_queue = true\n", tmp_path)
    leaves = await submit(pool, f"{_SHORT}leave_in_queue = JobStatus == 4\n", tmp_path)
    for job in (stays, leaves):
        await ended(pool, job)
        assert ([4], []) == await statuses(pool, job)
        assert 0 == (await pool.kettle("rm", job))[0]
    assert (await left(pool, leaves))["JobStatus"] == 3
    assert ([3], []) == await statuses(pool, stays)
    assert 0 == (await pool.kettle("rm", "--forcex", stays))[0]
    assert (await left(pool, stays))["ExitCode"] == 0


async def test_many_are_removed_and_stay(pool: ThrowawayPool, tmp_path: Path) -> None:
    """One answer for each, and one command lets them all go."""
    job = await submit(pool, f"{_NEVER}leave_in_queue = true\n", tmp_path, count=200)
    meant = select(job_id(job).cluster)
    assert {"done"} == {one.outcome for one in (await pool.client.remove(meant)).outcomes}
    assert {"removed": 200} == (await pool.client.totals(meant)).statuses
    forced = (await pool.client.act("remove_x", meant)).outcomes
    assert [("done", 200)] == [(outcome, len(forced)) for outcome in {one.outcome for one in forced}]
    async with asyncio.timeout(PATIENCE_S):
        while 200 != len(await pool.client.history(meant, limit=0)):
            await asyncio.sleep(0.1)
    assert [] == await pool.client.jobs(meant)


async def test_the_record_is_sound(pool: ThrowawayPool) -> None:
    """After all of this the audit finds nothing."""
    audit = await pool.log_check()
    assert audit.clean, audit.said
