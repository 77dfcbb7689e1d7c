"""Which slots match a job, and in which order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import NOTHING, ClassAd, Context, matches, parse, rank
from kettle.classad.columnar import Table
from kettle.matchmaking import Amounts, Offer, Request
from kettle.matchmaking.candidates import Ranking, candidates
from kettle_wire.ads import Ad, Expr, Scalar

from .slowly import JOBS, POOLS, SLOTS, Slot, asked_of

ONE = Amounts({"Cpus": 1.0, "Memory": 128.0, "Disk": 1024.0})


def offer(*ads: Ad) -> Offer:
    table = Table()
    table.put_many((str(number), ad) for number, ad in enumerate(ads))
    return Offer(table, np.arange(len(ads)))


def slot(**more: Scalar) -> Ad:
    return {
        "PartitionableSlot": True,
        "Cpus": 8,
        "Memory": 8192,
        "Disk": 10_000_000,
        "Requirements": True,
        **more,
    }


def job(**more: Scalar) -> ClassAd:
    return ClassAd.from_wire({"Requirements": True, **more})


def found(offered: Offer, wants: ClassAd, context: Context = NOTHING) -> list[tuple[int, int]]:
    """All rows that suit, with their room, in order."""
    pieces = candidates(wants, Request(wants, context), offered, Ranking(offered, context), context)
    return [
        (int(row), int(room)) for piece in pieces for row, room in zip(piece.rows, piece.room, strict=True)
    ]


@given(POOLS, JOBS)
def test_what_is_found_matches_on_both_sides_and_nothing_else_does(ads: list[Ad], wants: Ad) -> None:
    """Slot by slot as `matches` says for the ad with what is left of the slot, best-liked first."""
    wanted = ClassAd.from_wire(wants)
    offered = offer(*ads)
    request = Request(wanted, NOTHING)
    slots = [Slot(row, ad) for row, ad in enumerate(ads)]
    expected = [
        slot.row
        for slot in sorted(slots, key=lambda slot: -rank(wanted, slot.now))
        if slot.free["Cpus"] and slot.room(asked_of(wanted, slot.now)) and matches(wanted, slot.now)
    ]
    assert expected == ([] if request.fault else [row for row, _ in found(offered, wanted)])


@given(st.lists(SLOTS, min_size=2, max_size=7), JOBS, st.integers(0, 6))
def test_what_was_taken_counts(ads: list[Ad], wants: Ad, row: int) -> None:
    """Requirements of both sides see what is left, not what the ad says."""
    wanted, row = ClassAd.from_wire(wants), row % len(ads)
    offered, slots = offer(*ads), [Slot(number, ad) for number, ad in enumerate(ads)]
    offered.take(row, ONE, 1)
    slots[row].take(ONE.asked)
    expected = {
        slot.row
        for slot in slots
        if slot.row in offered.rows and slot.room(asked_of(wanted, slot.now)) and matches(wanted, slot.now)
    }
    if Request(wanted, NOTHING).fault is None:
        assert expected == {found_row for found_row, _ in found(offered, wanted)}


def test_the_best_liked_slot_is_the_one_that_is_looked_at() -> None:
    """Requirements are looked at in the slots of the order, not in those that have these numbers."""
    slots = [slot(Speed=n, Arch="x" if n % 2 else "y") for n in range(6)]
    wants = job(Requirements=Expr('TARGET.Arch == "x"'), Rank=Expr("TARGET.Speed"))
    assert [5, 3, 1] == [row for row, _ in found(offer(*slots), wants)]


def test_slots_that_are_liked_equally_keep_their_order() -> None:
    """Also where there are many of them, and where nothing is ranked at all."""
    slots = [slot(Speed=n % 3) for n in range(3000)]
    liked = [row for speed in (2, 1, 0) for row in range(speed, 3000, 3)]
    assert liked == [row for row, _ in found(offer(*slots), job(Rank=Expr("TARGET.Speed")))]
    for nothing in (job(), job(Rank=7), job(Rank=Expr('"fast"')), job(Rank=Expr("TARGET.Nosuch"))):
        assert list(range(3000)) == [row for row, _ in found(offer(*slots), nothing)]


def test_slots_are_looked_at_as_far_as_they_are_asked_for() -> None:
    """In pieces that grow; where nothing is found there is no piece."""
    slots = [slot(Serial=n) for n in range(3000)]
    offered = offer(*slots)
    wants = job(Requirements=Expr("TARGET.Serial % 1000 == 999"))
    pieces = candidates(wants, Request(wants, NOTHING), offered, Ranking(offered, NOTHING), NOTHING)
    assert [[999, 1999], [2999]] == [piece.rows.tolist() for piece in pieces]


def test_a_rank_that_looks_at_slots_alone_is_worked_out_once() -> None:
    """Jobs with the same Rank share one order, unless one of them says what the Rank asks of it."""
    offered = offer(slot(Speed=1), slot(Speed=2))
    ranking = Ranking(offered, NOTHING)
    same = parse("TARGET.Speed * (Sign ?: 1)")
    plain, again, other = (ClassAd({"Rank": same, **more}) for more in ({}, {"Owner": "ada"}, {"Sign": -1}))
    first = ranking.order(plain)
    assert [1, 0] == first.tolist()
    assert first is ranking.order(again)
    assert [0, 1] == ranking.order(other).tolist()
    assert first is ranking.order(plain)


def test_only_so_many_orders_are_kept() -> None:
    """The first of sixty-five is computed again, and is the same; nothing grows with the number of Ranks."""
    offered = offer(slot(Speed=1), slot(Speed=2))
    ranking = Ranking(offered, NOTHING)
    wants = [ClassAd({"Rank": parse(f"TARGET.Speed * {n}")}) for n in range(1, 66)]
    orders = [ranking.order(one) for one in wants]
    assert orders[64] is ranking.order(wants[64])
    again = ranking.order(wants[0])
    assert orders[0] is not again
    assert [1, 0] == orders[0].tolist() == again.tolist()


@pytest.mark.parametrize("text", ["TARGET.Cpus", "-TARGET.Memory", "TARGET.Derived", "Factor * TARGET.Speed"])
def test_a_rank_that_looks_at_what_is_left_or_at_the_job_is_worked_out_anew(text: str) -> None:
    """The order follows what was given away in between, and what the job says."""
    offered = offer(slot(Speed=1, Derived=Expr("Cpus")), slot(Speed=2, Derived=Expr("Cpus")))
    ranking, ranked = Ranking(offered, NOTHING), parse(text)
    for factor, row in ((1, 0), (-1, 1), (5, 1)):
        wants = ClassAd({"Rank": ranked, "Factor": factor})
        slots = [Slot(n, offered.table.ad(n).to_wire()) for n in range(2)]
        for one in slots:
            one.free = {name: int(amounts[one.row]) for name, amounts in offered.free.items()}
        expected = sorted(slots, key=lambda one: -rank(wants, one.now))
        assert [one.row for one in expected] == ranking.order(wants).tolist()
        offered.take(row, ONE, 2)


def test_a_rank_may_depend_on_time() -> None:
    """It is not kept for another order if it looks at the clock."""
    now = 100
    context = Context(now=lambda: now)
    offered = offer(slot(Boot=90), slot(Boot=50))
    ranking, ranked = Ranking(offered, context), parse("(CurrentTime - TARGET.Boot) % 60")
    wants = ClassAd({"Rank": ranked})
    assert [1, 0] == ranking.order(wants).tolist()
    now = 111
    assert [0, 1] == ranking.order(wants).tolist()


def test_filled_slots_are_left_out_of_the_orders() -> None:
    """
    When more than a quarter has been filled, neither the plain order nor that of a Rank has them any more.
    """
    offered = offer(*(slot(Speed=n) for n in range(8)))
    ranking, ranked, plain = Ranking(offered, NOTHING), job(Rank=Expr("TARGET.Speed")), job()
    assert [*range(7, -1, -1)] == ranking.order(ranked).tolist()
    for row in (7, 1, 4):
        offered.take(row, ONE, 8)
    assert [6, 5, 3, 2, 0] == ranking.order(ranked).tolist()
    assert [0, 2, 3, 5, 6] == ranking.order(plain).tolist()
