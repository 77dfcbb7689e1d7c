"""Sharing the free slots out among submitters."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import ClassAd, matches
from kettle.classad.columnar import Table
from kettle.matchmaking import Allocation, Amounts, Claimant, Demand, Offer, allocate
from kettle.matchmaking.shares import Purse
from kettle_wire.ads import Ad, Expr, Scalar

from .slowly import (
    CLAIMANTS,
    DEMANDS,
    POOLS,
    QUANTA,
    RESOURCES,
    Sharing,
    Slot,
    asked_of,
    demand_of,
    rounded,
)

Integers: TypeAlias = npt.NDArray[np.int64]


def offer(*ads: Ad) -> Offer:
    table = Table()
    table.put_many((str(number), ad) for number, ad in enumerate(ads))
    return Offer(table, np.arange(len(ads)))


def slot(cpus: int = 8, **more: Scalar) -> Ad:
    return {
        "PartitionableSlot": True,
        "Cpus": cpus,
        "Memory": 1_000_000,
        "Disk": 1_000_000_000,
        "Requirements": True,
        **more,
    }


def demand(number: int, submitter: str = "ada", count: int = 100, **more: Scalar) -> Demand:
    return demand_of(number, submitter, count, {"Requirements": True, "RequestCpus": 1, **more})


def given_to(allocation: Allocation) -> dict[int, int]:
    """Autocluster -> how many of its jobs were matched."""
    given: Counter[int] = Counter()
    for grant in allocation.grants:
        given[grant.demand.autocluster] += grant.count
    return dict(given)


def placed(allocation: Allocation) -> list[tuple[int, int, int]]:
    return [(grant.demand.autocluster, grant.row, grant.count) for grant in allocation.grants]


def slots_left(offered: Offer, ads: list[Ad]) -> list[Slot]:
    """The slots with what is left of them."""
    slots = [Slot(row, ad) for row, ad in enumerate(ads)]
    for one in slots:
        one.free = {name: int(amounts[one.row]) for name, amounts in offered.free.items()}
    return slots


# -- what holds for any pool ---------------------------------------------------------------------------------------------


@given(POOLS, DEMANDS, CLAIMANTS)
def test_it_is_shared_as_one_job_after_the_other_would_be(
    ads: list[Ad], demands: list[Demand], claimants: list[Claimant]
) -> None:
    """Every slot gets from each autocluster what the obvious way gives it, one slot and one job at a time."""
    by_the_book = Sharing([Slot(row, ad) for row, ad in enumerate(ads)], demands, claimants)
    by_the_book.run()
    allocation = allocate(offer(*ads), demands, claimants=claimants)
    given: Counter[tuple[int, int]] = Counter()
    for number, row, count in placed(allocation):
        given[number, row] += count
    assert by_the_book.given == given


@given(POOLS, DEMANDS)
def test_no_slot_gives_more_than_it_has(ads: list[Ad], demands: list[Demand]) -> None:
    """What was asked of a slot fits into it, and rounded up it exceeds it by less than the last rounding."""
    offered = offer(*ads)
    allocation = allocate(offered, demands)
    for row, ad in enumerate(ads):
        before, grants = Slot(row, ad), [grant for grant in allocation.grants if grant.row == row]
        if grants and not before.partitionable:
            assert [1] == [grant.count for grant in grants]
            continue
        for name in RESOURCES:
            asked = sum(grant.amounts.asked[name] * grant.count for grant in grants)
            carved = sum(rounded(name, grant.amounts.asked[name]) * grant.count for grant in grants)
            assert asked <= before.free[name]
            assert carved < before.free[name] + QUANTA[name]
            assert max(0, before.free[name] - carved) == offered.free[name][row]


@given(POOLS, DEMANDS)
def test_every_job_is_given_or_unmet(ads: list[Ad], demands: list[Demand]) -> None:
    """The counts of a demand add up, and jobs that take the same of a slot are one grant."""
    allocation = allocate(offer(*ads), demands)
    total = Counter(given_to(allocation))
    for unmet in allocation.unmet:
        assert unmet.count > 0
        total[unmet.demand.autocluster] += unmet.count
    assert {one.autocluster: one.count for one in demands} == dict(total)
    alike = [(one.demand.autocluster, one.row, *one.amounts.asked.values()) for one in allocation.grants]
    assert len(alike) == len(set(alike))
    assert all(grant.count > 0 for grant in allocation.grants)


@given(POOLS, DEMANDS)
def test_what_is_given_matches_when_it_is_given(ads: list[Ad], demands: list[Demand]) -> None:
    """At that moment both sides accept each other, the slot being described with what is left of it."""

    class Watched(Offer):
        """Keeps what was left of each slot each time before something was taken."""

        moments: list[dict[str, Integers]] = []

        def take(self, row: int, amounts: Amounts, count: int) -> None:
            self._keep()
            super().take(row, amounts, count)

        def take_each(self, rows: Integers, amounts: Amounts, counts: Integers) -> None:
            self._keep()
            super().take_each(rows, amounts, counts)

        def _keep(self) -> None:
            self.moments.append({name: amounts.copy() for name, amounts in self.free.items()})

    Watched.moments = []
    table = offer(*ads).table
    allocation = allocate(Watched(table, np.arange(len(ads))), demands)
    for grant in allocation.grants:
        assert any(
            matches(grant.demand.job, ad) and asked_of(grant.demand.job, ad) == grant.amounts.asked
            for ad in _moments_of(grant.row, ads[grant.row], Watched.moments)
        )


def _moments_of(row: int, ad: Ad, moments: list[dict[str, Integers]]) -> Iterator[ClassAd]:
    one = Slot(row, ad)
    for moment in moments:
        one.free = {name: int(amounts[row]) for name, amounts in moment.items()}
        yield one.now


@given(
    POOLS,
    st.lists(
        st.tuples(
            st.sampled_from(["ada", "bob"]), st.integers(1, 30), st.sampled_from([1, 2, 3]), st.booleans()
        ),
        max_size=4,
    ),
)
def test_nothing_that_is_free_is_left_to_a_job_that_waits(
    ads: list[Ad], wishes: list[tuple[str, int, int, bool]]
) -> None:
    """
    When all is done, no slot with free cores has room for a job that is left and suits it, if what is left of a slot
    cannot make it more suitable.
    """
    demands = [
        demand(
            number,
            submitter,
            count,
            RequestCpus=cpus,
            Requirements=Expr('TARGET.Arch == "x"') if picky else True,
        )
        for number, (submitter, count, cpus, picky) in enumerate(wishes)
    ]
    offered = offer(*ads)
    for unmet in allocate(offered, demands).unmet:
        job = unmet.demand.job
        suitable = [
            one.row
            for one in slots_left(offered, ads)
            if one.free["Cpus"] and one.room(asked_of(job, one.now)) and matches(job, one.now)
        ]
        assert [] == suitable


@given(
    st.integers(1, 40),
    st.integers(2, 9),
    st.integers(0, 12),
    st.sampled_from([1.0, 500.0, 9000.0]),
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=4),
)
def test_a_ceiling_keeps_no_slot_from_the_others(
    cores: int, large: int, ceiling: int, priority: float, per_core: list[float]
) -> None:
    """
    A submitter that may not have what it asks for, because of its ceiling, leaves its whole share to those who can use
    it.
    """
    ads = [slot(cores, SlotWeight=weight * cores) for weight in per_core]
    claimants = [Claimant(name="ada", priority=priority, ceiling=float(ceiling)), Claimant(name="bob")]
    demands = [demand(1, "ada", 9, RequestCpus=large), demand(2, "bob", 10_000)]
    offered = offer(*ads)
    allocation = allocate(offered, demands, claimants=claimants)

    assert 0.0 == offered.weight
    assert ceiling >= allocation.taken.get("ada", 0.0)


# -- shares ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("submitters", [1, 2, 3, 4, 6, 8])
def test_everybody_gets_an_equal_share(submitters: int) -> None:
    """
    Of 24 cores, each submitter that asks for more gets as many as every other one, no matter where the cores are.
    """
    for pool in ([24], [8, 8, 8], [1] * 24, [20, 3, 1]):
        offered = offer(*map(slot, pool))
        demands = [demand(number, f"user {number}") for number in range(submitters)]
        assert dict.fromkeys(range(submitters), 24 // submitters) == given_to(allocate(offered, demands))


def test_shares_that_are_not_used_flow_to_the_others() -> None:
    """
    Spin 1: 20/4 = 5 each, of which ada takes 1 and bob 2.  Spin 2: eve and zoe may have 20/2 = 10, so eve, who comes
    first, gets 5 more, and zoe the 2 that are left.
    """
    demands = [demand(1, "ada", 1), demand(2, "bob", 2), demand(3, "eve", 100), demand(4, "zoe", 100)]
    assert {1: 1, 2: 2, 3: 10, 4: 7} == given_to(allocate(offer(slot(20)), demands))


def test_shares_are_of_cores_not_of_jobs() -> None:
    """Who asks for four cores a job gets a quarter as many jobs."""
    demands = [demand(1, "ada", RequestCpus=4), demand(2, "bob")]
    assert {1: 2, 2: 8} == given_to(allocate(offer(slot(16)), demands))


def test_only_the_first_job_may_exceed_the_share() -> None:
    """
    A share of 12/2 = 6 cores is worth one job of four, and the other two cores go to bob, who can use them; one of 3.5 is
    worth one too, as the first that is taken may be too large.
    """
    demands = [demand(1, "ada", RequestCpus=4), demand(2, "bob")]
    assert {1: 1, 2: 8} == given_to(allocate(offer(slot(12)), demands))
    assert {1: 1, 2: 3} == given_to(
        allocate(offer(slot(7)), [demand(1, "ada", RequestCpus=4), demand(2, "bob")])
    )


def test_who_asks_for_more_than_its_ceiling_leaves_its_share() -> None:
    """
    Of 100 cores bob gets all: the other's ceiling of 5 is less than one of its jobs of 8 cores; and that is the reason.
    """
    claimants = [Claimant(name="ada", ceiling=5.0), Claimant(name="bob")]
    demands = [demand(1, "ada", 10, RequestCpus=8), demand(2, "bob", 1000)]
    allocation = allocate(offer(slot(100)), demands, claimants=claimants)

    assert {2: 100} == given_to(allocation)
    assert {1: "ceiling", 2: ""} == {one.demand.autocluster: one.limit for one in allocation.unmet}


def test_shares_of_slots_with_unlike_weights_are_worked_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One slot of another weight among many does not make each of them looked at by itself, for each submitter.
    """
    asked = Counter[str]()
    jobs, room = Purse.jobs, Offer.room

    def counted(purse: Purse, cost: float, most: int) -> int:
        asked["jobs"] += 1
        return jobs(purse, cost, most)

    def looked(offered: Offer, rows: Integers, *more: Any) -> Integers:
        asked["rows"] += len(rows)
        return room(offered, rows, *more)

    monkeypatch.setattr(Purse, "jobs", counted)
    monkeypatch.setattr(Offer, "room", looked)
    ads = [slot(8, SlotWeight=4.0), *(slot(8) for _ in range(4_999))]
    allocation = allocate(offer(*ads), [demand(number, str(number), 10_000) for number in range(10)])

    assert 8 * 5_000 == sum(given_to(allocation).values())
    assert 3_999 <= min(given_to(allocation).values())
    assert asked["jobs"] < 200, asked
    assert asked["rows"] < 5_000 * 10 * 3, asked


