"""Output that is read while the job runs."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobCompleted, JobStarted, JobVacated
from kettle_wire.jobs import JobId

from .evidence import Evidence
from .waiting import happened

STREAMED = """\
executable = job.sh
arguments = {directory}
output = out/put
error = {error}
stream_output = true
stream_error = true
request_memory = 16
queue
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    # A job that is asked to end has all the time that a busy machine may need for it.
    return {"settings": {"startd": {"machine_max_vacate_time": 600.0}}}


async def submitted(pool: ThrowawayPool, evidence: Evidence, script: str, error: str = "err") -> JobId:
    path = evidence.work / "job.sh"
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    (evidence.work / "out").mkdir(exist_ok=True)
    description = STREAMED.format(directory=evidence.directory, error=error)
    return JobId((await pool.client.submit(description, cwd=evidence.work)).cluster, 0)


async def read(path: Path, until: Callable[[str], bool]) -> str:
    """What a file has as soon as it is what is looked for."""
    async with asyncio.timeout(PATIENCE_S):
        while not (path.is_file() and until(path.read_text())):
            await asyncio.sleep(0.05)
    return path.read_text()


async def test_output_is_there_while_the_job_runs(pool: ThrowawayPool, evidence: Evidence) -> None:
    """More of it than a message takes, also after shadow and startd were killed; at the end it is whole."""
    lines = "".join(f"{number:07}\n" for number in range(40_000))
    job = await submitted(
        pool,
        evidence,
        "seq -f %07.0f 0 39999\necho trouble >&2\n"
        'while [ ! -e "$1/go" ]; do sleep 0.1; done\necho more\n'
        'while [ ! -e "$1/end" ]; do sleep 0.1; done\necho last\n',
    )
    out, err = evidence.work / "out" / "put", evidence.work / "err"
    assert lines == await read(out, lambda text: len(text) >= len(lines))
    assert "trouble\n" == await read(err, bool)
    for service in ("shadow", "startd"):
        killed = pool.kill(service, signal.SIGKILL)
        await pool.restarted(service, after=killed)
    (evidence.directory / "go").touch()
    assert f"{lines}more\n" == await read(out, lambda text: text.endswith("more\n"))
    (evidence.directory / "end").touch()
    await happened(pool.client, job, JobCompleted)
    assert f"{lines}more\nlast\n" == out.read_text()
    assert "trouble\n" == err.read_text()


async def test_a_new_attempt_begins_anew(pool: ThrowawayPool, evidence: Evidence) -> None:
    """Output and error in one file; what the first attempt printed is gone."""
    job = await submitted(
        pool,
        evidence,
        'if [ -e "$1/again" ]; then echo second >&2; else touch "$1/again"; echo first and longer; fi\n'
        'while [ ! -e "$1/end" ]; do sleep 0.1; done\n',
        error="out/put",
    )
    out = evidence.work / "out" / "put"
    assert "first and longer\n" == await read(out, bool)
    status, _, said = await pool.kettle("vacate", "--fast", str(job))
    assert 0 == status, said
    await happened(pool.client, job, JobVacated)
    await happened(pool.client, job, JobStarted, times=2)
    assert "second\n" == await read(out, lambda text: "first" not in text and bool(text))
    (evidence.directory / "end").touch()
    await happened(pool.client, job, JobCompleted)
    assert "second\n" == out.read_text()


async def test_what_a_removed_job_says_at_its_end_is_there(pool: ThrowawayPool, evidence: Evidence) -> None:
    """Its results do not come back, so there is nothing else to be seen of why it ended as it did."""
    job = await submitted(
        pool,
        evidence,
        "trap 'echo asked to end; exit 0' TERM\necho begun\nwhile :; do sleep 0.1; done\n",
    )
    out = evidence.work / "out" / "put"
    await read(out, bool)
    assert not await read(evidence.work / "err", lambda _: True)  # it is there from the beginning
    await pool.client.remove(select(job))
    assert "begun\nasked to end\n" == await read(out, lambda text: "asked" in text)


async def test_nothing_else_of_the_machine_is_sent(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    A job that puts a link or a pipe where its output was gets no stream, and nobody waits for it; it can go on.
    """
    secret = evidence.directory / "secret"
    secret.write_text("of somebody else\n")
    job = await submitted(
        pool,
        evidence,
        "exec 3>&1; rm -f _condor_stdout _condor_stderr\n"
        'ln -s "$1/secret" _condor_stdout; mkfifo _condor_stderr\n'
        'while [ ! -e "$1/end" ]; do sleep 0.1; done\n'
        "rm -f _condor_stdout _condor_stderr; echo fine >_condor_stdout\n",
    )
    await happened(pool.client, job, JobStarted)
    await asyncio.sleep(2.5)  # several looks of its starter, which leave no trace by which one could wait
    assert not [path for path in (evidence.work / "out").iterdir() if "somebody" in path.read_text()]
    (evidence.directory / "end").touch()
    completed = await happened(pool.client, job, JobCompleted)
    assert 0 == completed.exit.code
