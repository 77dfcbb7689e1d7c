"""Programs of a machine's owner that are run around jobs."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import Event, JobCompleted, JobHeld, JobVacated
from kettle_wire.jobs import JobId

WITHIN_S = 90.0
HANGING_S = 1_000_000 + os.getpid()
"""By which the processes of these hooks are told from those of any other test on this machine."""
HOOKS = {
    "before": 'grep -q "^Cmd = " && test -e .machine.ad && echo \'FromBefore = "seen"\'',
    "prepare": "cat > ad; echo 'Arguments = \"prepared\"'; touch made-by-hook",
    "update": 'echo "$(grep -c ^RemoteUserCpu)" >> updates',
    "exit": 'echo "$1 $(grep -E "^Exit(Code|BySignal)" | tr "\\n" " ")" > farewell',
    "refuse": "echo this machine is not for you >&2; exit 3",
    "hang": f"sleep {HANGING_S} & sleep {HANGING_S}",
    "garbage": "echo this is no ad",
}


@pytest.fixture(scope="module")
def configuration() -> Iterator[dict[str, Any]]:
    directory = Path(tempfile.mkdtemp(prefix="kettle-hooks-"))  # accounts of slots reach no test's directory
    directory.chmod(0o755)
    paths: dict[str, list[str]] = {}
    for name, text in HOOKS.items():
        path = directory / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        paths[name] = [str(path)]
    hooks: dict[str, Any] = {
        "GOOD": {
            "prepare_job_before_transfer": paths["before"],
            "prepare_job": paths["prepare"],
            "update_job_info": paths["update"],
            "job_exit": paths["exit"],
        },
        "REFUSES": {"prepare_job": paths["refuse"]},
        "HANGS": {"prepare_job": paths["hang"], "timeout": 0.5},
        "GARBAGE": {"prepare_job": paths["garbage"]},
        "MISSING": {"prepare_job_before_transfer": [str(directory / "none")]},
    }
    settings: dict[str, dict[str, Any]] = {
        "startd": {"job_hooks": hooks, "monitor_interval": 0.2, "measure_interval": 1.0}
    }
    try:
        yield {"settings": settings}
    finally:
        shutil.rmtree(directory)


async def submitted(pool: ThrowawayPool, keyword: str, script: str, cwd: Path) -> JobId:
    path = cwd / "job.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    description = f"executable = job.sh\noutput = out\nerror = err\nhook_keyword = {keyword}\nqueue\n"
    return JobId((await pool.client.submit(description, cwd=cwd)).cluster, 0)


async def events(pool: ThrowawayPool, job: JobId) -> list[Event]:
    return [each.event for each in await pool.client.events(job)]


async def first(pool: ThrowawayPool, job: JobId, kind: type[Event]) -> Event:
    """The first event of a kind."""
    async with asyncio.timeout(WITHIN_S), aclosing(pool.client.follow(job)) as followed:
        async for each in followed:
            if isinstance(each.event, kind):
                return each.event
    raise AssertionError


async def test_hooks_prepare_a_job_and_see_it_end(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    What they print is in the job's ad on the machine, what they make is no result, and the last one knows how it ended.
    """
    job = await submitted(
        pool,
        "good",
        'grep "^FromBefore" .job.ad; echo "$1"; while ! [ -e updates ]; do sleep 0.1; done; exit 7',
        tmp_path,
    )
    completed = await first(pool, job, JobCompleted)

    assert isinstance(completed, JobCompleted)
    assert 7 == completed.exit.code
    assert 'FromBefore = "seen"\nprepared\n' == (tmp_path / "out").read_text()
    assert "exit ExitBySignal = false ExitCode = 7 \n" == (tmp_path / "farewell").read_text()
    assert {"1"} == set((tmp_path / "updates").read_text().split())
    assert not (tmp_path / "made-by-hook").exists()


async def test_a_hook_that_refuses_a_job_holds_it(pool: ThrowawayPool, tmp_path: Path) -> None:
    """With HTCondor's code, the hook's exit status and its own words."""
    job = await submitted(pool, "REFUSES", "true", tmp_path)
    held = await first(pool, job, JobHeld)

    assert isinstance(held, JobHeld)
    assert (19, 3) == (held.code, held.subcode)
    assert "this machine is not for you" in held.reason
    await pool.client.remove(select(job.cluster))


@pytest.mark.parametrize(
    ("keyword", "why"),
    [("HANGS", "did not end in its time"), ("GARBAGE", "is no ad"), ("MISSING", "cannot be run")],
)
async def test_a_hook_that_fails_is_the_machines_fault(
    pool: ThrowawayPool, tmp_path: Path, keyword: str, why: str
) -> None:
    """The job may run elsewhere, the sentence says what is wrong, and nothing of the hook stays."""
    job = await submitted(pool, keyword, "true", tmp_path)
    vacated = await first(pool, job, JobVacated)
    await pool.client.remove(select(job.cluster))
    async with asyncio.timeout(WITHIN_S):
        await pool.client.wait(select(job.cluster))

    assert isinstance(vacated, JobVacated)
    assert 1007 == vacated.ending.code
    assert why in vacated.ending.reason
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            assert f"sleep\0{HANGING_S}\0" != path.read_text(errors="replace"), path


async def test_an_evicted_job_has_its_farewell(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A job without a hook of its own has none, and one that is removed while its hook hangs is gone at once.
    """
    job = await submitted(pool, "NOBODYS", "kill -9 $$", tmp_path)
    completed = await first(pool, job, JobCompleted)

    assert isinstance(completed, JobCompleted)
    assert signal.SIGKILL == completed.exit.signal
    assert not (tmp_path / "farewell").exists()
