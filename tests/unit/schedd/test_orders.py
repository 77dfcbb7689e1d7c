"""What an owner may order of a job, and what counts when orders follow each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_services.schedd.domain.jobs.commands import Assign, End, Hold
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.job import Job, evolve
from kettle_services.schedd.domain.jobs.orders import NONE, Order, ordered
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.codes import VacateCode
from kettle_wire.events import JobOrdered
from kettle_wire.events.job import OrderKind

KINDS: tuple[OrderKind, ...] = ("vacate", "vacate_fast", "suspend", "continue")


def after(job: Job, *commands: Order | Assign | End | Hold) -> Job:
    """The job when these were decided one after the other."""
    for command in commands:
        for event in decide(job, command):
            job = evolve(job, event)
    return job


def order(kind: OrderKind, reason: str = "r") -> Order:
    """An order of somebody."""
    return Order(kind, reason, "ada")


RUNNING = after(Job(), Assign("c1", "slot1", "node"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("job", [Job(), after(RUNNING, Hold("r", "ada")), Job(status="completed")])
def test_only_what_runs_takes_orders(job: Job, kind: OrderKind) -> None:
    """An idle, a held and a completed job have no machine that could hear."""
    with pytest.raises(Refused):
        decide(job, order(kind))


def test_the_same_order_is_one_order() -> None:
    """Fast is more than vacate, and not the other way round."""
    asked = after(RUNNING, order("vacate"))

    assert [] == decide(asked, order("vacate"))
    [hurried] = decide(asked, order("vacate_fast"))
    assert [] == decide(evolve(asked, hurried), order("vacate_fast"))
    assert [] == decide(evolve(asked, hurried), order("vacate"))


def test_the_first_reason_counts_and_the_last_speed() -> None:
    """What the machine was told first is what its report will say."""
    job = after(RUNNING, order("vacate", "first"), order("vacate_fast", "second"))

    assert ("first", True, "vacating") == (job.attempt.orders.reason, job.attempt.orders.fast, job.shown)


def test_what_leaves_does_not_stand_still() -> None:
    """And who was not suspended by somebody cannot be continued, whatever its machine does."""
    with pytest.raises(Refused, match="leaving"):
        decide(after(RUNNING, order("vacate")), order("suspend"))
    with pytest.raises(Refused, match="nobody"):
        decide(after(RUNNING, order("suspend"), order("continue")), order("continue"))


@pytest.mark.parametrize("kind", ["vacate", "suspend"])
def test_an_order_ends_with_its_attempt(kind: OrderKind) -> None:
    """The next run knows nothing of it."""
    ended = after(
        RUNNING,
        order(kind),
        End(
            attempt=1,
            claim="c1",
            result=AttemptResult(ending=Ending(code=VacateCode.UserVacateJob, reason="r")),
        ),
    )

    assert ("idle", NONE) == (ended.status, ended.attempt.orders)
    assert NONE == after(ended, Assign("c2", "slot1", "node")).attempt.orders


@given(st.lists(st.sampled_from(KINDS)))
def test_each_order_has_a_later_number(kinds: list[OrderKind]) -> None:
    """Whatever was recorded folds, and the last one to suspend or continue counts."""
    orders = NONE
    for number, kind in enumerate(kinds, start=1):
        orders = ordered(orders, JobOrdered(attempt=1, order=kind))
        assert number == orders.count
    stills = [kind for kind in kinds if kind in {"suspend", "continue"}]

    assert orders.still == (stills[-1:] == ["suspend"])
    assert orders.vacating == bool({"vacate", "vacate_fast"} & set(kinds))
