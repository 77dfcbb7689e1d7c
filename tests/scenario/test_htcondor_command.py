"""The `htcondor` command of nouns and verbs, which is HTCondor's own, runs on Kettle's modules."""

import asyncio
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kettle.client import select
from kettle.testing.commands.running import Said, execute
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.condor import launchers
from kettle_wire.commands.queue import Select

pytestmark = [
    pytest.mark.skipif(
        find_spec("htcondor_cli") is None,
        reason="HTCondor's own client comes with its Python package (PyPI: htcondor)",
    ),
]
JOB_SET = """\
name = Two
iterator = table seconds {
  100
  200
}
job {
  executable = /bin/sleep
  arguments = $(seconds)
  transfer_executable = false
  requirements = false
  queue
}
"""


@pytest.fixture
def environ(pool: ThrowawayPool, place: Path) -> dict[str, str]:
    path = f"{place}:{Path(sys.executable).parent}:/usr/bin:/bin"
    return {**pool.environ, "KETTLE_HOME": str(pool.home), "PATH": path}


async def htcondor(environ: dict[str, str], work: Path, *words: str) -> Said:
    return await execute([launchers.HTCONDOR, *words], work, environ)


async def test_a_job_is_submitted_and_told_about(environ: dict[str, str], tmp_path: Path) -> None:
    """`job submit`, `job status` in the queue and in the history, and the summary of its event log."""
    (tmp_path / "job.sub").write_text(
        "executable = /bin/sleep\narguments = 0\ntransfer_executable = false\nlog = job.log\nqueue\n"
    )
    submitted = await htcondor(environ, tmp_path, "job", "submit", "job.sub")
    assert 0 == submitted.status, submitted
    cluster = int(submitted.err.split()[1])
    assert f"Job {cluster} was submitted.\n" == submitted.err
    waited = await execute(["condor_wait", "job.log"], tmp_path, environ)
    assert 0 == waited.status, waited
    told = await htcondor(environ, tmp_path, "job", "status", str(cluster))
    assert f"Job {cluster} has completed." in told.err.splitlines(), told
    read = await htcondor(environ, tmp_path, "eventlog", "read", "-json", "job.log")
    [summary] = json.loads(read.out)
    assert (f"{cluster}.0", 1, 0) == (summary["Job ID"], summary["starts"], summary["Return Value"])


async def test_a_dag_is_submitted_halted_slowed_down_and_resumed(
    environ: dict[str, str], pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    `dag submit`, `halt`, `throttle`, `status` while its first node runs, and `resume`, after which it comes to its end.
    """
    (tmp_path / "waits.sub").write_text(
        "executable = /bin/sh\n"
        f"arguments = \"-c 'until test -e {tmp_path}/go; do sleep 0.1; done'\"\n"
        "transfer_executable = false\nqueue\n"
    )
    (tmp_path / "ends.sub").write_text("executable = /bin/true\ntransfer_executable = false\nqueue\n")
    (tmp_path / "x.dag").write_text("JOB first waits.sub\nJOB second ends.sub\nPARENT first CHILD second\n")
    submitted = await htcondor(environ, tmp_path, "dag", "submit", "x.dag")
    assert 0 == submitted.status, submitted
    number = submitted.err.split()[1]
    assert f"DAG {number} was submitted.\n" == submitted.err
    await until(pool, f"DAGManJobId == {number} && JobStatus == 2")
    halted = await htcondor(environ, tmp_path, "dag", "halt", number, "--reason", "the disk is full")
    assert f"Halted DAG {number}\n" == halted.err
    await until(pool, f"ClusterId == {number} && DAG_Status == 6")
    told = await htcondor(environ, tmp_path, "dag", "status", number)
    assert told.err.startswith(f"DAG {number} [x.dag] has been halted for "), told
    assert "DAG contains 2 node(s) total, of which:" in told.err
    slowed = await htcondor(environ, tmp_path, "dag", "throttle", number, "--idle", "7")
    assert "Maximum Idle Jobs-------------: 7" in slowed.out, slowed
    resumed = await htcondor(environ, tmp_path, "dag", "resume", number)
    assert f"Resumed DAG {number}\n" == resumed.err
    (tmp_path / "go").touch()
    await pool.client.wait(select(int(number)))
    assert 0 == (await pool.client.workflows.show(int(number))).exit_code


async def until(pool: ThrowawayPool, constraint: str) -> None:
    """Wait until there is a job in the queue of which this is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not await pool.client.jobs(Select(constraint=constraint), projection=["ClusterId"]):
            await asyncio.sleep(0.1)


async def test_a_job_set_is_submitted_listed_and_removed(environ: dict[str, str], tmp_path: Path) -> None:
    """Its ad is told from its jobs (`QueryOpt.IncludeJobsetAds`)."""
    (tmp_path / "set.txt").write_text(JOB_SET)
    submitted = await htcondor(environ, tmp_path, "jobset", "submit", "set.txt")
    assert "Submitted job set Two containing 1 job clusters.\n" == submitted.err
    listed = await htcondor(environ, tmp_path, "jobset", "list")
    assert "Two" in listed.out.splitlines(), listed
    told = await htcondor(environ, tmp_path, "jobset", "status", "Two", "--skip-history")
    assert told.err.startswith("Two currently has 2 jobs idle, 0 jobs running, and 0 jobs completed.\n"), told
    removed = await htcondor(environ, tmp_path, "jobset", "remove", "Two")
    assert removed.err.startswith("Removed 2 jobs matching job set Two for user "), removed


@pytest.mark.parametrize(
    ("noun", "lines"),
    [
        ("ap", ["Good"]),
        ("cm", ["Good"]),
        ("server", ["MASTER", "COLLECTOR", "NEGOTIATOR", "SCHEDD", "STARTD"]),
    ],
)
async def test_the_daemons_are_well(
    noun: str, lines: list[str], environ: dict[str, str], tmp_path: Path
) -> None:
    """Their ads have what its tables are made of: machine, address, duty cycle."""
    told = await htcondor(environ, tmp_path, noun, "status")
    assert 0 == told.status, told
    assert "Bad" not in told.err
    assert "UNKNOWN" not in told.err
    for line in lines:
        assert line in told.err
