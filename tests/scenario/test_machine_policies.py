"""
What the owner of a machine makes of the jobs on it, in a real pool: suspended, preempted, held, drained.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from kettle.client import Client, job_id, select
from kettle.client.errors import CommandRefusedError
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Aborted, Evicted, Held, Suspended, Terminated, Unsuspended
from kettle_wire.ads.types import Ad
from kettle_wire.events import (
    Event,
    JobAssigned,
    JobCompleted,
    JobContinued,
    JobHeld,
    JobStarted,
    JobSuspended,
    JobVacated,
)

from .evidence import Evidence
from .job_log import logged

# A job has some seconds for its first words before anything is done to it: also on a machine that is suspended just then.
OWNERS: Final[dict[str, dict[str, Any]]] = {
    "startd": {
        "polling_interval": 0.2,
        "activity_delay": 0.05,
        "want_suspend": "TARGET.Pausing =?= true",
        "suspend": "TotalJobSuspendTime =?= undefined && time() - JobStart >= 6",
        "continue": "time() - EnteredCurrentActivity >= 2",
        "preempt": "TARGET.Unwanted =?= true && TARGET.NumShadowStarts < 2 && (TARGET.Bad =?= true || time() - JobStart >= 5)",
        "want_hold": "TARGET.Bad =?= true",
        "want_hold_reason": 'strcat("not on my machine, ", TARGET.Owner)',
        "want_hold_subcode": 77,
        "max_job_retirement_time": 600,
        "machine_max_vacate_time": "ifThenElse(TARGET.Stubborn =?= true, 8, 600)",
    },
}

T = TypeVar("T", bound=Event)


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 4, "settings": OWNERS}


async def submit(pool: ThrowawayPool, program: str, cwd: Path, more: str = "") -> str:
    """Submit a shell script as one job with a log; its id."""
    path = cwd / "job.sh"
    path.write_text(f"#!/bin/sh\n{program}")
    path.chmod(0o755)
    submitted = await pool.client.submit(f"executable = job.sh\nlog = log\n{more}queue\n", cwd=cwd)
    return f"{submitted.cluster}.0"


async def happened(client: Client, job: str, kind: type[T], *, times: int = 1) -> tuple[float, T]:
    """Wait until something has happened to a job so many times; when it was recorded, and the last one."""
    found = 0
    async with asyncio.timeout(PATIENCE_S), aclosing(client.follow(job_id(job))) as events:
        async for each in events:
            found += isinstance(each.event, kind)
            if found == times:
                assert isinstance(each.event, kind)
                return each.at, each.event
    raise AssertionError(f"{kind.__name__} did not happen {times} times to job {job}")


async def slot(client: Client, enough: Callable[[Ad], bool]) -> Ad:
    """The ad of the partitionable slot, as soon as it is so."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = await client.ads("Machine", constraint="PartitionableSlot")
            if found and enough(found[0]):
                return found[0]
            await asyncio.sleep(0.05)


async def kettle(pool: ThrowawayPool, *words: str) -> tuple[int, str, str]:
    """What the command comes to, and what it says."""
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kettle_services.cli", *words, env=environ, stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


