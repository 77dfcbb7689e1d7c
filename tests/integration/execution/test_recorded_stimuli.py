"""A starter that records what its state machine was fed."""

import os
import socket
import tempfile
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import RunJob
from kettle.execution.system.linux import boottime
from kettle_services.starter.domain import stimuli
from kettle_services.starter.domain.state import StarterPhase, StarterState
from kettle_services.starter.domain.step import step
from kettle_services.starter.reports.final import StarterProcess
from kettle_services.starter.reports.startd_connection import StartdConnection
from kettle_services.starter.starter import Starter
from kettle_services.starter.stimulus_log import VARIABLE, RecordedStep
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId


@pytest.fixture
def place() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="kettle-") as name:
        for directory in ("execute", "reports", "drafts", "stimuli"):
            (Path(name) / directory).mkdir()
        yield Path(name)


def test_a_recorded_attempt_leads_to_the_same_states(place: Path) -> None:
    """A short job has four stimuli, however often its starter has looked around meanwhile."""
    spec = JobSpec(
        key=ClaimKey("claim", "secret"), job=JobId(1, 0), attempt=1, schedd="schedd", execute=str(place / "execute"),
        state=str(place), slot="slot1", cpus=1, memory=64, disk=1000,
        ad={"Cmd": "/bin/true", "TransferExecutable": False}, machine_ad="", inputs=[], received=0, began=boottime(),
        deadline=boottime() + 60, sequence=0,
    )  # fmt: skip
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            ours.close()
            os.environ[VARIABLE] = str(place / "stimuli")
            Starter(StarterProcess(StartdConnection(theirs), -1), RunJob(spec), last=True).run_job()
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        os.waitpid(pid, 0)
    first, *lines = (place / "stimuli" / f"{spec.id.name}.{pid}.jsonl").read_bytes().splitlines()
    state = msgspec.json.decode(first, type=StarterState)
    recorded = [msgspec.json.decode(line, type=RecordedStep) for line in lines]
    assert [
        stimuli.ProgramStarted(),
        stimuli.ProgramEnded(),
        stimuli.ResultsCollected(),
        stimuli.ReportStored(),
    ] == [each.stimulus for each in recorded]
    for each in recorded:
        state, _ = step(state, each.stimulus)
        assert each.state == state
    assert StarterPhase.OVER is state.phase
