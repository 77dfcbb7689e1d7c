"""Jobs that run where they were submitted: the local and the scheduler universe, in a real pool."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import Client, job_id, select
from kettle.client.jobs.status import Status
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Disconnected, Executing, ImageSize, Reconnected, Submitted, Terminated
from kettle.userlog.events import LogEvent
from kettle_wire.events import JobAssigned, JobStarted

from .evidence import Evidence
from .job_log import logged
from .waiting import happened, the_machine

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "startd": {"start": "false", "local_overcommit": 2.0},
    "schedd": {
        "start_local_universe": "TotalLocalJobsRunning < 2",
        "start_scheduler_universe": "TARGET.Allowed =?= true",
        "max_scheduler_jobs_per_owner": 2,
        "local_jobs_interval": 0.5,
        "periodic_expr_interval": 0.5,
    },
}
"""A machine that takes no job of the pool: what runs was submitted here."""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 1, "settings": SETTINGS}


async def submit(pool: ThrowawayPool, cwd: Path, program: str, more: str) -> int:
    """Submit a shell script; its cluster."""
    path = cwd / "job.sh"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    described = f"executable = job.sh\nlog = log\n{more}"
    return (await pool.client.submit(described, cwd=cwd)).cluster


async def until(client: Client, cluster: int, status: Status, count: int) -> None:
    """Wait until so many jobs of a cluster have one status."""
    async with asyncio.timeout(PATIENCE_S), aclosing(client.watch(select(cluster))) as watched:
        async for progress in watched:
            if progress.counts[status] == count:
                return
    raise AssertionError(f"there were never {count} jobs {status}")


async def assigned(client: Client, cluster: int, *, times: int = 1) -> list[JobAssigned]:
    """What the first job of a cluster was assigned to, when it was so many times."""
    found: list[JobAssigned] = []
    async with asyncio.timeout(PATIENCE_S), aclosing(client.follow(job_id(f"{cluster}.0"))) as events:
        async for each in events:
            if isinstance(each.event, JobAssigned):
                found.append(each.event)
                if len(found) == times:
                    return found
    raise AssertionError(f"the job was not assigned {times} times")


async def kinds_in(path: Path) -> list[type[LogEvent]]:
    """
    The kinds of the events in the log of a job that has ended, but for measurements, and that a busy machine was silent for a while.
    """
    told = await logged(path, Terminated)
    return [type(event) for event in told if not isinstance(event, ImageSize | Disconnected | Reconnected)]


async def test_a_local_job_runs_where_no_machine_takes_jobs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """It needs no match, and has all that others have: files, exit code, usage, user log."""
    (tmp_path / "words").write_text("one two")
    more = "universe = local\ntransfer_input_files = words\noutput = out\nqueue\n"
    cluster = await submit(pool, tmp_path, "cat words > copy; cat words; exit 7", more)

    async with asyncio.timeout(PATIENCE_S):
        state = (await pool.client.wait(select(cluster))).jobs[job_id(f"{cluster}.0")]

    assert 7 == state.exit_code
    assert "one two" == (tmp_path / "copy").read_text() == (tmp_path / "out").read_text()
    assert "local" == (await assigned(pool.client, cluster))[0].slot.partition("_")[0]
    assert [Submitted, Executing, Terminated] == await kinds_in(tmp_path / "log")


async def test_no_more_local_jobs_run_than_the_site_allows(pool: ThrowawayPool, tmp_path: Path) -> None:
    """START_LOCAL_UNIVERSE is asked before each job: two of three run, although the machine has one core."""
    cluster = await submit(pool, tmp_path, "exec sleep 600", "universe = local\nqueue 3\n")
    await until(pool.client, cluster, "running", 2)

    status, said, _ = await pool.kettle("why", f"{cluster}.2")

    assert 0 == status
    assert "START_LOCAL_UNIVERSE" in said
    await pool.client.remove(select(f"{cluster}.0"))
    await until(pool.client, cluster, "running", 2)
    await pool.client.remove(select(cluster))
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))


async def test_policies_and_people_act_on_local_jobs_as_on_others(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    A job of the scheduler universe is held by its own periodic policy, released by its owner, and ended by its removal.
    """
    more = "universe = scheduler\n+Allowed = true\nperiodic_hold = NumJobStarts == 1\nqueue\n"
    cluster = await submit(pool, tmp_path, "exec sleep 600", more)
    await until(pool.client, cluster, "held", 1)

    await pool.client.release(select(cluster))
    await assigned(pool.client, cluster, times=2)
    await until(pool.client, cluster, "running", 1)
    await pool.client.remove(select(cluster))

    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))


