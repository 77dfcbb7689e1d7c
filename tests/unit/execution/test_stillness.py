"""A job that is suspended."""

from typing import cast

from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.execution.suspension import JobSuspension
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import Body, Report


class FakeFamily:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def suspend(self) -> int:
        self.told.append("suspend")
        return 3

    def resume(self) -> None:
        self.told.append("resume")


def report(body: Body) -> Report:
    return Report(claim="c", attempt=1, sequence=1, job=JobId(1, 0), body=body)


def said(suspension: JobSuspension) -> str:
    return type(suspension.said.body).__name__ if suspension.said is not None else ""


def test_nothing_stands_still_before_it_runs() -> None:
    """
    The preparation of a job continues; the job is suspended from its first moment, unless it was continued meanwhile.
    """
    for continued, told in ((False, ["suspend"]), (True, [])):
        tree, suspension = FakeFamily(), JobSuspension(report)
        suspension.suspend(cast("ProcessTree", tree))
        if continued:
            suspension.resume(cast("ProcessTree", tree))
        assert ([], "") == (tree.told, said(suspension))
        suspension.begin(cast("ProcessTree", tree))
        assert told == tree.told


def test_what_is_said_twice_happens_once() -> None:
    """And the last word is kept, to be repeated."""
    fake, suspension = FakeFamily(), JobSuspension(report)
    tree = cast("ProcessTree", fake)
    suspension.begin(tree)
    for _ in range(2):
        suspension.suspend(tree)
    assert (["suspend"], "Suspended") == (fake.told, said(suspension))
    for _ in range(2):
        suspension.resume(tree)
    assert (["suspend", "resume"], "Continued") == (fake.told, said(suspension))


def test_a_job_that_is_to_end_goes_on_without_a_word() -> None:
    """A stopped process does not handle signals."""
    fake, suspension = FakeFamily(), JobSuspension(report)
    tree = cast("ProcessTree", fake)
    suspension.begin(tree)
    suspension.suspend(tree)
    for _ in range(2):
        suspension.lift(tree)
    assert (["suspend", "resume"], "Suspended") == (fake.told, said(suspension))
