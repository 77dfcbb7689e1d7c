"""What Slurm is asked, in front of programs that stand for it."""

from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from kettle.commands.local import LocalCommands
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle_services.ce.batch.asking import Asking
from kettle_services.ce.batch.port import Job, NotTakenError, Submission
from kettle_services.ce.batch.slurm import Slurm
from kettle_services.ce.domain.batch.slurm import clusters_in
from kettle_wire.batch import BatchRequest, BatchState


@pytest.fixture
def fake(tmp_path: Path) -> Generator[FakeSlurm]:
    with FakeSlurm(tmp_path / "slurm") as programs:
        yield programs


def slurm(fake: FakeSlurm, *, hook: str = "", clusters: Sequence[str] = ()) -> Slurm:
    asking = Asking(LocalCommands(fake.environment), patience=30.0, hook=hook)
    return Slurm(asking, accounting=True, clusters=clusters)


def hook(tmp_path: Path, *lines: str) -> str:
    program = tmp_path / "hook"
    program.write_text("\n".join(["#!/bin/sh", *(f"echo '{line}'" for line in lines), ""]))
    program.chmod(0o755)
    return str(program)


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


@pytest.mark.parametrize("mode", ["parted", "parted vanished"])
async def test_a_job_at_another_cluster_is_looked_for_there(
    fake: FakeSlurm, tmp_path: Path, mode: str
) -> None:
    """
    A job that the site's hook sends elsewhere is found there by its intent, in the list or in the books, with the name of the cluster.
    """
    fake.set_mode("parted")
    system = slurm(fake, hook=hook(tmp_path, "#SBATCH --clusters=other"), clusters=["third", "other"])
    id_ = await system.submit(submission("kaaaaaaaaaaaaaa"))
    assert "100;other" == id_
    fake.set_mode(*mode.split())
    assert {"kaaaaaaaaaaaaaa": id_} == await system.find(["kaaaaaaaaaaaaaa", "kbbbbbbbbbbbbbb"], [])


@pytest.mark.parametrize(
    "line",
    [
        "#SBATCH --clusters=big",
        "#SBATCH --clusters other,big",
        "#SBATCH --clus big",
        "#SBATCH -Mbig",
        "#SBATCH -HM big",
    ],
)
async def test_a_job_goes_nowhere_where_it_would_not_be_found(
    fake: FakeSlurm, tmp_path: Path, line: str
) -> None:
    """A cluster that the settings do not name is refused by its name, and nothing is submitted."""
    system = slurm(fake, hook=hook(tmp_path, "#SBATCH --cluster-constraint=x", line), clusters=["other"])
    with pytest.raises(NotTakenError, match=r"sends the job to big, which `clusters`"):
        await system.submit(submission("kaaaaaaaaaaaaaa"))
    assert 0 == fake.asked("sbatch")


@pytest.mark.parametrize("line", ['--comment="see -M manual"', "--mem=4G # not -Mem", "--clusters-of=none"])
def test_what_looks_like_a_cluster_is_none(line: str) -> None:
    """In quotes, in a comment, or with another name."""
    assert [] == clusters_in([f"#SBATCH {line}"])
