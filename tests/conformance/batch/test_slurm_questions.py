"""What Slurm is asked, in front of programs that stand for it."""

from collections.abc import Generator
from pathlib import Path

import pytest

from kettle.commands.local import LocalCommands
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle_services.ce.batch.asking import Asking
from kettle_services.ce.batch.port import Job, Submission
from kettle_services.ce.batch.slurm import Slurm
from kettle_wire.batch import BatchRequest, BatchState


@pytest.fixture
def fake(tmp_path: Path) -> Generator[FakeSlurm]:
    with FakeSlurm(tmp_path / "slurm") as programs:
        yield programs


def slurm(fake: FakeSlurm) -> Slurm:
    return Slurm(Asking(LocalCommands(fake.environment), patience=30.0), accounting=True)


def submission(intent: str) -> Submission:
    return Submission(intent=intent, owner="", directory="/nowhere", script="exit 0", request=BatchRequest())


async def test_an_account_that_is_gone_hides_no_job(fake: FakeSlurm) -> None:
    """
    A job whose owner the cluster does not know any more is asked for, as those of all others; without such a job nobody else's are.
    """
    system = slurm(fake)
    jobs = [
        Job(await system.submit(submission(intent)), intent, owner)
        for intent, owner in (("kaaaaaaaaaaaaaa", "ada"), ("kbbbbbbbbbbbbbb", "leaver"))
    ]
    fake.set_mode("stranger")
    seen = await system.poll(jobs)
    assert {each.id: BatchState.QUEUED for each in jobs} == {id_: each.state for id_, each in seen.items()}
    assert 2 == fake.asked("squeue")
    fake.set_mode()
    await system.poll(jobs)
    assert 3 == fake.asked("squeue")
