"""
The configuration of a running pool: a mistake in it is refused as a whole, and running jobs notice nothing.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobAssigned, JobCompleted, JobStarted
from kettle_wire.jobs import JobId

from .evidence import Evidence
from .waiting import happened


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"startd": {"adoption_patience": 30.0}}}


@asynccontextmanager
async def a_job_that_runs(pool: ThrowawayPool, directory: Path) -> AsyncGenerator[int]:
    """A job that runs until the end of the block, and must then end well after one attempt."""
    gate = directory / "gate"
    os.mkfifo(gate)
    gate.chmod(0o666)
    script = directory / "wait.sh"
    script.write_text(f"#!/bin/sh\nread line < {gate}\n")
    script.chmod(0o755)
    cluster = (await pool.client.submit("executable = wait.sh\nqueue\n", cwd=directory)).cluster
    job = JobId(cluster, 0)
    await happened(pool.client, job, JobStarted)
    yield cluster
    await asyncio.to_thread(gate.write_text, "go\n")
    completed = await happened(pool.client, job, JobCompleted)
    assert 0 == completed.exit.code
    events = [each.event for each in await pool.client.events(job)]
    assert 1 == sum(isinstance(event, JobAssigned) for event in events)


@pytest.fixture
def file(pool: ThrowawayPool) -> Any:
    """The pool's file of settings, which is afterwards what it was."""
    path = pool.home / "kettle.toml"
    before = path.read_text()
    yield path
    path.write_text(before)


def mistaken(file: Path) -> list[str]:
    """Write three mistakes into the file; the beginnings of the sentences with which they are refused."""
    wrong = {
        'start = "TARGET.Owner == "': ("startd", "[startd] start: is no expression: "),
        'rank = "quantise(Cpus)"': ("startd", "[startd] rank: there is no function quantise(); did you mean"),
        "lese = 20.0": ("schedd", "[schedd] lese: unknown setting; did you mean lease?"),
    }
    text = file.read_text()
    for line, (table, _) in wrong.items():
        text = text.replace(f"[{table}]\n", f"[{table}]\n{line}\n")
    file.write_text(text)
    lines = text.splitlines()
    return [f"{file}:{lines.index(line) + 1}: {sentence}" for line, (_, sentence) in wrong.items()]


async def test_a_typing_error_is_refused_as_a_whole(
    pool: ThrowawayPool, evidence: Evidence, file: Path
) -> None:
    """
    `kettle reconfig`, `condor_reconfig` and `kettle restart` name each mistake with its line and change nothing at all.
    """
    async with a_job_that_runs(pool, evidence.directory):
        pids = {each.name: each.pid for each in pool.state.daemons}
        sentences = mistaken(file)
        for command in ("reconfig", "restart"):
            status, said, trouble = await pool.kettle(command, within_s=PATIENCE_S)
            assert (1, "") == (status, said)
            lines = trouble.splitlines()
            assert len(sentences) == len(lines), trouble
            assert all(any(line.startswith(each) for line in lines) for each in sentences), trouble
        assert pids == {each.name: each.pid for each in pool.state.daemons}


async def test_what_a_reconfiguration_would_change(pool: ThrowawayPool, file: Path) -> None:
    """
    `kettle config diff` names each setting that would change, from what to what, where it is given and what it takes; after
    the reconfiguration there is nothing left but what waits for a restart.
    """
    status, said, _ = await pool.kettle("config", "diff", "--json", within_s=PATIENCE_S)
    assert (0, []) == (status, json.loads(said))
    before = file.read_text()
    text = before.replace("[startd]\n", "[startd]\npolling_interval = 7.0\n")
    file.write_text(text.replace("[master]\n", "[master]\nname = 'other'\ndisk_interval = 9.0\n"))

    status, said, _ = await pool.kettle("config", "diff", "--json", within_s=PATIENCE_S)

    changes = {f"{each['daemon']}.{each['setting']}": each for each in json.loads(said)}
    assert {
        "master.name": ("", "other", "kettle restart"),
        "master.disk_interval": (10.0, 9.0, "at once"),
        "startd.polling_interval": (5.0, 7.0, "the daemon starts again; its jobs go on"),
    } == {name: (each["now"], each["new"], each["effect"]) for name, each in changes.items()}
    line = file.read_text().splitlines().index("polling_interval = 7.0") + 1
    assert f"{file}:{line}" == changes["startd.polling_interval"]["origin"]
    status, _, trouble = await pool.kettle("reconfig", within_s=PATIENCE_S)
    assert 0 == status, trouble
    _, said, _ = await pool.kettle("config", "diff", "--json", within_s=PATIENCE_S)
    assert ["name"] == [each["setting"] for each in json.loads(said)]
    file.write_text(before)
    status, _, trouble = await pool.kettle("reconfig", within_s=PATIENCE_S)
    assert 0 == status, trouble


async def test_a_startd_that_dies_beside_a_mistake_goes_on_with_what_it_had(
    pool: ThrowawayPool, evidence: Evidence, file: Path
) -> None:
    """
    A service that is started again while the file has a mistake works with its former settings, its jobs run on, and
    the state says what is wrong.
    """
    async with a_job_that_runs(pool, evidence.directory):
        mistaken(file)
        killed = pool.kill("startd", signal.SIGKILL)
        await pool.restarted("startd", after=killed)
        assert pool.daemon("startd").settings.startswith("refused: ")
        assert "goes on with the settings that it had" in pool.log("startd")
        status, _, _ = await pool.kettle("config", "check", within_s=PATIENCE_S)
        assert 1 == status


async def test_what_only_the_machine_can_refuse_is_told_too(
    pool: ThrowawayPool, evidence: Evidence, file: Path
) -> None:
    """
    Settings that are right by themselves and impossible on this machine are found at the startd's new start: it goes on
    with the former ones and its jobs, and `kettle reconfig` says so.
    """
    async with a_job_that_runs(pool, evidence.directory):
        text = file.read_text()
        file.write_text(text.replace("[startd]\n", '[startd]\nslot_weight = "NoSuchThing"\n'))
        status, said, trouble = await pool.kettle("reconfig", within_s=PATIENCE_S)
        assert 1 == status, said
        assert "no ad of a job or a machine is known to have NoSuchThing" in trouble
        assert "the startd goes on with the settings that it had: KETTLE_STARTD_SLOT_WEIGHT" in trouble
        assert "running" == pool.daemon("startd").status
