import pytest

from kettle.client.explanations.pool_use import figures
from kettle_wire.commands.accounting import UsageRow
from kettle_wire.commands.worker_pools import LeaseShown
from kettle_wire.leases import ErrorClass, LeaseState


def lease(
    name: str, *, accepted: float, ready: float, ended: float, cost: float, price: float = 0.0
) -> LeaseShown:
    return LeaseShown(
        lease=name,
        pool="lab",
        offer="small",
        provider="process",
        state=LeaseState.GONE,
        since=ended,
        requested=accepted,
        accepted=accepted,
        ready=ready,
        ended=ended,
        cpus=2,
        cost=cost,
        price=price,
        currency="EUR",
    )


REFUSED = LeaseShown(
    lease="c", pool="lab", offer="small", provider="process", state=LeaseState.FAILED, since=1.0, requested=0.5,
    ended=1.0, cpus=2, error=ErrorClass.CAPACITY,
)  # fmt: skip


def test_cost_is_shared_by_what_was_used_of_each_machine() -> None:
    """What was idle on a machine is paid by who used it, and a machine that nobody used by nobody."""
    leases = [
        lease("a", accepted=50.0, ready=60.0, ended=160.0, cost=4.0),
        lease("b", accepted=50.0, ready=70.0, ended=100.0, cost=1.0),
        REFUSED,
    ]
    usage = [
        UsageRow(key=["a", "ada"], jobs=3, slot_time=75_000_000),
        UsageRow(key=["a", "eve"], jobs=1, slot_time=25_000_000, lost=5_000_000),
    ]
    found = figures(leases, usage, now=200.0)
    assert (2, 1) == (found.machines, found.failed)
    assert (320.0, 100.0, 220.0, 3.2) == (found.provided, found.used, found.idle, found.ratio)
    assert {"ada": 3.0, "eve": 1.0, "": 1.0} == {each.name: pytest.approx(each.cost) for each in found.shares}
    assert 5.0 == next(each.lost for each in found.shares if each.name == "eve")


def test_a_machine_that_is_there_counts_until_now() -> None:
    """Its end is not known yet."""
    there = lease("a", accepted=100.0, ready=110.0, ended=0.0, cost=0.0)
    assert 200.0 == figures([there], [], now=200.0).provided
    assert 0.0 == figures([there], [], now=200.0).ratio


def test_what_was_used_has_its_price_and_what_was_idle_comes_on_top() -> None:
    """
    Of an hour of two cores for 4 EUR one job used half an hour of one core: a quarter was used for it, and it pays for all.
    """
    there = lease("a", accepted=100.0, ready=101.0, ended=3700.0, cost=4.0, price=4.0)
    found = figures([there], [UsageRow(key=["a", "7.0@ap"], jobs=1, slot_time=1_800_000_000)], now=3700.0)
    [share] = found.shares
    assert ("7.0@ap", 1.0, 4.0) == (share.name, share.claimed, share.cost)


def test_each_day_has_its_cost() -> None:
    """A machine over midnight UTC costs on both days; one that is there costs until now."""
    before = lease(
        "a", accepted=86_400.0 - 1800.0, ready=86_400.0, ended=86_400.0 + 3600.0, cost=3.0, price=2.0
    )
    there = lease("b", accepted=86_400.0, ready=86_401.0, ended=0.0, cost=0.0, price=1.0)
    found = figures([before, there], [], now=86_400.0 + 7200.0)
    assert [("1970-01-01", 1.0), ("1970-01-02", 4.0)] == [(each.day, each.cost) for each in found.days]
