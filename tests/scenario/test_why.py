"""`kettle why` of jobs that failed, of whole clusters, and of a machine whose owner is there."""

import asyncio
import json
import re
import shlex
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

FAILS: Final = """
executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo it is broken >&2; exit 3'"
error = $(Cluster).$(Process).err
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    policy = (  # no keyboard is idle for so long, and one that was never used is idle for 2147483647 s
        'TARGET.WantsDesk =!= true || (KeyboardIdle > 2147483640 && KeyboardIdle < 2147483647 && ClockMin >= 0 && TARGET.Owner != "eve")'
    )
    return {"settings": {"startd": {"start": policy}}}


async def said(pool: ThrowawayPool, *words: str) -> str:
    """What `kettle why` prints."""
    status, out, err = await pool.kettle("why", *words)
    assert (0, "") == (status, err)
    return out


async def test_what_failed_shows_its_errors_and_when_it_runs_again(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Held by its own policy it says how the program exited, the end of its errors, and what releases it when.
    """
    text = f"{FAILS}on_exit_hold = ExitCode != 0\nperiodic_release = time() - EnteredCurrentStatus > 3600\nqueue 2\n"
    cluster = (await pool.client.submit(text, cwd=tmp_path)).cluster
    async with asyncio.timeout(PATIENCE_S):
        await pool.kettle("wait", f"{cluster}")
    out = await said(pool, f"{cluster}")
    assert f"2 jobs, {cluster}.0 to {cluster}.1, are held for the same reason" in out
    assert "Its program exited with code 3 before." in out
    assert f"{tmp_path}/{cluster}.0.err:\n      it is broken\n" in out
    assert re.search(r"It is released by itself in (\d+ min|1 h 0 min)", out), out
    assert "waits for somebody" not in out
    await pool.client.hold(select(cluster))
    await pool.client.remove(select(cluster))


async def test_what_has_ended_is_counted_by_its_exits(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A single one shows the end of its errors."""
    text = FAILS.replace("exit 3", "exit $((3 * ($(Process) < 2)))") + "queue 3\n"
    cluster = (await pool.client.submit(text, cwd=tmp_path)).cluster
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))
        out = ""
        while "3 jobs have left the queue" not in out:
            out = await said(pool, f"{cluster}")
    assert f"2 exited with code 3 (as {cluster}." in out
    out = await said(pool, f"{cluster}.0")
    assert f"The end of its standard error, {tmp_path}/{cluster}.0.err:\n    it is broken\n" in out


async def test_the_owners_policy_is_told_by_what_makes_it_false(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    With the attribute of the machine and its value; nobody is told to remove the job, and what is suggested runs it.
    """
    text = "executable = /bin/true\ntransfer_executable = false\n+WantsDesk = true\nqueue\n"
    job = f"{(await pool.client.submit(text, cwd=tmp_path)).cluster}.0"
    told: dict[str, Any] = {}
    async with asyncio.timeout(PATIENCE_S):
        while not told.get("analysis"):
            told = json.loads(await said(pool, job, "--json"))
    assert "when" == told["outlook"], told
    text = " ".join(told["sentences"])
    assert "No slot takes it now, but 1 of 1 slot may later" in text
    assert "KeyboardIdle" in text
    assert "kettle rm" not in text
    await pool.client.remove(select(job))


async def test_a_suggested_command_makes_the_job_run(pool: ThrowawayPool, tmp_path: Path) -> None:
    """`kettle why` of a job that no slot can run ends with a command; after it the job runs."""
    text = "executable = /bin/true\ntransfer_executable = false\nrequest_cpus = 300\nrequirements = TARGET.Mars is true\nqueue\n"
    job = f"{(await pool.client.submit(text, cwd=tmp_path)).cluster}.0"
    out = ""
    async with asyncio.timeout(PATIENCE_S):
        while "Next: kettle edit" not in out:
            out = await said(pool, job)
        (line,) = (line for line in out.splitlines() if line.startswith("Next: "))
        _, *words = shlex.split(line.removeprefix("Next: ").split("; otherwise")[0])
        status, _, err = await pool.kettle(*words)
        assert (0, "") == (status, err)
        progress = await pool.client.wait(select(job))
    assert (1, []) == (progress.counts["completed"], progress.bad())


async def test_waiting_for_all_includes_those_that_come_later(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Of a cluster with max_idle the jobs that are not made yet are waited for, too."""
    text = (
        "executable = /bin/true\ntransfer_executable = false\nrequirements = false\nmax_idle = 2\nqueue 12\n"
    )
    cluster = (await pool.client.submit(text, cwd=tmp_path)).cluster
    me = [pool.client.pool.user]
    found: dict[str, list[int]] = {}
    for condition in ("", f"ClusterId == {cluster} && ProcId % 5 == 4", f"ClusterId == {cluster + 1}"):
        meant = select(owners=me, constraint=condition)
        async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.watch(meant)) as watched:
            progress = await anext(watched)
        found[condition] = sorted(job.proc for job in progress.jobs if job.cluster == cluster)
        assert progress.ended == (not progress.jobs)
    await pool.client.remove(select(cluster))
    assert [list(range(12)), [4, 9], []] == list(found.values())
