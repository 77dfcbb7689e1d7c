"""What a shadow says about attempts, to whom, and what it must not say."""

import asyncio
import os

from kettle.bus.ports import RefusedError
from kettle_wire.commands.attempt_reports import Attempt, Used
from kettle_wire.commands.startd import Activate
from kettle_wire.events import Usage
from kettle_wire.identity import Identity
from kettle_wire.worker_reports import Measured, OutputFile, Report

from .fakes import Side, held, until


async def test_a_job_runs_to_its_end(side: Side) -> None:
    """An attempt is activated, its output brought home, its end recorded and then confirmed."""
    job = side.assignment(Out="out")
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        report = await side.startd.exited(
            job, OutputFile(name="_condor_stdout", mode=0o644, size=2, data=b"hi")
        )
        end = await side.schedd.end(job)
        await until(lambda: report.key in side.startd.confirmed)

    assert end.result.done
    assert b"hi" == (side.work / "out").read_bytes()


async def test_a_stray_report_waits_for_its_attempt(side: Side) -> None:
    """A final report of an attempt that the schedd has not handed over yet is neither confirmed nor lost."""
    first, later = side.assignment(0), side.assignment(1)
    side.schedd.has(first)
    async with side.shadow():
        await until(lambda: side.startd.runs)
        report = await side.startd.exited(later)
        await until(lambda: [Attempt(later.job, 1)] == side.schedd.syncs[-1].strays)
        await asyncio.sleep(0.1)
        assert [] == side.startd.confirmed

        await side.schedd.hand_over(later)
        assert (await side.schedd.end(later)).result.done
        await until(lambda: report.key in side.startd.confirmed)


async def test_a_stray_report_of_an_attempt_that_is_over_is_confirmed(side: Side) -> None:
    """What is over in the record is confirmed, exactly that."""
    over, unknown = side.assignment(0), side.assignment(1)
    side.schedd.over.add(Attempt(over.job, 1))
    async with side.shadow():
        await side.startd.exited(unknown)
        report = await side.startd.exited(over)
        await until(lambda: side.startd.confirmed)
        await asyncio.sleep(0.1)

    assert [report.key] == side.startd.confirmed


async def test_more_is_asked_for_at_once(side: Side) -> None:
    """A shadow whose orders do not fit into one message asks again without waiting."""
    side.schedd.batch = 10
    for proc in range(35):
        side.schedd.has(side.assignment(proc))
    async with side.shadow():
        await until(lambda: len(side.startd.runs) == 35)


async def test_an_attempt_that_runs_outlives_its_input_file(side: Side) -> None:
    """
    A shadow that takes over an attempt and cannot read its input any more asks the worker before it gives it up.
    """
    job = side.schedd.has(side.assignment(TransferInput="gone"))
    side.startd.runs.add(Attempt(job.job, 1))
    async with side.shadow():
        await until(lambda: side.startd.activations)
        await side.startd.exited(job)
        end = await side.schedd.end(job)

    assert end.result.done
    assert [(True, [])] == [(each.probe, each.inputs) for each in side.startd.activations]


async def test_an_attempt_that_does_not_run_is_held_for_its_input_file(side: Side) -> None:
    """The worker does not know it: the job is held with code 13, and the claim stays."""
    job = side.schedd.has(side.assignment(TransferInput="gone"))
    async with side.shadow():
        end = await side.schedd.end(job)

    assert (True, 13) == held(end)
    assert end.result.ending is not None
    assert (2, False) == (end.result.ending.subcode, end.claim_lost)
    assert "No such file" in end.result.ending.reason


async def test_a_refused_probe_proves_nothing(side: Side) -> None:
    """Only an answer of the worker about the attempt gives it up."""
    job = side.schedd.has(side.assignment(TransferInput="gone"))
    side.startd.refuses = lambda _: RefusedError("denied", "who are you?")
    async with side.shadow():
        await until(lambda: len(side.startd.messages) > 2)
        assert [] == side.schedd.reports
        side.startd.refuses = lambda _: None
        assert (True, 13) == held(await side.schedd.end(job))


async def test_activations_share_messages_as_far_as_they_fit(side: Side) -> None:
    """Sixty jobs whose ads have 300 kB each start, in several messages."""
    big = "x" * 300_000
    side.startd.answering.clear()
    async with side.shadow(call_deadline=3600.0):
        for first in (0, 20, 40):  # no more fit into a message of the schedd
            jobs = (side.assignment(proc, Environment=big) for proc in range(first, first + 20))
            await side.schedd.hand_over(*jobs)
        side.startd.answering.set()
        await until(lambda: len(side.startd.runs) == 60)

    assert [] == side.schedd.reports
    assert 10 > len(side.startd.messages)


