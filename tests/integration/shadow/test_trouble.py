"""What one job names, or one worker says, is the trouble of nobody else."""

import os

import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.ports import RefusedError
from kettle_services.shadow.file_transfer.input_files import Inputs
from kettle_wire.ads import Ad
from kettle_wire.ads.types import Scalar
from kettle_wire.commands.attempt_reports import Attempt, AttemptsRecorded, ReportAttempts
from kettle_wire.commands.chirp import Chirped, OnPath, Trouble
from kettle_wire.commands.questions import Answered, Ask, SignUrls
from kettle_wire.commands.shadow import (
    ANSWER,
    FETCH_INPUT,
    LOOK_AFTER,
    FetchInput,
    LookAfter,
)
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import OutputFile

from .fakes import POOL, Side, held, until


async def test_a_job_of_another_account_is_held(side: Side) -> None:
    """The shadow has the rights of its account, and lends them to nobody else."""
    job = side.assignment(Owner="somebody-else", TransferInput="/etc/hostname")
    async with side.shadow():
        await side.schedd.hand_over(job)
        end = await side.schedd.end(job)

    assert (True, 23) == held(end)
    assert [] == [each for each in side.startd.activations if not each.probe]


async def test_nobody_elses_keys_sign(side: Side) -> None:
    """
    Given a job of another account that runs already, when its machine asks for a signed address, then it is told no.
    """
    job = side.assignment(Owner="somebody-else", TransferInput="s3://b/o")
    side.startd.runs.add(Attempt(job.job, 1))
    request = Ask(key=job.key, job=job.job, attempt=1, question=SignUrls(["s3://b/o"]))
    async with side.shadow():
        await side.schedd.hand_over(job)
        with pytest.raises(RefusedError, match="belongs to somebody-else") as caught:
            await side.startd.bus.call(ANSWER, "shadow", request)

    assert "denied" == caught.value.code


async def test_a_job_of_another_account_that_runs_has_none_of_our_rights(side: Side) -> None:
    """
    Its worker knows its attempt, and may ask what it likes: nothing of it is done; for our owner's job it is.
    """
    stranger = side.assignment(0, Owner="somebody-else", WantIOProxy=True)
    ours = side.assignment(1, WantIOProxy=True)
    side.startd.runs.add(Attempt(stranger.job, 1))
    wishes = [
        Ask(key=each.key, job=each.job, attempt=1, question=OnPath("mkdir", [f"by-{each.job.proc}"], [0o700]))
        for each in (stranger, ours)
    ]
    async with side.shadow():
        await side.schedd.hand_over(stranger, ours)
        await until(lambda: Attempt(ours.job, 1) in side.startd.runs)
        await until(lambda: any(each.probe for each in side.startd.activations))
        refused = await side.startd.bus.call(ANSWER, "shadow", wishes[0])
        assert Answered(Chirped(Trouble.NOT_AUTHORIZED)) == refused
        assert Answered(Chirped()) == await side.startd.bus.call(ANSWER, "shadow", wishes[1])

    assert [side.work / "by-1"] == list(side.work.iterdir())


@pytest.mark.parametrize("attribute", ["In", "TransferInput", "Cmd"])
async def test_the_pools_own_files_are_no_input(side: Side, attribute: str) -> None:
    """Neither by their path nor through a link."""
    (side.home / "credentials" / "schedd.nk").write_text("secret")
    (side.work / "link").symlink_to(side.home / "credentials" / "schedd.nk")
    for proc, name in enumerate(
        [f"{side.home}/credentials/schedd.nk", "link", "../home/credentials/schedd.nk"]
    ):
        job = side.job({"TransferExecutable": attribute == "Cmd", attribute: name}, proc)
        async with side.shadow():
            await side.schedd.hand_over(job)
            end = await side.schedd.end(job)

        assert (True, 13) == held(end)
        assert end.result.ending is not None
        assert "the pool's own directory" in end.result.ending.reason


async def test_the_pools_own_files_are_no_output(side: Side) -> None:
    """Standard output there keeps a job from running; another file is not brought there."""
    early, late = side.assignment(0, Out=f"{side.home}/x"), side.assignment(1, Iwd=str(side.home / "state"))
    async with side.shadow():
        await side.schedd.hand_over(early, late)
        assert (True, 12) == held(await side.schedd.end(early))
        await until(lambda: Attempt(late.job, 1) in side.startd.runs)
        await side.startd.exited(late, OutputFile(name="f", mode=0o644, size=1, data=b"x"))
        assert (True, 12) == held(await side.schedd.end(late))

    assert [] == [path for path in side.home.rglob("*") if path.name in {"x", "f"}]


@pytest.mark.parametrize("caller", [user("schedd"), user("startd"), daemon("negotiator")])
async def test_names_are_not_roles(side: Side, caller: Identity) -> None:
    """A person who is called like a service is not one."""
    bus = MemoryBus(side.server, subjects=Subjects(POOL), identity=caller)
    job = side.assignment()
    request = FetchInput(key=job.key, job=job.job, attempt=1, name="f", offset=0, length=1)
    async with side.shadow():
        with pytest.raises(RefusedError, match="is for: schedd"):
            await bus.call(LOOK_AFTER, "shadow", LookAfter())
        with pytest.raises(RefusedError, match="is for: ce, startd"):
            await bus.call(FETCH_INPUT, "shadow", request)
    bus.close()


