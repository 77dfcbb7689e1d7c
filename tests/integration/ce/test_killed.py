"""A process that is killed between what it records and what it does submits no job twice, and loses none."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle.testing.services import Backend
from kettle_services.ce.batch.settings import BatchSettings
from kettle_wire.batch import BatchKind
from kettle_wire.worker_reports import FinalReport

_ROOT = Path(__file__).parents[3]


async def process(backend: Backend, settings: BatchSettings, place: Path, fault: str = "") -> int:
    """The end of one process."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    if fault:
        environment["KETTLE_FAULT_POINTS"] = f"{fault}=kill"
    words = [
        "-m",
        "tests.integration.ce.program",
        backend.dsn,
        msgspec.json.encode(settings).decode(),
        str(place),
    ]
    made = await asyncio.create_subprocess_exec(sys.executable, *words, env=environment, cwd=_ROOT)
    async with asyncio.timeout(2 * PATIENCE_S):
        return await made.wait()


@pytest.mark.parametrize(
    ("fault", "patience"), [("batch.submitting", 3.0), ("batch.taken", 30.0), ("batch.ended", 30.0)]
)
async def test_a_job_is_submitted_once(backend: Backend, tmp_path: Path, fault: str, patience: float) -> None:
    """Whatever the killed process had done, the next one finds it, and the job runs once and is reported."""
    fake = FakeSlurm(tmp_path / "slurm")
    fake.set_mode("runs")
    settings = BatchSettings(
        name="cluster",
        kind=BatchKind.SLURM,
        directory=str(tmp_path / "sandboxes"),
        environment=fake.environment,
        poll_least=0.1,
        poll_most=0.2,
        settling=0.1,
        patience=patience,
    )
    assert -signal.SIGKILL == await process(backend, settings, tmp_path, fault)
    assert not (tmp_path / "report").exists()
    assert 0 == await process(backend, settings, tmp_path)
    final = msgspec.json.decode((tmp_path / "report").read_bytes(), type=FinalReport)
    assert final.result.exit is not None
    assert 7 == final.result.exit.code
    assert ["ran\n"] == [each.data.decode() for each in final.outputs if each.name == "runs" and each.data]
    assert 1 == len(fake.jobs())
