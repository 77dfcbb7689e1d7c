"""Accounting groups where jobs count for something else than the cores that they ask for."""

from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad.columnar import Table
from kettle.matchmaking import Offer, Policy, Tree, allocate
from kettle_wire.ads import Ad, Expr

from .test_groups import demand, static

WHOLE: Ad = {"Cpus": 8}
PARTS: Ad = {"Cpus": 8, "TotalCpus": 8, "PartitionableSlot": True}
DEAR: Ad = {**PARTS, "SlotWeight": 32.0, "Gpu": True}
FREE: Ad = {**PARTS, "SlotWeight": 0.0}
NODE: Final = Expr("TARGET.TotalCpus")
ON_GPU: Final = "TARGET.Gpu =?= true"


def offer_of(*slots: Ad) -> Offer:
    table = Table()
    for number, slot in enumerate(slots):
        table.put(f"s{number}", {"Memory": 8192, "Disk": 1 << 20, "Requirements": Expr("true"), **slot})
    return Offer(table, table.all_rows)


@pytest.mark.parametrize(
    ("slots", "cpus", "suits", "count", "run", "free"),
    [
        ([WHOLE] * 4, 1, "true", 1, 1, 1),
        ([WHOLE] * 4, 1, "true", 3, 2, 3),
        ([WHOLE] * 4, 1, "true", 8, 2, 4),
        ([PARTS] * 4, NODE, "true", 1, 1, 1),
        ([PARTS] * 4, NODE, "true", 7, 2, 4),
        ([PARTS, PARTS, PARTS, DEAR], 1, ON_GPU, 1, 1, 1),
        ([PARTS, PARTS, PARTS, DEAR], 1, ON_GPU, 2, 2, 2),
        ([PARTS, PARTS, PARTS, DEAR], 1, ON_GPU, 9, 5, 8),
        ([PARTS] * 4, 0, "true", 3, 3, 3),
        ([FREE] * 4, 1, "true", 3, 3, 3),
    ],
)
def test_a_job_that_counts_for_more_than_its_cores_starts(
    slots: list[Ad], cpus: int | Expr, suits: str, count: int, run: int, free: int
) -> None:
    """
    As many as a quota of 20 is enough for, and of a submitter in no group as many as there are slots for.

    Slots of 8 that are not divided, jobs that ask for a whole machine, cores that count for 4, and jobs that count for nothing.
    """
    policy = Policy(Tree({"a": static(20)}))
    for name, expected in (("a.ada", run), ("zoe", free)):
        offer = offer_of(*slots)
        allocation = allocate(offer, [demand(name, count, cpus, suits)], pie=56.0, groups=policy)
        assert expected == sum(grant.count for grant in allocation.grants)


def test_surplus_is_divided_by_what_jobs_count_for() -> None:
    """
    Of 8 slots of 8 cores, that are not divided, two groups of 8 with ten jobs of one core each have 4 each.
    """
    tree = Tree({"a": static(8), "b": static(8)}, accept_surplus=True)
    asked = [demand("a.ada", 10), demand("b.bob", 10)]
    taken = allocate(offer_of(*[WHOLE] * 8), asked, groups=Policy(tree)).taken
    assert {"a.ada": 32, "b.bob": 32} == taken


def test_a_group_wants_also_what_a_job_takes_besides() -> None:
    """A job that needs one node and takes up to three more has four if the quota is 4."""
    one = msgspec.structs.replace(demand("a.ada", 1), nodes=1, more=3)
    allocation = allocate(offer_of(PARTS), [one], groups=Policy(Tree({"a": static(4)})))
    assert [4] == [grant.count for grant in allocation.grants]


@given(
    slots=st.lists(st.sampled_from((WHOLE, PARTS, DEAR)), min_size=1, max_size=5),
    quotas=st.lists(st.integers(0, 20).map(float), min_size=3, max_size=3),
    wants=st.lists(
        st.tuples(
            st.integers(1, 20), st.sampled_from((1, 3, 8, NODE)), st.sampled_from(("true", ON_GPU, "false"))
        ),
        min_size=3,
        max_size=3,
    ),
)
def test_if_all_accept_surplus_no_slot_is_free_for_a_job_that_waits(
    slots: list[Ad], quotas: list[float], wants: list[tuple[int, int | Expr, str]]
) -> None:
    """
    Of what is left nothing could be given to those who are left if there were no groups; nor are groups allotted more than
    the pool.
    """
    tree = Tree({name: static(quota) for name, quota in zip("abc", quotas, strict=True)}, accept_surplus=True)
    pool = offer_of(*slots)
    pie = pool.weight
    asked = [demand(f"{name}.ada", *want) for name, want in zip("abc", wants, strict=True)]
    allocation = allocate(pool, asked, groups=Policy(tree))
    assert sum(group.allotted for group in allocation.groups) <= pie + 1e-6
    waiting = [msgspec.structs.replace(unmet.demand, count=unmet.count) for unmet in allocation.unmet]
    assert [] == allocate(pool, waiting).grants
