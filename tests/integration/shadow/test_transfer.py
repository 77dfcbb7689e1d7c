"""
What a shadow makes of the lists of a job, of results that did not arrive, and of what evicted jobs saved.
"""

import msgspec
import pytest

from kettle.bus.ports import RefusedError
from kettle.wire.ads import Ad
from kettle.wire.commands.schedd import Attempt, Ended, Finished
from kettle.wire.commands.shadow import FETCH_INPUT, Assignment, FetchInput
from kettle.wire.work import Body, Exited, Failed, OutputFile, Report, Started, Trouble

from .fakes import Side, held, until

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
    """
    With code and sentence, and no machine has worked for it.
    """
    with (side.work / "large").open("wb") as file:
        file.truncate(3 * MIB)
    job = side.job(attributes)
    async with side.shadow():
        await side.schedd.hand_over(job)
        end = await side.schedd.end(job)

    assert (True, code) == held(end)
    assert isinstance(end, Ended)
    assert words in end.reason
    assert "secret" not in end.reason
    assert not side.startd.runs


@pytest.mark.parametrize(("limit", "settings"), [(2, {}), (1000, {"max_output_mib": 2})])
async def test_too_many_bytes_of_results(side: Side, limit: int, settings: dict[str, object]) -> None:
    """
    Code 33, whether the job or the site set the limit; nothing is fetched.
    """
    job = side.assignment(MaxTransferOutputMB=limit)
    async with side.shadow(**settings):
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.exited(job, OutputFile(name="x", mode=0o644, size=3 * MIB))
        end = await side.schedd.end(job)

    assert (True, 33) == held(end)
    assert not (side.work / "x").exists()


async def test_results_that_went_wrong_elsewhere(side: Side) -> None:
    """
    What did arrive is put in its place, and the job is held with the worker's words.
    """
    job = side.assignment(Out="out")
    trouble = Trouble(code=12, subcode=256, reason="sending x to s3://b: no")
    body = Exited(exit_code=0, outputs=[small("_condor_stdout", b"hi")], trouble=trouble)
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.say(report(job, body))
        end = await side.schedd.end(job)

    assert isinstance(end, Ended)
    assert (True, 12, 256, trouble.reason) == (end.hold, end.code, end.subcode, end.reason)
    assert b"hi" == (side.work / "out").read_bytes()


async def test_what_an_evicted_job_saved_goes_along_with_its_next_run(side: Side) -> None:
    """
    Beside its input files and instead of them; when the job is done it is gone.
    """
    (side.work / "in").write_text("original")
    first = side.assignment(TransferInput="in")
    second = msgspec.structs.replace(first, attempt=2)
    large = b"large " * 20_000
    side.startd.files["d/large"] = large
    saved = [small("in", b"changed"), OutputFile(name="d/large", mode=0o600, size=len(large))]
    async with side.shadow():
        await side.schedd.hand_over(first)
        await until(lambda: side.startd.runs)
        await side.startd.say(report(first, Failed(hold=False, code=1004, reason="vacated", outputs=saved)))
        assert (False, 1004) == held(await side.schedd.end(first))

        await side.schedd.hand_over(second)
        await until(lambda: Attempt(second.job, 2) in side.startd.runs)
        files = {file.name: file for file in side.startd.activations[-1].inputs}
        assert (b"changed", True) == (files["in"].data, files["in"].saved)
        assert (len(large), True) == (files["d/large"].size, files["d/large"].saved)
        await side.startd.exited(second)
        assert isinstance(await side.schedd.end(second), Finished)
        await until(lambda: not list(side.settings.spool_path.iterdir()))

    assert "original" == (side.work / "in").read_text()


async def test_what_was_saved_goes_when_the_job_is_over(side: Side) -> None:
    """
    The schedd is told whose files are kept, and says who will not run again.
    """
    job = side.assignment()
    failed = Failed(hold=False, code=1004, reason="vacated", outputs=[small("x", b"1")])
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
    """
    Who asks before his job's turn is told to ask again; a job that runs makes room for the next.
    """
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