@pytest.mark.parametrize(
    "attributes",
    [
        {"TransferInput": "a" * 300},
        {"TransferInput": "a\0b"},
        {"TransferInput": "/dev/zero"},
        {"TransferInput": "pipe"},
        {"TransferInput": "loop"},
        {"TransferInput": "/"},
        {"TransferInput": ".."},
        {"Cmd": "/" + "a" * 300, "TransferExecutable": True},
        {"Iwd": "/" + "a" * 300, "TransferInput": "x"},
    ],
    ids=["long", "nul", "zero", "pipe", "loop", "root", "parent", "long command", "long directory"],
)
async def test_what_one_job_names_is_its_own_trouble(side: Side, attributes: dict[str, Scalar]) -> None:
    """The job is held with a sentence, and the next one runs."""
    os.mkfifo(side.work / "pipe")
    (side.work / "loop").symlink_to(side.work / "loop")
    bad, good = side.job(attributes), side.assignment(1)
    async with side.shadow():
        await side.schedd.hand_over(bad, good)
        await until(lambda: Attempt(good.job, 1) in side.startd.runs)
        assert (True, 13) == held(await side.schedd.end(bad))


async def test_a_failure_over_one_job_is_the_end_of_one_attempt(
    side: Side, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What nobody thought of is logged and holds the job; the shadow and the other jobs go on."""

    async def gather(self: Inputs, ad: Ad, saved: object, **_: object) -> list[object]:
        if "Bad" in ad:
            raise ZeroDivisionError("nobody thought of this")
        return []

    monkeypatch.setattr(Inputs, "gather", gather)
    bad, good = side.assignment(0, Bad=True), side.assignment(1)
    async with side.shadow():
        await side.schedd.hand_over(bad, good)
        end = await side.schedd.end(bad)
        await until(lambda: Attempt(good.job, 1) in side.startd.runs)

    assert (True, 17) == held(end)
    assert end.result.ending is not None
    assert "nobody thought of this" in end.result.ending.reason
    assert "failed over job 1.0" in caplog.text


async def test_a_failure_over_results_holds_the_job(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's final report is here: the attempt is over, whatever happens to its files."""

    async def place(*args: object, **options: object) -> None:
        raise ZeroDivisionError("nobody thought of this")

    monkeypatch.setattr("kettle_services.shadow.attempts.attempt.place", place)
    job = side.assignment()
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        report = await side.startd.exited(job)
        assert (True, 17) == held(await side.schedd.end(job))
        await until(lambda: report.key in side.startd.confirmed)


async def test_a_message_that_is_no_report_is_passed_over(side: Side) -> None:
    """A broken worker does not stop the reports of the others."""
    job = side.assignment()
    async with side.shadow():
        await side.startd.bus.append(Subjects(POOL).work("schedd", "worker"), b"\xc1")
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.exited(job)
        assert (await side.schedd.end(job)).result.done


async def test_a_very_long_reason_is_cut(side: Side) -> None:
    """Names are the job's own, and need be neither short nor text."""
    job = side.assignment(TransferInput="x" * 100_000)
    async with side.shadow():
        await side.schedd.hand_over(job)
        end = await side.schedd.end(job)

    assert end.result.ending is not None
    assert 5000 > len(end.result.ending.reason)


@pytest.mark.parametrize("name", ["pipe", "directory", "a\0b", "x" * 300])
async def test_output_that_has_no_place(side: Side, name: str) -> None:
    """The job is held with code 12; a pipe that nobody reads does not keep the shadow."""
    os.mkfifo(side.work / "pipe")
    (side.work / "directory").mkdir()
    job = side.schedd.has(side.assignment(Out=name))
    side.startd.runs.add(Attempt(job.job, 1))
    async with side.shadow():
        await until(lambda: side.startd.activations)
        await side.startd.exited(job, OutputFile(name="_condor_stdout", mode=0o644, size=2, data=b"hi"))
        end = await side.schedd.end(job)

    assert (True, 12) == held(end)


async def test_a_short_result_is_no_result(side: Side) -> None:
    """A large file that arrives with fewer bytes than were reported is not put in place."""
    side.startd.files["big"] = b"x" * 10
    job = side.assignment()
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.exited(job, OutputFile(name="big", mode=0o644, size=20))
        assert (True, 12) == held(await side.schedd.end(job))

    assert [] == list(side.work.iterdir())


async def test_refused_reports_are_said_again(side: Side) -> None:
    """What happened does not become untrue by a refusal, and one report does not keep the others."""
    jobs = [side.assignment(proc, Owner="somebody-else") for proc in range(5)]
    report, refusals = side.schedd.report, [3]

    async def refuses(request: ReportAttempts, caller: Identity) -> AttemptsRecorded:
        if any(each.job.proc == 2 for each in request.reports) and refusals[0]:
            refusals[0] -= 1
            raise RefusedError("too_large", "fewer, please")
        return await report(request, caller)

    side.schedd.report = refuses  # type: ignore[method-assign]
    await side.schedd.serve()
    async with side.shadow():
        await side.schedd.hand_over(*jobs)
        for job in jobs:
            assert (True, 23) == held(await side.schedd.end(job))

    assert [0] == refusals