def test_a_slot_that_is_not_partitionable_is_given_whole() -> None:
    """One job takes it, whatever it asks, and it counts in the share as the whole of it."""
    ads = [slot(8, PartitionableSlot=False), slot(8, PartitionableSlot=False)]
    offered = offer(*ads)
    assert [(1, 0, 1), (1, 1, 1)] == placed(allocate(offered, [demand(1)]))
    assert 0.0 == offered.weight


def test_a_submitter_is_served_in_its_own_order_of_priority() -> None:
    """The first demand is served as far as possible before the second, however small that is."""
    first = [demand(1, count=3, RequestCpus=2), demand(2, count=9), demand(3, count=9)]
    assert {1: 3, 2: 2} == given_to(allocate(offer(slot(8)), first))
    assert {3: 8} == given_to(allocate(offer(slot(8)), first[::-1]))


def test_what_cannot_be_served_does_not_stand_in_the_way() -> None:
    """A demand that nothing suits is passed over, and its submitter keeps its share for the next one."""
    impossible = demand(1, "ada", Requirements=Expr("TARGET.Nosuch > 1"))
    demands = [impossible, demand(2, "ada"), demand(3, "bob")]
    allocation = allocate(offer(slot(8)), demands)
    assert {2: 4, 3: 4} == given_to(allocation)
    assert {1: 100, 2: 96, 3: 96} == {one.demand.autocluster: one.count for one in allocation.unmet}


