"""Leases: the submit side never believes a claim dead while the worker may still honour it."""

from hypothesis import given
from hypothesis import strategies as st

from kettle.schedd.domain.claim import Leases

LEASE, MARGIN = 10.0, 2.0
times = st.floats(min_value=0.0, max_value=20.0, allow_nan=False)


@given(
    skew=st.floats(min_value=-1e6, max_value=1e6), delays=st.lists(st.tuples(times, times, times), max_size=8)
)
def test_the_worker_ends_first(skew: float, delays: list[tuple[float, float, float]]) -> None:
    """
    However late renewals and their answers arrive, the worker's deadline comes before the moment at which the submit side
    lets the job run again; the clocks of the two are unrelated.
    """
    leases = Leases(lease=LEASE, margin=MARGIN)
    now = 100.0
    workers_deadline = now + skew + LEASE  # the claim was granted now, on the worker's clock
    leases.trust("m", now)
    leases.hear("m", now + skew, now)
    for pause, there, back in delays:
        now += pause
        deadline = leases.renew("m", now)
        assert deadline is not None
        workers_deadline = max(workers_deadline, deadline)
        arrived = now + there
        leases.hear("m", arrived + skew, arrived + back)
        sent, now = now, arrived + back
        assert workers_deadline - skew <= sent + LEASE + 1e-6
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
