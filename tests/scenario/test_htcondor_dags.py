"""DAGs by HTCondor's own command of nouns and verbs."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.queue import Select

from .test_htcondor_command import environ, htcondor
from .test_workflows import configuration, work

__all__ = ["configuration", "environ", "work"]

pytestmark = [
    pytest.mark.skipif(
        find_spec("htcondor_cli") is None,
        reason="HTCondor's own client comes with its Python package (PyPI: htcondor)",
    ),
]


async def test_a_dag_is_submitted_halted_slowed_down_and_resumed(
    environ: dict[str, str], pool: ThrowawayPool, work: Path
) -> None:
    """
    `dag submit`, `halt`, `throttle`, `status` while its first node runs, and `resume`, after which it comes to its end.
    """
    (work / "waits.sub").write_text(
        "executable = /bin/sh\n"
        f"arguments = \"-c 'until test -e {work}/go; do sleep 0.1; done'\"\n"
        "transfer_executable = false\nqueue\n"
    )
    (work / "ends.sub").write_text("executable = /bin/true\ntransfer_executable = false\nqueue\n")
    (work / "x.dag").write_text("JOB first waits.sub\nJOB second ends.sub\nPARENT first CHILD second\n")
    submitted = await htcondor(environ, work, "dag", "submit", "x.dag")
    assert 0 == submitted.status, submitted
    number = submitted.err.split()[1]
    assert f"DAG {number} was submitted.\n" == submitted.err
    await until(pool, f"DAGManJobId == {number} && JobStatus == 2")
    halted = await htcondor(environ, work, "dag", "halt", number, "--reason", "the disk is full")
    assert f"Halted DAG {number}\n" == halted.err
    await until(pool, f"ClusterId == {number} && DAG_Status == 6")
    told = await htcondor(environ, work, "dag", "status", number)
    assert told.err.startswith(f"DAG {number} [x.dag] has been halted for "), told
    assert "DAG contains 2 node(s) total, of which:" in told.err
    slowed = await htcondor(environ, work, "dag", "throttle", number, "--idle", "7")
    assert "Maximum Idle Jobs-------------: 7" in slowed.out, slowed
    resumed = await htcondor(environ, work, "dag", "resume", number)
    assert f"Resumed DAG {number}\n" == resumed.err
    (work / "go").touch()
    await pool.client.wait(select(int(number)))
    assert 0 == (await pool.client.workflows.show(int(number))).exit_code


async def until(pool: ThrowawayPool, constraint: str) -> None:
    """Wait until there is a job in the queue of which this is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not await pool.client.jobs(Select(constraint=constraint), projection=["ClusterId"]):
            await asyncio.sleep(0.1)
