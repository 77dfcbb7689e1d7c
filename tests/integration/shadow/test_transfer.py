"""
What a shadow makes of the lists of a job, of results that did not arrive, and of what evicted jobs saved.
"""

import asyncio
from functools import partial

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.ports import RefusedError
from kettle.testing.patience import PATIENCE_S
from kettle_services.shadow import service
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.commands.attempt_reports import Attempt, Saved
from kettle_wire.commands.shadow import FETCH_INPUT, Assignment, FetchInput
from kettle_wire.commands.startd import FetchOutput, Piece
from kettle_wire.identity import Identity, daemon
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import Body, Checkpointed, FinalReport, OutputFile, Report, Started

from .fakes import POOL, Side, held, until

MIB = 1 << 20


def report(job: Assignment, body: Body) -> Report:
    return Report(claim=job.key.claim, attempt=job.attempt, sequence=1, job=job.job, body=body)


def small(name: str, data: bytes) -> OutputFile:
    return OutputFile(name=name, mode=0o644, size=len(data), data=data)


@pytest.mark.parametrize(
    ("attributes", "code", "words"),
    [
        ({"TransferOutput": "../x"}, 12, "../x leads out of the sandbox"),
        ({"TransferOutputRemaps": "x"}, 12, "has no ="),
        ({"TransferInput": "https://user:secret@x/"}, 13, "https://x/ does not end with the name of a file"),
        ({"TransferPlugins": "foo"}, 13, "is no plugin"),
        ({"TransferInput": "large", "MaxTransferInputMB": 2}, 32, "more than 2 MiB together"),
        ({"TransferInput": "absent"}, 13, "absent failed: No such file"),
    ],
)
async def test_lists_that_cannot_be_hold_the_job(side: Side, attributes: Ad, code: int, words: str) -> None:
    """With code and sentence, and no machine has worked for it."""
    with (side.work / "large").open("wb") as file:
        file.truncate(3 * MIB)
    job = side.job(attributes)
    async with side.shadow():
        await side.schedd.hand_over(job)
        end = await side.schedd.end(job)

    assert (True, code) == held(end)
    assert end.result.ending is not None
    assert words in end.result.ending.reason
    assert "secret" not in end.result.ending.reason
    assert not side.startd.runs


@pytest.mark.parametrize(("limit", "settings"), [(2, {}), (1000, {"max_output_mib": 2})])
async def test_too_many_bytes_of_results(side: Side, limit: int, settings: dict[str, object]) -> None:
    """Code 33, whether the job or the site set the limit; nothing is fetched."""
    job = side.assignment(MaxTransferOutputMB=limit)
    async with side.shadow(**settings):
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.exited(job, OutputFile(name="x", mode=0o644, size=3 * MIB))
        end = await side.schedd.end(job)

    assert (True, 33) == held(end)
    assert not (side.work / "x").exists()


async def test_results_that_went_wrong_elsewhere(side: Side) -> None:
    """What did arrive is put in its place, and the job is held with the worker's words."""
    job = side.assignment(Out="out")
    trouble = Ending(code=12, subcode=256, reason="sending x to s3://b: no")
    body = FinalReport(
        result=AttemptResult(exit=ExitRecord(code=0), ending=trouble),
        outputs=[small("_condor_stdout", b"hi")],
    )
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.say(report(job, body))
        end = await side.schedd.end(job)

    assert end.result.ending is not None
    assert AttemptResult(ending=trouble) == end.result
    assert b"hi" == (side.work / "out").read_bytes()


async def test_what_an_evicted_job_saved_goes_along_with_its_next_run(side: Side) -> None:
    """Beside its input files and instead of them; when the job is done it is gone."""
    (side.work / "in").write_text("original")
    first = side.assignment(TransferInput="in")
    second = msgspec.structs.replace(first, attempt=2)
    large = b"large " * 20_000
    side.startd.files["d/large"] = large
    saved = [small("in", b"changed"), OutputFile(name="d/large", mode=0o600, size=len(large))]
    async with side.shadow():
        await side.schedd.hand_over(first)
        await until(lambda: side.startd.runs)
        await side.startd.say(
            report(
                first,
                FinalReport(result=AttemptResult(ending=Ending(code=1004, reason="vacated")), outputs=saved),
            )
        )
        assert (False, 1004) == held(await side.schedd.end(first))

        await side.schedd.hand_over(second)
        await until(lambda: Attempt(second.job, 2) in side.startd.runs)
        files = {file.name: file for file in side.startd.activations[-1].inputs}
        assert (b"changed", True) == (files["in"].data, files["in"].saved)
        assert (len(large), True) == (files["d/large"].size, files["d/large"].saved)
        await side.startd.exited(second)
        assert (await side.schedd.end(second)).result.done
        await until(lambda: not list(side.settings.spool_path.iterdir()))

    assert "original" == (side.work / "in").read_text()


async def test_what_was_saved_goes_when_the_job_is_over(side: Side) -> None:
    """The schedd is told whose files are kept, and says who will not run again."""
    job = side.assignment()
    failed = FinalReport(
        result=AttemptResult(ending=Ending(code=1004, reason="vacated")), outputs=[small("x", b"1")]
    )
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.say(report(job, failed))
        await side.schedd.end(job)
        assert [str(job.job)] == [path.name for path in side.settings.spool_path.iterdir()]
    side.schedd.gone = True
    async with side.shadow():
        await until(lambda: not list(side.settings.spool_path.iterdir()))

    assert [job.job] in [request.kept for request in side.schedd.syncs]