def moments(path: Path) -> list[float]:
    """When a program has said that it runs, by its whole lines."""
    return [float(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


async def test_a_job_is_suspended_and_goes_on(pool: ThrowawayPool, evidence: Evidence) -> None:
    """All of its processes are suspended, a daemon among them; the queue and the log tell; it ends well."""
    ticks, heir, go = (evidence.directory / name for name in ("ticks", "heir", "go"))
    job = await submit(
        pool,
        f"(setsid sh -c 'while :; do date +%s.%N >> {heir}; sleep 0.05; done' &)\n"
        f"while [ ! -e {go} ]; do date +%s.%N >> {ticks}; sleep 0.05; done\n",
        evidence.work,
        "+Pausing = true\n",
    )

    _, suspended = await happened(pool.client, job, JobSuspended)
    (ad,) = await pool.client.jobs(select(job_id(job)))
    assert 1 == ad["TotalSuspensions"]
    assert suspended.processes >= 2
    _, continued = await happened(pool.client, job, JobContinued)
    async with asyncio.timeout(PATIENCE_S):
        while any(moments(path)[-1] <= continued.at for path in (ticks, heir)):
            await asyncio.sleep(0.05)
    go.touch()
    _, completed = await happened(pool.client, job, JobCompleted)

    stood = continued.at - suspended.at
    assert stood >= 1
    for path in (ticks, heir):
        assert moments(path)[0] < suspended.at
        assert [] == [each for each in moments(path) if suspended.at + 0.5 < each < continued.at - 0.5]
    assert (1, 0) == (completed.attempt, completed.exit.code)
    events = await logged(evidence.work / "log", Terminated)
    assert [Suspended, Unsuspended] == [
        type(event) for event in events if isinstance(event, Suspended | Unsuspended)
    ]


async def test_a_job_that_is_suspended_can_be_removed(pool: ThrowawayPool, evidence: Evidence) -> None:
    """It hears the signal although it is suspended."""
    heard = evidence.directory / "heard"
    job = await submit(
        pool,
        f"trap 'echo heard > {heard}; exit 0' TERM\nwhile :; do sleep 0.05; done\n",
        evidence.work,
        "+Pausing = true\n",
    )
    await happened(pool.client, job, JobSuspended)

    await pool.client.remove(select(job_id(job)))

    events = await logged(evidence.work / "log", Aborted)
    assert [1023] == [event.code for event in events if isinstance(event, Evicted)]
    assert heard.read_text() == "heard\n"


async def test_a_preempted_job_that_does_not_go_is_killed(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    It is asked to end, hears that, is killed, and runs again; the retirement time that it does not want it has not.
    """
    heard = evidence.directory / "heard"
    job = await submit(
        pool,
        f"[ -e {heard} ] && exit 0\ntrap 'touch {heard}' TERM\nwhile :; do sleep 0.05; done\n",
        evidence.work,
        "+Unwanted = true\n+Stubborn = true\nmax_job_retirement_time = 0\n",
    )

    _, vacated = await happened(pool.client, job, JobVacated)

    assert (1011, "PREEMPT of the machine became true") == (vacated.ending.code, vacated.ending.reason)
    assert heard.exists()
    _, completed = await happened(pool.client, job, JobCompleted)
    assert (2, 0) == (completed.attempt, completed.exit.code)
    events = await logged(evidence.work / "log", Terminated)
    assert [1011] == [event.code for event in events if isinstance(event, Evicted)]


async def test_an_owner_can_hold_what_he_does_not_want(pool: ThrowawayPool, evidence: Evidence) -> None:
    """WANT_HOLD: the job does not run elsewhere, and its owner reads why."""
    job = await submit(
        pool,
        "exec sleep 600\n",
        evidence.work,
        "+Unwanted = true\n+Bad = true\nmax_job_retirement_time = 0\n",
    )

    _, held = await happened(pool.client, job, JobHeld)

    (ad,) = await pool.client.jobs(select(job_id(job)))
    assert (21, 77, f"not on my machine, {ad['Owner']}") == (held.code, held.subcode, held.reason)
    events = await logged(evidence.work / "log", Held)
    assert [(21, 77)] == [(e.code, e.subcode) for e in events if isinstance(e, Held)]
    await pool.client.remove(select(job_id(job)))


async def test_a_drained_machine_finishes_its_job_and_takes_no_other(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """Until it is told to take work again: then the job that waited runs."""
    go = evidence.directory / "go"
    running = await submit(pool, f"while [ ! -e {go} ]; do sleep 0.05; done\n", evidence.work)
    await happened(pool.client, running, JobStarted)
    machine = str((await slot(pool.client, lambda _: True))["Machine"])

    request = await pool.client.hosts.drain(machine, reason="new disks")
    seen = await slot(pool.client, lambda ad: ad["Draining"] is True)
    assert ("Drained", "Retiring", False, request, "new disks") == tuple(
        seen[name] for name in ("State", "Activity", "Requirements", "DrainingRequestId", "DrainReason")
    )
    assert '{ "Retiring" }' == seen["ChildActivity"].expr  # type: ignore[union-attr]  # a list in the ad
    waiting = await submit(pool, "exit 0\n", evidence.work)
    with pytest.raises(CommandRefusedError, match="already"):
        await pool.client.hosts.drain(machine)
    go.touch()
    _, completed = await happened(pool.client, running, JobCompleted)
    assert (1, 0) == (completed.attempt, completed.exit.code)
    await slot(pool.client, lambda ad: ad["Activity"] == "Idle")
    await pool.client.hosts.cancel_drain(machine, request)
    cancelled = (await slot(pool.client, lambda ad: ad["State"] == "Unclaimed"))["EnteredCurrentState"]
    assert isinstance(cancelled, int)

    at, _ = await happened(pool.client, waiting, JobAssigned)
    assert at >= cancelled
    await happened(pool.client, waiting, JobCompleted)
    with pytest.raises(CommandRefusedError, match="not being drained"):
        await pool.client.hosts.cancel_drain(machine)


async def test_a_quick_drain_vacates_and_the_machine_comes_back(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    The job has no retirement, runs again when the machine takes work again by itself, and its claim was not used twice.
    """
    mark = evidence.directory / "mark"
    job = await submit(pool, f"[ -e {mark} ] && exit 0\ntouch {mark}\nexec sleep 600\n", evidence.work)
    await happened(pool.client, job, JobStarted)
    machine = str((await slot(pool.client, lambda _: True))["Machine"])

    stranger = await kettle(pool, "drain", "nowhere")
    assert 1 == stranger[0]
    assert f"the pool has no machine nowhere; it has {machine}." in stranger[2]
    said = await kettle(pool, "drain", "--quick", "--resume-on-completion", machine)
    assert 0 == said[0], said[2]
    assert f"{machine} is being drained (request " in said[1]

    _, vacated = await happened(pool.client, job, JobVacated)
    assert (1014, "the machine is being drained") == (vacated.ending.code, vacated.ending.reason)
    _, completed = await happened(pool.client, job, JobCompleted)
    assert (2, 0) == (completed.attempt, completed.exit.code)


async def test_the_record_is_sound(pool: ThrowawayPool) -> None:
    """After all of this the audit finds nothing."""
    audit = await pool.log_check()
    assert audit.clean, audit.said
