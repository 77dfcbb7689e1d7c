"""Leases: the submit side never believes a claim dead while the worker may still honour it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_services.schedd.domain.claims.claim import ClaimLeases, LeaseTerms
from kettle_services.schedd.domain.claims.renewal_schedule import RenewalSchedule
from kettle_wire.ads.types import Expr, Scalar

LEASE, MARGIN = 10.0, 2.0
times = st.floats(min_value=0.0, max_value=20.0, allow_nan=False)


@given(
    skew=st.floats(min_value=-1e6, max_value=1e6),
    lease=st.sampled_from([1.0, LEASE, 40.0]),
    shortest=st.sampled_from([1.0, LEASE]),
    delays=st.lists(st.tuples(times, times, times, st.booleans()), max_size=8),
)
def test_the_worker_ends_first(
    skew: float, lease: float, shortest: float, delays: list[tuple[float, float, float, bool]]
) -> None:
    """
    However long the lease is and however late renewals and their answers arrive, the worker's deadline comes before the
    moment at which the submit side lets the job run again; the clocks of the two are unrelated.
    """
    leases = ClaimLeases(margin=MARGIN)
    now = 100.0
    workers_deadline = now + skew + lease  # the claim was granted now, on the worker's clock
    leases.trust("m", now)
    leases.record_answer("m", now + skew, now)
    for pause, there, back, lost in delays:
        now += pause
        at = leases.renew("m", now, shortest)
        if at is not None:
            workers_deadline = max(workers_deadline, at + lease)
            assert workers_deadline - skew <= now + lease + 1e-6
        if not lost:
            leases.record_answer("m", now + there + skew, now + there + back)
        now += there + back
        if leases.is_over("m", lease, now):
            assert workers_deadline - skew < now


def test_a_clock_that_is_not_known_renews_nothing() -> None:
    """
    After a restart the first exchange only asks for the worker's clock, and nothing is given up for a whole lease.
    """
    leases = ClaimLeases(margin=MARGIN)
    leases.trust("m", 100.0)
    assert None is leases.renew("m", 101.0, LEASE)
    assert not leases.is_over("m", LEASE, 101.0 + LEASE)
    assert leases.is_over("m", LEASE, 101.1 + LEASE + MARGIN)


def test_a_worker_that_never_answers_is_given_up() -> None:
    """Renewals without an answer do not delay the end."""
    leases = ClaimLeases(margin=MARGIN)
    leases.trust("m", 0.0)
    leases.record_answer("m", 500.0, 0.0)
    asked = [leases.renew("m", float(second), LEASE) for second in range(1, 40)]

    assert [None] * 34 == asked[5:]
    assert not leases.is_over("m", LEASE, 1.5 * LEASE + MARGIN)
    assert leases.is_over("m", LEASE, 1.5 * LEASE + MARGIN + 0.1)


def test_what_reached_nobody_puts_nothing_off() -> None:
    """A renewal for which the bus had no receiver extends no lease."""
    leases = ClaimLeases(margin=MARGIN)
    leases.trust("m", 0.0)
    leases.record_answer("m", 500.0, 0.0)
    leases.renew("m", 4.0, LEASE)
    leases.not_delivered("m")

    assert leases.is_over("m", LEASE, LEASE + MARGIN + 0.1)


def test_a_startd_without_claims_is_forgotten() -> None:
    """
    However properly it has given them back, but not before a claim from its last renewal would be over; and those with claims
    are not, however long ago that was.
    """
    leases = ClaimLeases(margin=MARGIN)
    for startd in ("gone", "held"):
        leases.trust(startd, 100.0)
        leases.record_answer(startd, 500.0, 100.0)
    leases.trust("lately", 105.0)
    leases.record_answer("late", 500.0, 112.0)  # an answer to a question from before it was forgotten

    assert ["late"] == leases.prune({"held"}, LEASE, 100.0 + LEASE + MARGIN)
    assert ["gone"] == leases.prune({"held"}, LEASE, 100.1 + LEASE + MARGIN)
    assert [] == leases.prune({"held"}, LEASE, 100.1 + LEASE + MARGIN)
    assert leases.is_over("held", LEASE, 100.1 + LEASE + MARGIN)
    assert ["lately"] == leases.prune({"held"}, LEASE, 1000.0)


@pytest.mark.parametrize(
    ("own", "lease"),
    [
        (100, 100.0),
        (30, 60.0),
        (10**9, 7200.0),
        (2.5e2, 250.0),
        *((each, 1800.0) for each in (0, -5, True, "100", Expr("100"), None)),
    ],
)
def test_a_job_may_have_a_lease_of_its_own(own: Scalar | None, lease: float) -> None:
    """Within the bounds of the access point; what is no number of seconds is no wish."""
    terms = LeaseTerms(lease=1800.0, shortest=60.0, longest=7200.0)
    assert lease == terms.of({} if own is None else {"JobLeaseDuration": own})


def schedule() -> RenewalSchedule:
    return RenewalSchedule(interval=300.0, lease=1800.0, reconnect=20.0)


def answered(schedule: RenewalSchedule, shortest: dict[str, float], now: float) -> set[str]:
    """Who is asked now, and answers at once."""
    asked = schedule.due(shortest, now)
    assert not any(schedule.over(startd, now, answered=True) for startd in asked)
    return asked


def test_short_leases_are_renewed_more_often() -> None:
    """In proportion, and nobody else is for it; who has them no more is asked with the others again."""
    paces = schedule()
    both, usual = {"quick": 60.0, "slow": 9000.0}, {"quick": 1800.0, "slow": 1800.0}

    assert {"quick", "slow"} == answered(paces, both, 0.0)
    assert 10.0 == paces.pause(0.0)
    assert set() == answered(paces, both, 5.0)
    assert {"quick"} == answered(paces, both, 10.0)
    assert {"new"} == answered(paces, {**both, "new": 600.0}, 12.0)
    assert set() == answered(paces, usual, 290.0)
    assert 10.0 == paces.pause(290.0)
    assert {"quick", "slow"} == answered(paces, usual, 300.0)


def test_who_has_granted_claims_is_asked_at_once() -> None:
    """Once, and the others in their turn."""
    paces = schedule()
    leases = {"a": 1800.0, "b": 1800.0}
    assert {"a", "b"} == answered(paces, leases, 1000.0)
    paces.soon("b")
    paces.soon("gone")
    assert {"b"} == answered(paces, leases, 1001.0)
    assert set() == answered(paces, leases, 1002.0)


def test_who_has_not_answered_yet_is_asked_nothing_more() -> None:
    """It is asked once more then, if it has granted claims meanwhile; nobody waits for that."""
    paces = schedule()
    leases = {"slow": 1800.0, "b": 1800.0}
    assert {"slow", "b"} == paces.due(leases, 1000.0)
    assert not paces.over("b", 1000.0, answered=True)
    paces.soon("slow")
    paces.soon("b")
    assert {"b"} == answered(paces, leases, 1001.0)
    assert set() == paces.due(leases, 1002.0)
    assert paces.over("slow", 1003.0, answered=True)
    assert {"slow"} == answered(paces, leases, 1003.0)
    assert set() == answered(paces, leases, 1004.0)


def test_who_does_not_answer_is_asked_again_sooner_than_the_others() -> None:
    """And no sooner for the sake of others; the next look is early enough for one that may not answer."""
    paces = schedule()
    leases = {"silent": 1800.0, "b": 1800.0}
    assert {"silent", "b"} == paces.due(leases, 1000.0)
    assert not paces.over("b", 1000.0, answered=True)
    assert 20.0 == paces.pause(1000.0)
    assert not paces.over("silent", 1030.0, answered=False)
    assert 20.0 == paces.pause(1030.0)
    assert set() == answered(paces, leases, 1040.0)
    assert {"silent"} == answered(paces, leases, 1050.0)
    assert 250.0 == paces.pause(1050.0)
