"""Leases: the submit side never believes a claim dead while the worker may still honour it."""

from hypothesis import given
from hypothesis import strategies as st

from kettle.schedd.domain.claim import Leases

LEASE, MARGIN = 10.0, 2.0
times = st.floats(min_value=0.0, max_value=20.0, allow_nan=False)


@given(
    skew=st.floats(min_value=-1e6, max_value=1e6),
    delays=st.lists(st.tuples(times, times, times, st.booleans()), max_size=8),
)
def test_the_worker_ends_first(skew: float, delays: list[tuple[float, float, float, bool]]) -> None:
    """
    However late renewals and their answers arrive, the worker's deadline comes before the moment at which the submit side
    lets the job run again; the clocks of the two are unrelated.
    """
    leases = Leases(lease=LEASE, margin=MARGIN)
    now = 100.0
    workers_deadline = now + skew + LEASE  # the claim was granted now, on the worker's clock
    leases.trust("m", now)
    leases.hear("m", now + skew, now)
    for pause, there, back, lost in delays:
        now += pause
        deadline = leases.renew("m", now)
        if deadline is not None:
            workers_deadline = max(workers_deadline, deadline)
            assert workers_deadline - skew <= now + LEASE + 1e-6
        if not lost:
            leases.hear("m", now + there + skew, now + there + back)
        now += there + back
        if leases.expired(["m"], now):
            assert workers_deadline - skew < now


def test_a_clock_that_is_not_known_renews_nothing() -> None:
    """
    After a restart the first exchange only asks for the worker's clock, and nothing is given up for a whole lease.
    """
    leases = Leases(lease=LEASE, margin=MARGIN)
    leases.trust("m", 100.0)
    assert None is leases.renew("m", 101.0)
    assert [] == leases.expired(["m"], 101.0 + LEASE)
    assert ["m"] == leases.expired(["m"], 101.1 + LEASE + MARGIN)


def test_a_claim_is_lost_when_its_startd_says_so_twice() -> None:
    """
    The first time the worker's last report may still be under way.
    """
    leases = Leases(lease=LEASE, margin=MARGIN)
    assert [] == leases.suspect(["a", "b"], ["a"])
    assert ["a"] == leases.suspect(["a", "b"], ["a", "b"])
    assert [] == leases.suspect(["b"], [])
    assert [] == leases.suspect(["b"], ["b"])


def test_a_worker_that_never_answers_is_given_up() -> None:
    """
    Renewals that nobody answers do not put off the end for ever.
    """
    leases = Leases(lease=LEASE, margin=MARGIN)
    leases.trust("m", 0.0)
    leases.hear("m", 500.0, 0.0)
    asked = [leases.renew("m", float(second)) for second in range(1, 40)]

    assert [None] * 34 == asked[5:]
    assert [] == leases.expired(["m"], 1.5 * LEASE + MARGIN)
    assert ["m"] == leases.expired(["m"], 1.5 * LEASE + MARGIN + 0.1)


def test_what_reached_nobody_puts_nothing_off() -> None:
    """
    A renewal for which the bus had no receiver extends no lease.
    """
    leases = Leases(lease=LEASE, margin=MARGIN)
    leases.trust("m", 0.0)
    leases.hear("m", 500.0, 0.0)
    leases.renew("m", 4.0)
    leases.not_delivered("m")

    assert ["m"] == leases.expired(["m"], LEASE + MARGIN + 0.1)
