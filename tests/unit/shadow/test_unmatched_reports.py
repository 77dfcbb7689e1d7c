"""Reports about attempts that are not known."""

from kettle_services.shadow.attempts.unmatched_reports import UnmatchedReports
from kettle_wire.attempts import AttemptResult
from kettle_wire.commands.attempt_reports import Attempt
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import FinalReport, OutputFile, Report


def report(proc: int, *, sequence: int = 1, size: int = 0) -> Report:
    outputs = [OutputFile(name="f", mode=0o644, size=size, data=b"x" * size)]
    return Report(
        claim="c",
        attempt=1,
        sequence=sequence,
        job=JobId(1, proc),
        body=FinalReport(result=AttemptResult(), outputs=outputs),
    )


def test_reports_are_kept_by_attempt() -> None:
    """A repeat is no news; taken reports are gone."""
    strays = UnmatchedReports()
    first, second = report(0), report(0, sequence=2)
    news = [strays.add("m", each) for each in (first, first, second, report(1))]
    taken = strays.take(Attempt(JobId(1, 0), 1))

    assert [True, False, True, True] == news
    assert [("m", first), ("m", second)] == taken
    assert [Attempt(JobId(1, 1), 1)] == strays.attempts()
    assert [] == strays.take(Attempt(JobId(1, 0), 1))


def test_the_oldest_are_dropped() -> None:
    """Too many, or too large ones, make room: their workers say them again."""
    few, small = UnmatchedReports(reports=3), UnmatchedReports(size=5000)
    for proc in range(5):
        few.add("m", report(proc))
        small.add("m", report(proc, size=1500))

    assert [2, 3, 4] == [attempt.job.proc for attempt in few.attempts()]
    assert [4] == [attempt.job.proc for attempt in small.attempts()][-1:]
    assert 3 > len(small.attempts())


def test_a_report_that_is_too_large_alone_is_not_kept() -> None:
    """It does not drop the account of bytes below zero either."""
    strays = UnmatchedReports(size=5000)
    strays.add("m", report(0, size=10_000))
    strays.add("m", report(1))

    assert [Attempt(JobId(1, 1), 1)] == strays.attempts()
