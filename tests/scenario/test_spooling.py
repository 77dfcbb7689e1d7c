"""
Jobs whose files are sent to the access point with their submission, and fetched from there after their end.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.condor import launchers
from kettle.testing.pool import ThrowawayPool, throwaway_pool

from .condor import WITHIN_S, Condor, emptied

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    async with throwaway_pool(tmp_path_factory.mktemp("spooling"), cpus=4, template=template) as running:
        yield running
    assert [] == running.left


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return launchers.install(tmp_path_factory.mktemp("commands"))


@pytest_asyncio.fixture(loop_scope="module")
async def condor(pool: ThrowawayPool, place: Path, tmp_path: Path) -> AsyncIterator[Condor]:
    work = tmp_path / "work"
    work.mkdir()
    async with emptied(place, pool, work) as commands:
        yield commands


def spool_of(pool: ThrowawayPool) -> Path:
    return pool.home / "state" / "spooled.schedd"


async def said(condor: Condor, cluster: int, *attributes: str) -> list[list[str]]:
    """
    What the queue says of the jobs of a cluster.
    """
    out = (await condor("condor_q", f"{cluster}", "-af:t", *attributes)).out
    return [line.split("\t") for line in out.splitlines()]


async def ended(condor: Condor, cluster: int, *, count: int = 1) -> None:
    """
    Wait until all jobs of a cluster have completed, and stay in the queue.
    """
    async with asyncio.timeout(WITHIN_S):
        while [["4"]] * count != (states := await said(condor, cluster, "JobStatus")):
            assert ["5"] not in states, await said(condor, cluster, "HoldReason")
            await asyncio.sleep(0.05)


async def gone(directory: Path) -> None:
    async with asyncio.timeout(WITHIN_S):
        while directory.exists():
            await asyncio.sleep(0.05)


PROGRAM = """#!/bin/sh
cat > from-stdin
cat data/one "$(basename "$1")" > made
echo "out $2"
echo "err $2" >&2
mkdir -p deep && echo "$2" > deep/result
"""


def prepared(work: Path) -> str:
    """
    A program with all kinds of input, and the description of two jobs of it.
    """
    (work / "bin").mkdir()
    (work / "bin" / "program").write_text(PROGRAM)
    (work / "bin" / "program").chmod(0o755)
    (work / "data").mkdir()
    (work / "data" / "one").write_bytes(b"one\n")
    (work / "large").write_bytes(os.urandom(3 << 20))
    (work / "typed").write_text("typed\n")
    (work / "out").mkdir()
    return """
executable = bin/program
arguments = large $(Process)
input = typed
transfer_input_files = data, large
transfer_output_files = made, from-stdin, deep
transfer_output_remaps = "made=made.$(Process)"
output = out/stdout.$(Process)
error = out/stderr.$(Process)
log = out/log
request_memory = 16
queue 2
"""


async def test_the_submitters_files_are_not_needed_any_more(
    condor: Condor, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    The jobs run although what they were submitted from is deleted when condor_submit returns; what they made comes back,
    byte by byte, and they leave the queue and the spool then.
    """
    (tmp_path / "work" / "job.sub").write_text(prepared(condor.work))
    large = (condor.work / "large").read_bytes()
    done = await condor("condor_submit", "-spool", "job.sub")
    assert (0, "") == (done.status, done.err), done
    first, second = done.out.splitlines()
    assert "Submitting job(s).." == first
    cluster = int(second.removeprefix("2 job(s) submitted to cluster ").rstrip("."))
    shutil.rmtree(condor.work)
    condor.work.mkdir()
    await ended(condor, cluster, count=2)
    [[iwd, submitted, begun, finished], _] = await said(
        condor, cluster, "Iwd", "SUBMIT_Iwd", "StageInStart", "StageInFinish"
    )
    assert (str(spool_of(pool) / f"{cluster}" / "0"), str(condor.work)) == (iwd, submitted)
    assert 0 < int(begun) <= int(finished)
    fetched = await condor("condor_transfer_data", f"{cluster}")
    assert (0, "Fetching data files...\n", "") == (fetched.status, fetched.out, fetched.err)
    for proc in range(2):
        assert b"one\n" + large == (condor.work / f"made.{proc}").read_bytes()
        assert f"out {proc}\n" == (condor.work / "out" / f"stdout.{proc}").read_text()
        assert f"err {proc}\n" == (condor.work / "out" / f"stderr.{proc}").read_text()
    assert "typed\n" == (condor.work / "from-stdin").read_text()
    assert (condor.work / "deep" / "result").read_text() in {"0\n", "1\n"}
    events = [
        line[:3] for line in (condor.work / "out" / "log").read_text().splitlines() if line[:3].isdecimal()
    ]
    assert {"000": 2, "012": 2, "013": 2, "005": 2} == {
        number: events.count(number) for number in ("000", "012", "013", "005")
    }
    assert "" == (await condor("condor_q", f"{cluster}", "-af", "ClusterId")).out
    await gone(spool_of(pool) / f"{cluster}")
