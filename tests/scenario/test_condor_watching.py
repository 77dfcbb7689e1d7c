"""Commands that watch jobs and machines, in a pool that runs."""

import asyncio
import json
import socket

import pytest

from kettle.testing.commands.running import Said
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobCompleted, JobRemoved

from .condor import WAITS, Condor
from .waiting import happened


async def test_a_batch_is_watched_until_it_is_done(condor: Condor) -> None:
    """By what is recorded of its jobs, without a log; the exit status is the one that was asked for."""
    description = "executable = /bin/sh\narguments = \"-c 'exit 0'\"\nqueue 2\n"
    cluster = await condor.submitted(description)
    words = ("-clusters", f"{cluster}", "-exit", "all,done,7", "-exit", "any,held,8")
    said = await condor("condor_watch_q", *words)
    assert (7, "") == (said.status, said.err), said
    last = said.out.split("...\n")[-2].splitlines()
    assert ["-", "-", "2", "2", "-"] == last[1].split()[2:7], last
    assert "Total: 2 jobs; 2 completed" in last
    assert 'because of condition "all done" at ' in said.out.splitlines()[-1]
    held = await condor.submitted(f"{WAITS}hold = true\nbatch_name = night\nqueue\n")
    said = await condor("condor_watch_q", "-clusters", f"{held}", "-exit", "any,held,3", "-no-progress")
    assert (3, "") == (said.status, said.err), said
    assert ["night", "1", "-", "-", "-", "1", f"{held}.0"] == said.out.splitlines()[1].split()[:7]
    assert "Total: 1 jobs; 1 held" in said.out
    assert Said(0, "", "WARNING: No jobs found, exiting...\n") == await condor(
        "condor_watch_q", "-users", "nobody-else"
    )


async def test_a_command_line_runs_as_a_job(condor: Condor) -> None:
    """With its output, its errors and its exit status; nothing of it is left behind."""
    said = await condor("condor_run", "-a", "batch_name = once", "echo out; echo err >&2; exit 5")
    assert Said(5, "out\n", "err\n") == said
    assert [] == [path.name for path in condor.work.iterdir() if path.name.startswith(".condor")]
    refused = await condor("condor_run", "-a", "request_memory = much more", "true")
    assert (1, "") == (refused.status, refused.out)
    assert "line 6: 'much more' is not an expression" in refused.err


@pytest.mark.parametrize("interrupts", ["--default-signal=INT", "--ignore-signal=INT"])
async def test_a_job_goes_with_the_command_that_waits_for_it(
    condor: Condor, pool: ThrowawayPool, interrupts: str
) -> None:
    """However that is asked to end, in a terminal or in the background of a script; it says nothing then."""
    running = await asyncio.create_subprocess_exec(
        "env",
        interrupts,
        str(condor.place / "condor_run"),
        "-a",
        "requirements = false",
        "true",
        env=condor.environ,
        cwd=condor.work,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (jobs := await pool.client.jobs()):
                await asyncio.sleep(0)  # perhaps the command has not been told yet that there is a job
        running.terminate()
        _, err = await running.communicate()
        assert (130, b"") == (running.returncode, err)
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    await happened(pool.client, f"{jobs[0]['ClusterId']}.0", JobRemoved)
    assert [] == list(condor.work.iterdir())


async def test_what_has_left_the_queue_is_stashed_once(condor: Condor) -> None:
    """In files for a search engine; the next time only what has left it since."""
    jobs: list[int] = []
    # Other tests may have left ten thousand jobs in this pool's history, which is as many as are written at a time.
    words = ("--interface", "bulk", "--se_index_name", "jobs", "--schedd_history_max_ads", "100000")
    for file in ("history-000001.ndjson", "history-000002.ndjson"):
        jobs.append(await condor.submitted(f"{WAITS}queue\n"))
        await condor("condor_rm", f"{jobs[-1]}")
        # It asks until accounting has the job.
        assert f"{jobs[-1]}\n" == (await condor("condor_history", f"{jobs[-1]}.0", "-af", "ClusterId")).out
        said = await condor("condor_adstash", *words)
        assert (0, "") == (said.status, said.err), said
        lines = (condor.work / file).read_text().splitlines()
        stashed = [json.loads(line)["ClusterId"] for line in lines[1::2]]
        assert jobs[-1] in stashed
        assert not set(jobs[:-1]) & set(stashed)
    assert Said(0, "", "") == await condor("condor_adstash", "--interface", "bulk")


async def test_a_script_of_another_system_runs(condor: Condor, pool: ThrowawayPool) -> None:
    """With the options in it, and the names of output that its users look for."""
    (condor.work / "job.sh").write_text(
        '#!/bin/sh\n#PBS -N sweep -v "WHO=it"\n#$ -t 4-6:2\necho $WHO $SGE_TASK_ID $1\n'
    )
    said = await condor("condor_qsub", "-S", "/bin/sh", "job.sh", "word")
    assert (0, "") == (said.status, said.err), said
    match said.out.split():
        case ["Your", "job", cluster, "has", "been", "submitted"]:
            for proc in (0, 1):
                await happened(pool.client, f"{cluster}.{proc}", JobCompleted)
        case _:
            pytest.fail(said.out)
    for task in (4, 6):
        assert f"it {task} word\n" == (condor.work / f"sweep.o{cluster}.{task}").read_text()


async def test_who_has_jobs_and_how_busy_the_daemons_are(condor: Condor) -> None:
    """
    The user of a job is its owner at a domain, whom condor_qusers counts; the daemons have figures of their own.
    """
    cluster = await condor.submitted(f"{WAITS}hold = true\nqueue 2\n")
    owner, user = (await condor("condor_q", f"{cluster}.0", "-af", "Owner", "User")).out.split()
    assert f"{owner}@{socket.gethostname()}" == user
    said = await condor(
        "condor_qusers", "-user", user, "-constraint", "NumHeld >= 2", "-af", "OsUser", "User"
    )
    assert Said(0, f"{owner} {user}\n", "") == said
    assert user in [line.split()[0] for line in (await condor("condor_qusers")).out.splitlines()]
    assert Said(0, "", "") == await condor("condor_qusers", "nobody-else", "-af", "User")
    said = await condor("condor_top", "-d", "0.2", "-schedd", "-master")
    assert (0, "") == (said.status, said.err), said
    rows = {line.split()[0]: line.split()[1:] for line in said.out.splitlines()[1:]}
    assert {"schedd", "master"} == {name.partition(".")[0] for name in rows}
    for row in rows.values():
        assert row[4].endswith("%"), row
        assert int(row[5]) > 1, row
    await condor("condor_rm", f"{cluster}")
