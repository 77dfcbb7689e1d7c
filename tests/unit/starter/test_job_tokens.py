"""The files of a job's tokens in its sandbox."""

from pathlib import Path
from typing import Any

import pytest

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import Question, Reply, Unanswered
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.job_environment.variables import job_environment
from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.sandbox.output_files import collect
from kettle.execution.system.linux import boottime
from kettle_services.starter.job_tokens import TokenFiles
from kettle_services.starter.submit_side_questions import SubmitSideQuestions
from kettle_wire.codes import HoldCode
from kettle_wire.commands.questions import JobTokens
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.job_tokens import JobToken
from kettle_wire.jobs import JobId


class Job:
    """A job that wants a token, in a sandbox."""

    def __init__(self, path: Path, **ad: Any) -> None:
        self.asked: list[Question] = []
        self.path = path / ".condor_creds"
        job = JobAd({"OAuthServicesNeeded": "kettle", **ad})
        self.files = TokenFiles(job, Sandbox(str(path)), SubmitSideQuestions("shadow", self.asked.append))
        self.files.go_on()

    def hear(self, answer: Any) -> None:
        self.files.hear(Reply(self.asked[-1].number, answer))

    def given(self, text: str, left: float = 90.0) -> None:
        self.hear(JobTokens([JobToken(name="kettle", text=text, left=left)]))

    def is_due_in(self) -> float:
        return self.files.due - boottime()


def test_a_login_of_a_registry_is_for_the_starter_alone(tmp_path: Path) -> None:
    """It is no file, and no program is told of one."""
    ad = {"OAuthServicesNeeded": "image_registry*a"}
    job = Job(tmp_path, **ad)
    job.hear(JobTokens([JobToken(name="image_registry_a", text="secret", left=90.0)]))
    assert not job.files.missing
    assert {"image_registry_a": "secret"} == job.files.logins
    assert [] == list(tmp_path.iterdir())
    job.files.remove()


def test_a_job_waits_for_its_tokens_and_they_are_renewed(tmp_path: Path) -> None:
    """
    The next one is asked for when a third of the life is left; an answer to an older question counts for nothing.
    """
    job = Job(tmp_path)
    assert job.files.missing
    job.hear(Unanswered("later"))
    assert job.files.missing
    job.files.due = 0.0
    job.files.go_on()
    job.given("first")
    assert (False, "first") == (job.files.missing, (job.path / "kettle.use").read_text())
    assert 59 < job.is_due_in() <= 60
    assert (0o700, 0o600) == tuple(
        path.stat().st_mode & 0o777 for path in (job.path, job.path / "kettle.use")
    )
    job.given("stale")
    assert "first" == (job.path / "kettle.use").read_text()
    job.files.due = 0.0
    job.files.go_on()
    job.hear(Unanswered("refused", "no"))
    assert None is job.files.refusal
    assert 29 < job.is_due_in() <= 30
    job.files.remove()
    assert [] == list(tmp_path.iterdir())


def test_a_job_that_gets_none_is_held_with_the_reason(tmp_path: Path) -> None:
    """Before it has begun; one that is to run without them goes on, and asks again later."""
    job = Job(tmp_path)
    job.hear(Unanswered("refused", "no such service"))
    assert job.files.refusal is not None
    assert (HoldCode.CorruptedCredential, "no such service") == (
        job.files.refusal.code,
        job.files.refusal.reason,
    )
    without = Job(tmp_path)
    without.hear(JobTokens([]))
    assert not without.files.missing
    assert 0 < without.is_due_in() < 30


def test_what_a_job_has_put_into_their_place_is_not_followed(tmp_path: Path) -> None:
    """
    A link for the file is replaced; a link or a file for the directory keeps the job from starting, and harms nobody
    later.
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    (victim := outside / "victim").write_text("mine")
    sandbox = tmp_path / "sandbox"
    sandbox.mkdir()
    (sandbox / ".condor_creds").symlink_to(outside)
    with pytest.raises(OSError, match="Not a directory"):
        Job(sandbox).given("first")
    (sandbox / ".condor_creds").unlink()
    job = Job(sandbox)
    job.given("first")
    (job.path / "kettle.use").unlink()
    (job.path / "kettle.use").symlink_to(victim)
    job.files.due = 0.0
    job.files.go_on()
    job.given("second")
    assert ("second", "mine") == ((job.path / "kettle.use").read_text(), victim.read_text())
    job.path.rename(sandbox / "away")
    job.path.symlink_to(outside)
    job.files.due = 0.0
    job.files.go_on()
    job.given("third")
    assert "second" == (sandbox / "away" / "kettle.use").read_text()
    job.files.remove()
    assert (["away"], ["victim"]) == (
        [each.name for each in sandbox.iterdir()],
        [each.name for each in outside.iterdir()],
    )


def test_a_job_that_wants_none_is_left_alone(tmp_path: Path) -> None:
    """Nothing is asked, and a directory of its own stays."""
    asked: list[Question] = []
    files = TokenFiles(JobAd({}), Sandbox(str(tmp_path)), SubmitSideQuestions("shadow", asked.append))
    (tmp_path / ".condor_creds").mkdir()
    files.go_on()
    files.remove()
    assert (False, [], [".condor_creds"]) == (
        files.missing,
        asked,
        [each.name for each in tmp_path.iterdir()],
    )


def spec(place: Path, ad: dict[str, Any]) -> JobSpec:
    """A job of one core."""
    return JobSpec(
        key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, schedd="schedd", execute=str(place), state=str(place),
        slot="slot1@n1", cpus=1, memory=1, disk=1, ad=ad, machine_ad="", inputs=[], received=0, began=0.0,
        deadline=0.0, sequence=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wants", "environment", "named"),
    [
        ("box,kettle", "", "/box/.condor_creds/kettle.use"),
        ("box*mine,other", "", "/box/.condor_creds/box_mine.use"),
        ("kettle", "BEARER_TOKEN_FILE=own", "own"),
        ("../x", "", None),
    ],
)
def test_programs_are_told_where_the_tokens_are(
    tmp_path: Path, wants: str, environment: str, named: str | None
) -> None:
    """
    The one of the pool's own before others, unless the owner names a file; what is no name of a service makes no
    path.
    """
    ad: dict[str, Any] = {"OAuthServicesNeeded": wants, "Environment": environment}
    found = job_environment(spec(tmp_path, ad), JobAd(ad), "/box", {}, contained=True)
    assert (named, "/box/.condor_creds" if named else None) == (
        found.get("BEARER_TOKEN_FILE"), found.get("_CONDOR_CREDS"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "listed", [".", "./", ".condor_creds", "./.condor_creds/kettle.use", ".//.condor_creds/"]
)
def test_tokens_are_no_results(tmp_path: Path, listed: str) -> None:
    """However the list of results is spelled; one that names them is told that there is no such file."""
    job = JobAd({"OAuthServicesNeeded": "kettle", "TransferOutput": f"made,{listed}", "Cmd": "x"})
    (tmp_path / "made").write_text("result")
    (tmp_path / ".condor_creds").mkdir()
    (tmp_path / ".condor_creds" / "kettle.use").write_text("canary")
    results = collect(Sandbox(str(tmp_path)), job, {})
    assert not any(b"canary" in (file.data or b"") for file in results.files)
    assert {"made"} == {file.name for file in results.files}
    assert (listed.strip("/.") != "") == bool(results.missing)