async def test_inline_input_of_one_job_is_bounded(side: Side) -> None:
    """Of very many small files only the first go along; all are offered."""
    (side.work / "many").mkdir()
    for number in range(3000):
        (side.work / "many" / f"f{number}").write_bytes(os.urandom(3000))
    async with side.shadow():
        await side.schedd.hand_over(side.assignment(TransferInput="many"))
        await until(lambda: side.startd.runs)

    inputs = side.startd.activations[0].inputs
    assert 3000 == len(inputs)
    assert side.settings.inline_total_bytes >= sum(len(file.data or b"") for file in inputs) > 0


async def test_an_activation_that_no_message_holds(side: Side) -> None:
    """The job is held with a sentence, its neighbours run, and no claim is given up."""
    bad, good = side.assignment(0, Environment="x" * 4_000_000, Note="y" * 4_200_000), side.assignment(1)
    side.schedd.has(bad)
    side.schedd.has(good)
    async with side.shadow() as shadow:
        for each in (bad, good):
            shadow.start(each)
        end = await side.schedd.end(bad)
        await until(lambda: Attempt(good.job, 1) in side.startd.runs)

    assert (True, 13) == held(end)
    assert end.result.ending is not None
    assert "bytes" in end.result.ending.reason
    assert not end.claim_lost


async def test_one_refused_activation_does_not_spoil_its_batch(side: Side) -> None:
    """What a startd refuses as a whole is said again one by one; the one to blame is held, after a probe."""

    def refuses(message: Activate) -> RefusedError | None:
        bad = any("Bad" in activation.ad for activation in message.activations)
        return RefusedError("malformed", "Bad is bad") if bad else None

    side.startd.refuses = refuses
    jobs = [side.assignment(proc) for proc in range(4)] + [side.assignment(4, Bad=True)]
    async with side.shadow():
        await side.schedd.hand_over(*jobs)
        end = await side.schedd.end(jobs[-1])
        await until(lambda: len(side.startd.runs) == 4)

    assert (True, 17) == held(end)
    assert end.result.ending is not None
    assert ("Bad is bad", False) == (end.result.ending.reason, end.claim_lost)


async def test_a_refusal_after_a_lost_answer_gives_nothing_up(side: Side) -> None:
    """
    The first message started the job and its answer was lost; that the second is refused proves nothing.
    """

    def refuses(message: Activate) -> RefusedError | None:
        again = len(side.startd.messages) > 1 and not message.activations[0].probe
        return RefusedError("denied", "not now") if again else None

    async def lost(request: Activate, caller: Identity) -> object:
        reply = await activate(request, caller)
        if len(side.startd.messages) == 1:
            await asyncio.Event().wait()
        return reply

    activate = side.startd.activate
    side.startd.activate = lost  # type: ignore[method-assign,assignment]
    await side.startd.serve()
    side.startd.refuses = refuses
    job = side.assignment()
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: len(side.startd.messages) == 3)
        assert [] == side.schedd.reports
        await side.startd.exited(job, sequence=2)
        assert (await side.schedd.end(job)).result.done


async def test_only_the_startd_says_that_a_claim_is_lost(side: Side) -> None:
    """Code 1034 of an activation."""
    side.startd.says = lambda activation: (1034, "there is no such claim")
    job = side.assignment()
    async with side.shadow():
        await side.schedd.hand_over(job)
        end = await side.schedd.end(job)

    assert end.result.ending is not None
    assert (False, 1034, True) == (end.result.ending.holds, end.result.ending.code, end.claim_lost)


async def test_a_busy_startd_is_asked_again(side: Side) -> None:
    """`busy` is no refusal of the job."""
    side.startd.refuses = lambda _: RefusedError("busy", "later") if len(side.startd.messages) < 4 else None
    job = side.assignment()
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)

    assert [] == side.schedd.reports
    assert not any(activation.probe for activation in side.startd.activations)


async def test_what_a_job_uses_is_passed_on(side: Side) -> None:
    """A measurement goes to the schedd, whose policies it may concern, and ends nothing."""
    job = side.assignment()
    usage = Usage(wall=8.0, user_cpu=2.0, memory_kib=4096)
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        await side.startd.say(
            Report(claim=job.key.claim, attempt=1, sequence=1, job=job.job, body=Measured(usage=usage))
        )
        await until(lambda: [Used(usage=usage)] == [each.news for each in side.schedd.reports])
        await side.startd.exited(job, sequence=2)
        assert (await side.schedd.end(job)).result.done
