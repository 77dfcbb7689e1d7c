"""When a machine of a lease takes no more jobs, and when it ends."""

import pytest

from kettle_services.worker.domain.course import (
    Course,
    at_moment,
    begun,
    entered,
    noticed,
    quarantined,
    renewed,
)
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.commands.scaler import Notice, Phase, Renewed

TOLD = Bootstrap(
    url="https://pool.example",
    token="kettle-join-1.a.b.c",
    lease="p-1-1",
    deployment="d",
    life=1000.0,
    orphan_grace=100.0,
    finish=50.0,
    hurry=10.0,
)
BEGAN = 5000.0
"""Seconds since boot."""


def course() -> Course:
    return entered(begun(TOLD, BEGAN), Phase.READY)


def said(**own: object) -> Renewed:
    values: dict[str, object] = {"life": 500.0, "now": 1.0}
    return Renewed(**(values | own))  # type: ignore[arg-type]


def test_its_life_only_becomes_shorter() -> None:
    """Whatever the scaler says, and whatever time of day it is there or here."""
    for clock in (-1e9, 0.0, 1e12):
        shorter = renewed(course(), said(life=200.0, now=clock), BEGAN + 100)
        assert (BEGAN + 300, BEGAN + 100) == (shorter.ends, shorter.renewed)
        assert BEGAN + 300 == renewed(shorter, said(life=10_000.0, now=clock), BEGAN + 110).ends


def test_without_renewals_it_takes_no_more_jobs_and_lets_those_end_that_run() -> None:
    """After the grace, and not before; each renewal begins it again."""
    known = renewed(course(), said(), BEGAN + 80)
    assert BEGAN + 180 == known.due(BEGAN)
    assert not at_moment(known, BEGAN + 179).draining
    orphan = at_moment(known, BEGAN + 180)
    assert (Phase.DRAINING, BEGAN + 230) == (orphan.phase, orphan.last_call)
    assert "not renewed for 100 s" in orphan.why
    assert BEGAN + 240 == orphan.dead


def test_its_life_is_its_end_in_any_case() -> None:
    """Jobs are asked to end some time before, also by who lets them finish."""
    known = renewed(course(), said(life=1000.0), BEGAN + 990)
    assert BEGAN + 990 == known.due(BEGAN)
    ended = at_moment(known, BEGAN + 990)
    assert (True, BEGAN + 990, BEGAN + 1000) == (ended.draining, ended.last_call, ended.dead)
    late = quarantined(known, "jobs fail", BEGAN + 980)
    assert BEGAN + 990 == late.last_call


@pytest.mark.parametrize(
    ("answer", "last_call"),
    [
        (said(order="drain", within=60.0), BEGAN + 160),
        (said(order="drain"), BEGAN + 590),
        (said(order="stop"), BEGAN + 100),
        (said(order="stop", life=0.0), BEGAN + 100),
    ],
)
def test_the_scaler_says_by_when_it_is_empty(answer: Renewed, last_call: float) -> None:
    """Or that it ends now, and even then jobs have their last moment."""
    known = renewed(course(), answer, BEGAN + 100)
    assert (True, Phase.DRAINING, last_call) == (known.draining, known.phase, known.last_call)
    orphan = at_moment(known, known.renewed + TOLD.orphan_grace)
    assert orphan.dead >= orphan.last_call + TOLD.hurry


def test_the_earliest_end_counts_and_the_first_reason() -> None:
    """A notice of ten minutes changes nothing for a machine that ends in one, and one of seconds does."""
    known = renewed(course(), said(order="drain", within=60.0, words="idle"), BEGAN)
    later = noticed(known, Notice(kind="file", within=600.0), BEGAN)
    assert (BEGAN + 60, "idle") == (later.last_call, later.why)
    sooner = noticed(known, Notice(kind="url", within=15.0), BEGAN)
    assert (BEGAN + 5, "idle") == (sooner.last_call, sooner.why)


def test_what_takes_no_more_jobs_is_never_ready_again() -> None:
    """Its services come up while it is told to drain: it stays so, and ends."""
    known = entered(renewed(begun(TOLD, BEGAN), said(order="drain"), BEGAN), Phase.READY)
    assert Phase.DRAINING == known.phase
    assert Phase.ENDED == entered(known, Phase.ENDED).phase
    assert Phase.DRAINING == renewed(known, said(), BEGAN + 1).phase
