"""Slots that are kept for a job of several nodes."""

from typing import Any

import pytest

from kettle_services.negotiator.domain.accountant import Standing
from kettle_services.negotiator.domain.cycle import Outcome, negotiate
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.principals import Principal
from kettle_services.negotiator.domain.rejections import Reasons
from kettle_services.negotiator.domain.reservations import Reservations, ReservationTerms
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import ResourceRequest, SubmitterAd

from .test_cycle import job, pool, slot, submitter

TERMS = ReservationTerms(patience=10.0, longest=100.0)
SINGLE = submitter("eve", (2, 50, job()))


def gang(nodes: int, name: str = "ada", autocluster: int = 1) -> SubmitterAd:
    request = ResourceRequest(autocluster=autocluster, count=1, ad=job(), nodes=nodes)
    return SubmitterAd(name=name, schedd="ap", idle=1, running=0, held=0, requests=[request])


def busy(number: int, free: int, **more: Any) -> Ad:
    """A slot of eight cores, of which so many are free."""
    return slot(f"slot{number}@m", free, 1000, **more)


def cycle(one: Pool, reservations: Reservations, now: float) -> Outcome:
    return negotiate(one, Reasons(), now=now, trust=0.0, reservations=reservations)


def given_to(outcome: Outcome) -> dict[str, int]:
    given: dict[str, int] = {}
    for match in outcome.matches:
        given[match.submitter] = given.get(match.submitter, 0) + match.count
    return given


def test_slots_are_kept_after_a_while_and_for_a_while() -> None:
    """
    Given a job of three nodes and one free slot, when it has gone without for its patience, then others do not get that
    slot any more; later they do, for as long, and then it is kept again. The end of each time has a cycle.
    """
    reservations, got, again = Reservations(TERMS), dict[float, int](), dict[float, float | None]()
    for now in (0.0, 9.0, 10.0, 109.0, 110.0, 209.0, 210.0):
        outcome = cycle(pool([busy(1, 1)], gang(3), SINGLE), reservations, now)
        got[now], again[now] = given_to(outcome).get("eve", 0), outcome.again
    assert {0.0: 1, 9.0: 1, 10.0: 0, 109.0: 0, 110.0: 1, 209.0: 1, 210.0: 0} == got
    assert (110.0, 110.0) == (again[10.0], again[109.0])


def test_only_the_oldest_keeps_slots_and_what_it_gets_ends_its_wait() -> None:
    """The second one keeps slots when the first has got its own."""
    reservations = Reservations(TERMS)
    cycle(pool([busy(1, 1)], gang(3)), reservations, 0.0)
    cycle(pool([busy(1, 1)], gang(3), gang(2, "bob")), reservations, 1.0)
    outcome = cycle(pool([busy(1, 1)], gang(3), gang(2, "bob"), SINGLE), reservations, 20.0)
    kept = {each.submitter: each.reason for each in outcome.rejections if "kept for it" in each.reason}
    assert ["ada"] == list(kept)
    assert {"ada": 3} == given_to(
        cycle(pool([busy(1, 3)], gang(3), gang(2, "bob"), SINGLE), reservations, 21.0)
    )
    outcome = cycle(pool([busy(1, 1)], gang(2, "bob"), SINGLE), reservations, 22.0)
    assert {} == given_to(outcome)


@pytest.mark.parametrize("nodes", [9, 1000])
def test_a_job_that_the_whole_pool_could_not_run_keeps_nothing(nodes: int) -> None:
    """Eight cores, and more nodes than that."""
    reservations = Reservations(TERMS)
    for now in (0.0, 20.0):
        outcome = cycle(pool([busy(1, 1)], gang(nodes), SINGLE), reservations, now)
        assert {"eve": 1} == given_to(outcome)


def test_who_may_not_have_slots_has_none_kept() -> None:
    """What its ceiling keeps from a job is not for want of slots."""
    reservations = Reservations(TERMS)
    standings = {"ada": Standing(principal=Principal(ceiling=1.0), factor=1.0)}
    for now in (0.0, 20.0):
        one = pool([busy(1, 4)], gang(3), SINGLE)
        outcome = negotiate(
            one, Reasons(), now=now, trust=0.0, reservations=reservations, standings=standings
        )
        assert {"eve": 4} == given_to(outcome)


def test_everybody_is_told_what_is_kept() -> None:
    """The job how many of its slots there are, and the others why they do not get them."""
    reservations, reasons = Reservations(TERMS), list[dict[str, str]]()
    for now in (0.0, 20.0):
        outcome = cycle(pool([busy(1, 1), busy(2, 1)], gang(3), SINGLE), reservations, now)
        reasons.append({each.submitter: each.reason for each in outcome.rejections})
    assert reasons[0]["ada"].endswith("it needs 3 slots at the same time")
    assert reasons[1]["ada"].endswith("it needs 3 slots at the same time, and 2 of them are kept for it")
    assert reasons[1]["eve"].endswith("kept for a job of several nodes that has waited longer")
    assert "kept" not in reasons[0]["eve"]
