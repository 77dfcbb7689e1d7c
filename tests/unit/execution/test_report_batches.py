"""Reports as they go into messages."""

import msgspec
import pytest

from kettle.execution.attempts.report_batches import cut, encoded, shortened
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord, Usage
from kettle_wire.jobs import JobId
from kettle_wire.tasks import Step
from kettle_wire.worker_reports import (
    Body,
    FinalReport,
    Measured,
    OutputFile,
    Report,
    Reports,
    Started,
    Stepped,
    not_made,
)

USAGE = Usage(wall=7.0)


def report(sequence: int, body: Body) -> Report:
    return Report(claim="c", attempt=1, sequence=sequence, job=JobId(1, 0), body=body, trace="t" * 55)


def exited(names: int, size: int = 200) -> FinalReport:
    files = [OutputFile(name=f"{n:0{size}}", mode=0o644, size=0) for n in range(names)]
    return FinalReport(
        result=AttemptResult(exit=ExitRecord(code=0), ending=not_made(["m" * size] * names), usage=USAGE),
        outputs=files,
    )


def test_a_batch_is_cut_by_what_is_really_sent() -> None:
    """The message stays below the limit whatever makes its reports large, and nobody is left out."""
    box = [report(n, exited(20)) for n in range(50)]
    sent: list[Report] = []
    while rest := box[len(sent) :]:
        message = encoded("host", cut(rest, 100_000))
        assert len(message) < 101_000
        sent += msgspec.msgpack.decode(message, type=Reports).reports

    assert box == sent


def test_one_report_is_a_batch_however_large() -> None:
    """Else nothing would ever be sent."""
    assert 1 == len(cut([report(1, exited(100)), report(2, exited(1))], 10))


@pytest.mark.parametrize(
    "body",
    [
        exited(3),
        FinalReport(result=AttemptResult(ending=Ending(code=1007, reason="r" * 10_000), usage=USAGE)),
    ],
)
def test_what_is_left_of_a_report_that_does_not_fit(body: Body) -> None:
    """
    The remaining report has the same key: the attempt failed, the job is held with code 12 and a sentence, and its
    usage is kept.
    """
    full = report(4, body)

    short = shortened(full, 9_000_000)

    assert short is not None
    assert full.key == short.key
    assert isinstance(short.body, FinalReport)
    assert short.body.result.exit is None
    assert short.body.result.ending is not None
    assert (True, 12, USAGE) == (
        short.body.result.ending.holds,
        short.body.result.ending.code,
        short.body.result.usage,
    )
    assert "9000000 bytes" in short.body.result.ending.reason
    assert len(short.body.result.ending.reason) < 1500
    assert shortened(short, 9_000_000) is None


def test_steps_go_first() -> None:
    """They were reported as they ended: for their size no result of a job is lost."""
    step = Step(kind="task", outcome="done", task=0)
    short = shortened(report(4, msgspec.structs.replace(exited(3), steps=[step])), 9_000_000)

    assert short is not None
    assert exited(3) == short.body


@pytest.mark.parametrize("body", [Started(pid=1, at=0.0), Measured(usage=USAGE), Stepped(steps=[])])
def test_only_final_reports_can_be_shortened(body: Body) -> None:
    """The others say nothing that is large, or that does not come again."""
    assert shortened(report(1, body), 1) is None
