"""
A job that is to stand still.
"""

from typing import cast

from kettle_services.starter.execution.process_tree import Family
from kettle_services.starter.execution.suspension import Stillness
from kettle_wire.jobs import JobId
from kettle_wire.work import Body, Report


class FakeFamily:
    """
    Counts what it is told.
    """

    def __init__(self) -> None:
        self.told: list[str] = []

    def suspend(self) -> int:
        self.told.append("suspend")
        return 3

    def resume(self) -> None:
        self.told.append("resume")


def report(body: Body) -> Report:
    return Report(claim="c", attempt=1, sequence=1, job=JobId(1, 0), body=body)


def said(stillness: Stillness) -> str:
    return type(stillness.said.body).__name__ if stillness.said is not None else ""


def test_nothing_stands_still_before_it_runs() -> None:
    """
    What prepares a job goes on; the job stands still from its first moment, unless it was told to go on meanwhile.
    """
    for continued, told in ((False, ["suspend"]), (True, [])):
        family, stillness = FakeFamily(), Stillness(report)
        stillness.suspend(cast("Family", family))
        if continued:
            stillness.resume(cast("Family", family))
        assert ([], "") == (family.told, said(stillness))
        stillness.begin(cast("Family", family))
        assert told == family.told


def test_what_is_said_twice_happens_once() -> None:
    """
    And the last word is kept, to be repeated.
    """
    fake, stillness = FakeFamily(), Stillness(report)
    family = cast("Family", fake)
    stillness.begin(family)
    for _ in range(2):
        stillness.suspend(family)
    assert (["suspend"], "Suspended") == (fake.told, said(stillness))
    for _ in range(2):
        stillness.resume(family)
    assert (["suspend", "resume"], "Continued") == (fake.told, said(stillness))


def test_a_job_that_is_to_end_goes_on_without_a_word() -> None:
    """
    A signal reaches nobody who stands still.
    """
    fake, stillness = FakeFamily(), Stillness(report)
    family = cast("Family", fake)
    stillness.begin(family)
    stillness.suspend(family)
    for _ in range(2):
        stillness.lift(family)
    assert (["suspend", "resume"], "Suspended") == (fake.told, said(stillness))