def test_jobs_go_to_the_slots_that_they_rank_highest() -> None:
    """Those are filled first, equal ones in the order of their rows."""
    ads = [slot(2, Speed=speed) for speed in (1, 3, 2, 3)]
    ranked = demand(1, count=7, Rank=Expr("TARGET.Speed"))
    assert [(1, 1, 2), (1, 3, 2), (1, 2, 2), (1, 0, 1)] == placed(allocate(offer(*ads), [ranked]))


def test_each_spin_ranks_what_is_left_then() -> None:
    """Who prefers the slot with most memory is sent elsewhere once another one has more."""
    ads = [slot(4, Memory=1024), slot(4, Memory=900)]
    wants = [demand(n, f"user {n}", 1, RequestMemory=256, Rank=Expr("TARGET.Memory")) for n in range(3)]
    assert [(0, 0, 1), (1, 1, 1), (2, 0, 1)] == placed(allocate(offer(*ads), wants))


def test_a_request_may_be_for_all_that_is_left() -> None:
    """Amounts that depend on the slot are taken as they are there."""
    greedy = demand(1, count=5, RequestCpus=Expr("TARGET.Cpus"))
    assert [(1, 0, 1), (1, 1, 1)] == placed(allocate(offer(slot(3), slot(8)), [greedy]))


