"""What is left of slots while they are given away."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import NOTHING, ClassAd
from kettle.classad.columnar import Table
from kettle.matchmaking import Amounts, Offer, Request, weights
from kettle_wire.ads import Ad, Expr, Scalar

from .slowly import MANY, POOLS, QUANTA, RESOURCES, Slot, rounded

AMOUNTS = st.fixed_dictionaries(
    {
        "Cpus": st.sampled_from([0.0, 1.0, 0.5, 2.0, 3.0, 100.0]),
        "Memory": st.sampled_from([0.0, 1.0, 100.0, 128.0, 129.0, 200.5, 256.0]),
        "Disk": st.sampled_from([0.0, 1.0, 1024.0, 1025.0, 4999.5]),
    }
)


def offer(*ads: Mapping[str, Scalar]) -> Offer:
    table = Table()
    table.put_many((str(number), ad) for number, ad in enumerate(ads))
    return Offer(table, np.arange(len(ads)))


def slot(**more: Scalar) -> Ad:
    return {"PartitionableSlot": True, "Cpus": 8, "Memory": 1024, "Disk": 10_240, **more}


def left(offered: Offer, row: int) -> tuple[int, ...]:
    return tuple(int(offered.free[name][row]) for name in RESOURCES)


@given(POOLS, AMOUNTS)
def test_room_is_how_often_a_job_fits(ads: list[Ad], asked: dict[str, float]) -> None:
    """As many times as the rounded amounts do, whether they are the same for all slots or vary."""
    offered, rows = offer(*ads), np.arange(len(ads))
    expected = [Slot(0, ad).room(asked) for ad in ads]
    each = {name: np.full(len(ads), amount) for name, amount in asked.items()}
    some: list[Mapping[str, float | npt.NDArray[np.float64]]] = [
        asked,
        each,
        {**asked, "Memory": each["Memory"]},
    ]
    for amounts in some:
        assert expected == np.minimum(offered.room(rows, amounts), MANY).tolist()


@given(POOLS, AMOUNTS)
def test_taking_leaves_what_one_job_after_the_other_leaves(ads: list[Ad], asked: dict[str, float]) -> None:
    """
    Slot by slot or many at once, nothing is ever below zero and each slot without cores is counted once.
    """
    one, many = offer(*ads), offer(*ads)
    counts = np.array([min(Slot(0, ad).room(asked), 3) for ad in ads], np.int64)
    rows = np.flatnonzero(counts)
    for row in rows.tolist():
        one.take(row, Amounts(asked), int(counts[row]))
    many.take_each(rows, Amounts(asked), counts[rows])
    for row, ad in enumerate(ads):
        slow = Slot(row, ad)
        for _ in range(counts[row]):
            slow.take(asked)
        assert tuple(slow.free.values()) == left(one, row) == left(many, row)
    emptied = sum(one.free["Cpus"][row] == 0 for row in one.rows)
    assert (emptied, emptied) == (one.exhausted, many.exhausted)


@given(POOLS, AMOUNTS, st.integers(0, 2**31))
def test_taking_more_than_there_is_leaves_nothing(ads: list[Ad], asked: dict[str, float], count: int) -> None:
    """
    What was promised to a slot before its ad came may be more than it has; that is not less than nothing.
    """
    offered = offer(*ads)
    rows = np.arange(len(ads))
    offered.take_each(rows, Amounts(asked), np.full(len(ads), count))
    for row in rows:
        offered.take(int(row), Amounts(asked), count)
    assert all(min(left(offered, row)) >= 0 for row in range(len(ads)))


def test_only_slots_with_cores_are_offered() -> None:
    """The weight of an offer is its free cores, and what slots count for that are taken whole."""
    offered = offer(slot(), slot(Cpus=0), slot(Cpus="8"), {}, slot(Cpus=2.9, PartitionableSlot=False))
    assert [0, 4] == offered.rows.tolist()
    assert pytest.approx(10.9) == offered.weight
    offered.take(0, Amounts({"Cpus": 3.0, "Memory": 128.0, "Disk": 1024.0}), 2)
    assert pytest.approx(4.9) == offered.weight
    offered.take(4, Amounts({"Cpus": 1.0, "Memory": 128.0, "Disk": 1024.0}), 1)
    assert (2.0, 1) == (offered.weight, offered.exhausted)


def test_rows_that_are_not_named_are_not_offered() -> None:
    """An offer is of some of the rows of a table."""
    table = offer(slot(), slot(), slot()).table
    offered = Offer(table, np.array([0, 2]))
    assert ([0, 2], 16.0) == (offered.rows.tolist(), offered.weight)


@given(POOLS, st.data())
def test_some_rows_have_what_they_have_among_all(ads: list[Ad], data: st.DataObject) -> None:
    """Nothing that an offer says of a row depends on the rows that are not offered."""
    every = offer(*ads)
    rows = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(ads)))))) if ads else [], np.int64)
    some = Offer(every.table, rows)
    assert [row for row in every.rows.tolist() if row in rows] == some.rows.tolist()
    for row in some.rows.tolist():
        assert left(every, row) == left(some, row)
        assert every.partitionable[row] == some.partitionable[row]
        one = np.array([row])
        assert every.costs(one, np.array([1])).tolist() == some.costs(one, np.array([1])).tolist()


def test_an_offer_does_not_change_the_ads() -> None:
    """What is given away is noted beside the table, under the lower-case names that evaluations look up."""
    offered = offer(slot())
    offered.take(0, Amounts({"Cpus": 3.0, "Memory": 100.0, "Disk": 1.0}), 2)
    assert ClassAd.from_wire(slot()) == offered.table.ad(0)
    assert {"cpus": 2, "memory": 768, "disk": 8192} == {
        n: int(np.asarray(a)[0]) for n, a in offered.overlay.items()
    }


@pytest.mark.parametrize(("memory", "jobs"), [(127, 1), (128, 1), (255, 1), (256, 2), (99, 0), (100, 1)])
def test_one_job_may_fit_exactly_where_the_rounded_amount_does_not(memory: int, jobs: int) -> None:
    """A request of 100 MiB is rounded up to 128, but one job also fits into 100."""
    asked = {"Cpus": 1.0, "Memory": 100.0, "Disk": 1024.0}
    offered = offer(slot(Memory=memory))
    assert [jobs] == offered.room(np.array([0]), asked).tolist()
    offered.take(0, Amounts(asked), jobs)
    assert max(0, memory - 128 * jobs) == offered.free["Memory"][0]


def test_pieces_are_counted_one_slot_or_many_at_once() -> None:
    """A slot that is not partitionable goes whole; what nobody knows is never used up."""
    wants, asked = {"gpus": 2, "fpgas": 1}, {"Cpus": 1.0, "Memory": 128.0, "Disk": 1024.0}
    one, many = (
        offer(
            slot(GPUs=5, TotalSlotGPUs=6),
            slot(GPUs=1, TotalSlotGPUs=6),
            slot(),
            slot(GPUs=Expr("undefined"), TotalSlotGPUs=6),
        )
        for _ in range(2)
    )
    rows = np.arange(4)
    assert [2, 0, 8, 0] == one.room(rows, asked, wants).tolist()

    one.take(0, Amounts(asked, wants), 1)
    one.take(2, Amounts(asked, wants), 1)
    many.take_each(np.array([0, 2]), Amounts(asked, wants), np.array([1, 1]))

    assert [1, 0, 7, 0] == one.room(rows, asked, wants).tolist() == many.room(rows, asked, wants).tolist()


def test_amounts_that_are_none_fit_nowhere() -> None:
    """Where a request is not a number for a slot, there is no room in it, whatever kind it is."""
    offered = offer(slot(), slot(PartitionableSlot=False), slot())
    asked: dict[str, float | npt.NDArray[np.float64]] = {
        "Cpus": np.array([math.nan, math.nan, 1.0]),
        "Memory": 1.0,
        "Disk": 1.0,
    }
    assert [0, 0, 8] == offered.room(np.arange(3), asked).tolist()


@pytest.mark.parametrize("name", RESOURCES)
def test_amounts_are_rounded_up(name: str) -> None:
    """To whole cores, 128 MiB and 1024 KiB."""
    amounts = Amounts({name: 1.5 * QUANTA[name]})
    assert 2 * QUANTA[name] == amounts.quantized(name) == rounded(name, amounts.asked[name])


def test_a_request_without_amounts_has_defaults() -> None:
    """One core, 128 MiB, 1024 KiB; what is an expression over the job alone is evaluated once."""
    nothing = Request(ClassAd(), NOTHING)
    assert ({"Cpus": 1, "Memory": 128, "Disk": 1024}, (), None) == (
        nothing.fixed,
        nothing.varying,
        nothing.fault,
    )
    some = Request(ClassAd.from_wire({"RequestCpus": Expr("2 * Want"), "Want": 3}), NOTHING)
    assert (6, ()) == (some.fixed["Cpus"], some.varying)
    varying = Request(ClassAd.from_wire({"RequestMemory": Expr("TARGET.Memory / 2")}), NOTHING)
    assert ("Memory",) == varying.varying


def test_one_machine_cannot_make_the_pool_endless() -> None:
    """
    A core counts for 100 at most, whatever its slot says; a slot with more cores than there can be counts for nothing.
    """
    ads = [
        slot(Cpus=4, SlotWeight=1e9),
        slot(Cpus=4, SlotWeight=350.0),
        slot(Cpus=2_000_000_000),
        slot(Cpus=0, SlotWeight=1e9),
    ]
    assert [400.0, 350.0, 0.0, 100.0] == weights(offer(*ads).table).tolist()
