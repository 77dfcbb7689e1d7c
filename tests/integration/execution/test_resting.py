"""Starters that run one job after the other."""

import os
import select
import signal

import pytest

from kettle.execution.system.linux import parent_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.submit_side import SubmitSide, output, script
from kettle.testing.worker import WorkerPool
from kettle_services.startd.starters import pool as starter_pool
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import DEACTIVATE, ClaimKey, Deactivate, Deactivation
from kettle_wire.worker_reports import Started

WHO = "echo $PPID; test -z \"$(ls -A | grep -v -e '^[._]' -e '^condor')\""
"""A job that tells its starter, and fails if anybody has left something in its sandbox."""
WAIT_MS = int(1000 * PATIENCE_S)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starters wait for the next job however slow the machine is."""
    monkeypatch.setattr(starter_pool, "_REST_S", 600.0)


async def starter_of(submitter: SubmitSide, claim: ClaimKey | None = None) -> tuple[int, ClaimKey]:
    """The starter that runs the next job of a claim, and the claim."""
    activation = await submitter.start(script(WHO), claim=claim)
    exited = await submitter.final(activation)
    assert exited.result.exit is not None
    assert 0 == exited.result.exit.code
    said = output(exited)
    assert said is not None
    return int(said), activation.key


def ends(handle: int) -> bool:
    """Wait for the end of a process."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(WAIT_MS))


async def test_a_starter_runs_the_next_job_too(submitter: SubmitSide) -> None:
    """Of the same claim and of another one; and each finds a sandbox of its own."""
    first, claim = await starter_of(submitter)
    second, _ = await starter_of(submitter, claim)
    third, _ = await starter_of(submitter)

    assert (first, first) == (second, third)


async def test_what_one_job_used_is_not_told_of_the_next(submitter: SubmitSide) -> None:
    """Processor time and memory are counted from zero."""
    work = 'x=$(head -c 60000000 /dev/zero | tr "\\0" x); i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'
    large = await submitter.start(script(f"echo $PPID; {work}"))
    before = await submitter.final(large)
    small = await submitter.start(script("echo $PPID"), claim=large.key)
    after = await submitter.final(small)

    assert before.result.exit is not None
    assert after.result.exit is not None
    assert output(before) == output(after), "it was not the same starter"
    assert before.result.usage.memory_kib > 58_000 > 4 * after.result.usage.memory_kib
    assert before.result.usage.user_cpu > 4 * after.result.usage.user_cpu


async def test_the_starter_of_a_job_that_was_ended_runs_no_other(submitter: SubmitSide) -> None:
    """Whatever was out of the ordinary ends with its process."""
    ended = await submitter.start(script("sleep 600"))
    started = await submitter.hear(ended, lambda report: isinstance(report.body, Started))
    assert isinstance(started.body, Started)
    starter = parent_of(started.body.pid)
    order = Deactivation(
        key=ended.key, job=ended.job, attempt=1, ending=Ending(code=1023, reason="removed"), hard=True
    )
    await submitter.shadow.call(DEACTIVATE, submitter.startd, Deactivate(attempts=[order]))
    assert (await submitter.final(ended)).result.exit is None

    following, _ = await starter_of(submitter, ended.key)

    assert starter != following


async def test_a_starter_that_was_killed_while_it_rested_costs_no_job(submitter: SubmitSide) -> None:
    """The next job gets another one."""
    first, claim = await starter_of(submitter)
    handle = os.pidfd_open(first)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        assert ends(handle)
    finally:
        os.close(handle)

    second, _ = await starter_of(submitter, claim)

    assert first != second


async def test_a_starter_does_not_rest_for_ever(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without another job it ends; with none for it to wait for it ends too: when its startd does."""
    async with pool.startd() as startd:
        with monkeypatch.context() as hurried:
            hurried.setattr(starter_pool, "_REST_S", 0.05)
            first, claim = await starter_of(pool.submitter)
            await pool.until(lambda: not alive(first))
        last, _ = await starter_of(pool.submitter, claim)
        await startd.drain()
    await pool.until(lambda: not alive(last))


def alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