async def test_a_job_that_the_site_does_not_start_says_so(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    START_SCHEDULER_UNIVERSE may ask the job (TARGET); one that asks for more than the machine has is told that too.
    """
    forbidden = await submit(pool, tmp_path, "true", "universe = scheduler\nqueue\n")
    large = await submit(pool, tmp_path, "true", "universe = local\nrequest_cpus = 5000\nqueue\n")

    said = [(await pool.kettle("why", f"{cluster}.0"))[1] for cluster in (forbidden, large)]
    async with asyncio.timeout(PATIENCE_S):
        while "refuses it" not in said[1]:
            said[1] = (await pool.kettle("why", f"{large}.0"))[1]

    assert "START_SCHEDULER_UNIVERSE of the schedd does not allow" in said[0]
    assert "has not enough left" in said[1]
    await pool.client.remove(select(forbidden, large))


async def test_one_owner_does_not_take_all_places(
    pool: ThrowawayPool, tmp_path: Path, evidence: Evidence
) -> None:
    """
    As many DAG jobs as one may have run; those that wait say what they wait for, and begin when one has ended.
    """
    program = f"until [ -e {evidence.directory}/$1 ]; do sleep 0.1; done"
    more = "universe = scheduler\n+Allowed = true\narguments = $(Process)\nqueue 3\n"
    cluster = await submit(pool, tmp_path, program, more)
    await until(pool.client, cluster, "running", 2)
    said = (await pool.kettle("why", f"{cluster}.2"))[1]
    assert "as may: 2 (max_scheduler_jobs_per_owner)" in said
    (evidence.directory / "0").touch()
    await happened(pool.client, job_id(f"{cluster}.2"), JobStarted)
    for number in ("1", "2"):
        (evidence.directory / number).touch()
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))


async def test_a_local_job_outlives_its_schedd_and_its_shadow(
    pool: ThrowawayPool, tmp_path: Path, evidence: Evidence
) -> None:
    """Both are killed and come back within the lease: the job goes on, and has run once."""
    program = f"until [ -e {evidence.directory}/go ]; do sleep 0.1; done; exit 5"
    cluster = await submit(pool, tmp_path, program, "universe = local\nqueue\n")
    await until(pool.client, cluster, "running", 1)

    for name in ("schedd", "shadow"):
        await pool.restarted(name, after=pool.kill(name))
    (evidence.directory / "go").touch()

    async with asyncio.timeout(PATIENCE_S):
        state = (await pool.client.wait(select(cluster))).jobs[job_id(f"{cluster}.0")]
    assert 5 == state.exit_code
    assert [Submitted, Executing, Terminated] == await kinds_in(tmp_path / "log")


async def test_draining_is_for_the_pools_jobs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A machine that is being emptied goes on with what was submitted on it."""
    cluster = await submit(pool, tmp_path, "exec sleep 600", "universe = local\nqueue\n")
    await until(pool.client, cluster, "running", 1)
    machine = await the_machine(pool)

    status, _, error = await pool.kettle("drain", machine, "--fast")
    again = await submit(pool, tmp_path, "true", "universe = local\nqueue\n")
    async with asyncio.timeout(PATIENCE_S):
        state = (await pool.client.wait(select(again))).jobs[job_id(f"{again}.0")]

    assert (0, "") == (status, error.partition("See how")[0])
    assert 0 == state.exit_code
    await until(pool.client, cluster, "running", 1)
    assert 0 == (await pool.kettle("drain", machine, "--cancel"))[0]
    await pool.client.remove(select(cluster))
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))