def test_what_is_asked_of_a_slot_may_differ_from_spin_to_spin() -> None:
    """
    Half of what is left is less the second time; each grant says what it takes, so that it can be booked.
    """
    offered = offer(slot(6, Memory=1024))
    halves = demand(1, "ada", 2, RequestMemory=Expr("TARGET.Memory / 2"), RequestCpus=2)
    others = [demand(number, f"user {number}", 1) for number in (2, 3)]
    grants = [grant for grant in allocate(offered, [halves, *others]).grants if grant.demand is halves]
    assert [(1, 512.0), (1, 128.0)] == [(grant.count, grant.amounts.asked["Memory"]) for grant in grants]
    assert 128 == offered.free["Memory"][0]


def test_varying_requests_meet_slots_of_both_kinds() -> None:
    """
    A static slot is given once, a partitionable one as often as its share fits; an undefined amount is one core.
    """
    ads = [slot(4, PartitionableSlot=False, Share=2), slot(4, Share=2), slot(4)]
    wants = demand(1, count=9, RequestCpus=Expr("TARGET.Share + 0"))
    assert [(1, 0, 1), (1, 1, 2), (1, 2, 4)] == placed(allocate(offer(*ads), [wants]))


def test_nobody_and_nothing() -> None:
    """Without slots all is unmet; without demand nothing is given."""
    nothing = allocate(offer(), [demand(1), demand(2, "bob")])
    assert ([], [(1, 100), (2, 100)]) == (
        nothing.grants,
        [(one.demand.autocluster, one.count) for one in nothing.unmet],
    )
    assert Allocation(grants=[], unmet=[]) == allocate(offer(slot()), [])


def test_ten_thousand_slots_are_filled_to_the_last_core() -> None:
    """A hundred submitters with more than enough to do get what there is, each exactly its share."""
    offered = offer(*(slot(8, Memory=8192, Speed=n % 5, Arch="x" if n % 4 else "y") for n in range(10_000)))
    rank, picky = Expr("TARGET.Speed"), Expr('TARGET.Arch == "x"')
    demands = [
        one
        for n in range(100)
        for one in (
            demand(2 * n, f"user {n}", 300, Requirements=picky, Rank=rank, RequestMemory=1024),
            demand(2 * n + 1, f"user {n}", 1000, RequestMemory=1024),
        )
    ]
    allocation = allocate(offered, demands)
    given = given_to(allocation)

    assert {n: 300 if n % 2 == 0 else 500 for n in range(200)} == given
    assert (0.0, 80_000) == (offered.weight, sum(given.values()))
    assert [500] * 100 == [one.count for one in allocation.unmet]
    assert not [g for g in allocation.grants if g.demand.autocluster % 2 == 0 and g.row % 4 == 0]


def test_jobs_without_cores_are_not_served_slice_by_slice() -> None:
    """
    A billion jobs that take nothing are placed at once: they weigh nothing, so no share of the pie limits them.
    """
    for_free = demand(1, count=10**9, RequestCpus=0, RequestMemory=0, RequestDisk=0)
    allocation = allocate(offer(slot()), [for_free, demand(2, "bob", count=7)])

    assert {1: 10**9, 2: 7} == given_to(allocation)