async def test_machines_read_input_files_in_turn(side: Side) -> None:
    """Who asks before his job's turn is told to ask again; a job that runs makes room for the next."""
    (side.work / "f").write_bytes(b"x" * 10_000)
    jobs = [side.assignment(proc, TransferInput="f") for proc in range(2)]

    async def read(job: Assignment) -> bytes:
        request = FetchInput(key=job.key, job=job.job, attempt=1, name="f", offset=0, length=10)
        return (await side.startd.bus.call(FETCH_INPUT, "shadow", request)).data

    async with side.shadow(max_concurrent_uploads=1):
        await side.schedd.hand_over(*jobs)
        await until(lambda: len(side.startd.runs) == len(jobs))
        assert b"x" * 10 == await read(jobs[0])
        with pytest.raises(RefusedError, match="waits for its turn") as caught:
            await read(jobs[1])
        assert "busy" == caught.value.code
        await side.startd.say(report(jobs[0], Started(pid=1, at=1.0)))
        await until(lambda: side.schedd.reports)
        assert b"x" * 10 == await read(jobs[1])


def checkpoint(job: Assignment, number: int, *outputs: OutputFile) -> Report:
    made = Checkpointed(number=number, at=1.0, outputs=list(outputs))
    return msgspec.structs.replace(report(job, made), sequence=number)


async def test_a_checkpoint_that_is_not_handed_out_for_now_waits(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A startd that has just started does not know of it: the job is not ended, and the starter's repeat brings it.
    """
    job, asked = side.assignment(), 0
    fetch_output = side.startd.fetch_output

    async def anew(request: FetchOutput, caller: Identity) -> Piece:
        nonlocal asked
        asked += 1
        if not side.startd.files:
            raise RefusedError("not_found", "no output of that attempt waits here for you")
        return await fetch_output(request, caller)

    bus = MemoryBus(side.server, subjects=Subjects(POOL), identity=daemon("startd"))
    monkeypatch.setattr(side.startd, "fetch_output", anew)
    monkeypatch.setattr(side.startd, "name", "other")
    monkeypatch.setattr(side.startd, "bus", bus)
    await side.startd.serve()
    job = msgspec.structs.replace(job, startd="other")
    made = checkpoint(job, 1, OutputFile(name="state", mode=0o600, size=12))
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.say(made)
        await until(lambda: asked)
        side.startd.files["state"] = b"x" * 12

        async def repeated() -> None:
            while not [each for each in side.schedd.reports if isinstance(each.news, Saved)]:
                await side.startd.say(made)
                await asyncio.sleep(0.02)

        async with asyncio.timeout(PATIENCE_S):
            await repeated()
        await until(lambda: made.key in side.startd.confirmed)
    bus.close()

    assert [] == side.startd.ended
    assert b"x" * 12 == (side.settings.spool_path / str(job.job) / "1-1" / "state").read_bytes()


async def test_a_checkpoint_that_its_machine_cannot_read_holds_the_job(side: Side) -> None:
    """It ends there at once: no repeat would change it."""
    job = side.assignment(MaxTransferOutputMB=1)
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.say(checkpoint(job, 1, OutputFile(name="state", mode=0o600, size=3 * MIB)))
        await until(lambda: side.startd.ended)

    assert [Attempt(job.job, 1)] == side.startd.ended


def confirmed(side: Side, count: int) -> bool:
    return len({*side.startd.confirmed}) == count


async def test_an_old_checkpoint_that_is_said_again_does_not_replace_a_newer_one(side: Side) -> None:
    """Although its key is not kept: of an attempt that saves very often only the newest is."""
    job = side.assignment()
    made = [checkpoint(job, number, small("state", b"%d" % number)) for number in (1, 2, 3)]
    async with side.shadow() as shadow:
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        for count, each in enumerate(made, start=1):
            await side.startd.say(each)
            await until(partial(confirmed, side, count))
        await side.startd.say(made[0], made[2])
        await until(lambda: side.startd.confirmed.count(made[2].key) >= 2)
        known = shadow._attempts[job.job].attempt.part(job.key.claim)  # pyright: ignore[reportPrivateUsage] - nobody else can tell
        assert known is not None
        assert [{made[2].key}] * 2 == [known._heard, known._saved]  # pyright: ignore[reportPrivateUsage]
        await side.startd.exited(job, sequence=4)
        await side.schedd.end(job)

    saved = [each.news.number for each in side.schedd.reports if isinstance(each.news, Saved)]
    assert [1, 2, 3] == saved


async def test_whose_files_are_kept_is_asked_in_turn(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    However many live jobs with checkpoints there are: those that are looked after are left out, the others come round.
    """
    monkeypatch.setattr(service, "_KEPT", 2)
    for proc in range(7):
        (side.settings.spool_path / f"1.{proc}" / "1-1").mkdir(parents=True)
    side.schedd.interval = 0.01
    live = side.assignment(proc=3)
    async with side.shadow():
        await side.schedd.hand_over(live)
        await until(lambda: side.startd.runs)
        side.schedd.syncs.clear()
        await until(lambda: len(side.schedd.syncs) > 6)

    asked = [{job.proc for job in sync.kept} for sync in side.schedd.syncs]
    assert {0, 1, 2, 4, 5, 6} == set().union(*asked[1:])
    assert {2} == {len(each) for each in asked}
