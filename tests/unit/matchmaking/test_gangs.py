"""Jobs that need several slots at the same time get all of them or none."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.matchmaking import Allocation, Claimant, Demand, allocate
from kettle_wire.ads import Scalar

from .test_allocation import demand, given_to, offer, placed, slot


def gang(number: int, nodes: int, jobs: int = 1, submitter: str = "ada", **more: Scalar) -> Demand:
    """So many jobs of so many nodes."""
    one = demand(number, submitter, nodes * jobs, **more)
    near = more.get("WantParallelSchedulingGroups") is True
    return msgspec.structs.replace(one, nodes=nodes, near=near)


def moldable(number: int, nodes: int, more: int, jobs: int = 1) -> Demand:
    """So many jobs of so many nodes, which take some more if there are."""
    return msgspec.structs.replace(gang(number, nodes, jobs), more=more)


def left(allocation: Allocation) -> dict[int, int]:
    return {unmet.demand.autocluster: unmet.count for unmet in allocation.unmet}


def test_a_job_for_which_there_are_not_enough_slots_takes_none() -> None:
    """What it could not use goes to others in the same cycle."""
    allocation = allocate(offer(slot(1), slot(2)), [gang(1, 4), demand(2, count=9)])
    assert {2: 3} == given_to(allocation)
    assert {1: 1, 2: 6} == left(allocation)


def test_nodes_are_spread_over_slots_of_any_size() -> None:
    """In the order of the slots, those of one slot next to each other."""
    allocation = allocate(offer(slot(2), slot(8)), [gang(1, 3)])
    assert [(1, 0, 2), (1, 1, 1)] == placed(allocation)


def test_slots_that_are_not_alike_are_paid_for_together() -> None:
    """A slot that is not partitionable is taken whole, and counts as one node."""
    whole = slot(4) | {"PartitionableSlot": False}
    allocation = allocate(offer(slot(1), whole, whole), [gang(1, 3)])
    assert [(1, 0, 1), (1, 1, 1), (1, 2, 1)] == placed(allocation)


def test_machines_near_each_other_are_found_wherever_they_stand() -> None:
    """Of two groups that are mixed only the larger one has room; machines of no group are near nobody."""
    slots = [slot(1, ParallelSchedulingGroup=name) for name in ("red", "blue", "red", "blue", "blue")]
    near = gang(1, 3, WantParallelSchedulingGroups=True)
    assert [(1, 1, 1), (1, 3, 1), (1, 4, 1)] == placed(allocate(offer(*slots), [near]))
    assert {} == given_to(allocate(offer(*[slot(1)] * 5), [near]))


def test_a_job_may_exceed_its_share_as_one_of_a_single_node_may() -> None:
    """Otherwise a large one would never run beside somebody who always wants more; the next one may not."""
    everybody = [Claimant(name="ada"), Claimant(name="eve")]
    demands = [gang(1, 6, 2), demand(2, "eve", 99)]
    allocation = allocate(offer(slot(8)), demands, claimants=everybody)
    assert {1: 6, 2: 2} == given_to(allocation)


def test_a_ceiling_is_not_exceeded() -> None:
    """It is for all nodes together."""
    bounded = [Claimant(name="ada", ceiling=3)]
    allocation = allocate(offer(slot(8)), [gang(1, 4)], claimants=bounded)
    assert {} == given_to(allocation)
    assert ["ceiling"] == [unmet.limit for unmet in allocation.unmet]


def test_a_job_takes_as_many_slots_as_there_are_within_its_range() -> None:
    """
    The first one has most, the next one what is left, if that is enough; all slots of one job say how many it has.
    """
    allocation = allocate(offer(slot(2), slot(4)), [moldable(1, 2, 2, 3)])
    assert {1: 1} == left(allocation)
    assert [(4, 4), (2, 2)] == [
        (nodes, sum(each.count for each in allocation.grants if each.nodes == nodes)) for nodes in (4, 2)
    ]
    assert {} == given_to(allocate(offer(slot(1)), [moldable(1, 2, 2)]))


def test_a_job_of_one_node_or_more_is_one_job() -> None:
    """It takes what there is, and nobody counts its nodes as jobs."""
    allocation = allocate(offer(slot(3)), [moldable(1, 1, 9, 2)])
    assert ({1: 3}, {1: 1}) == (given_to(allocation), left(allocation))


def test_what_is_not_paid_for_is_left_out_beyond_what_a_job_needs() -> None:
    """A ceiling that the least number of nodes respects keeps nobody from these."""
    bounded = [Claimant(name="ada", ceiling=3)]
    allocation = allocate(offer(slot(8)), [moldable(1, 2, 6)], claimants=bounded)
    assert {1: 2} == given_to(allocation)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(2, 5), st.integers(1, 4)), min_size=1, max_size=4),
)
def test_nothing_is_given_in_part(sizes: list[int], gangs: list[tuple[int, int]]) -> None:
    """
    Of each autocluster whole jobs are given and unmet, and one is unmet only if too few slots are left for it.
    """
    demands = [gang(number, nodes, jobs, f"u{number}") for number, (nodes, jobs) in enumerate(gangs)]
    allocation = allocate(offer(*map(slot, sizes)), demands)
    given_slots, unmet = given_to(allocation), left(allocation)
    free = sum(sizes) - sum(given_slots.values())
    for number, (nodes, jobs) in enumerate(gangs):
        assert given_slots.get(number, 0) + unmet.get(number, 0) * nodes == nodes * jobs
        assert not unmet.get(number) or free < nodes


@pytest.mark.parametrize("most", [0, 2, 3, 7])
def test_a_concurrency_limit_lets_whole_jobs_run(most: int) -> None:
    """Each node uses some of it."""
    from kettle.matchmaking import Concurrency, LimitRules

    concurrency = Concurrency(LimitRules(limits={"licence": float(most)}), {})
    allocation = allocate(
        offer(slot(9)), [gang(1, 3, 3, ConcurrencyLimits="licence")], concurrency=concurrency
    )
    assert most // 3 * 3 == given_to(allocation).get(1, 0)


KEEPS = ("ada", "ap", 1)


def test_what_there_is_for_a_job_is_kept_from_others_until_there_is_enough() -> None:
    """A job of four nodes keeps the three places that there are, and no more; with a fourth one it runs."""
    demands = [gang(1, 4), demand(2, "eve", 9)]
    some = allocate(offer(slot(1), slot(2)), demands, keeps=KEEPS)
    assert {} == given_to(some)
    assert [(1, 3, True), (2, 0, False)] == [
        (one.demand.autocluster, one.there, one.kept) for one in some.unmet
    ]
    assert {1: 4, 2: 2} == given_to(allocate(offer(slot(1), slot(2), slot(3)), demands, keeps=KEEPS))


def test_of_a_slot_only_as_much_is_kept_as_the_job_takes() -> None:
    """
    Two nodes of three cores each need one slot more: the two cores beside the one that fits are for others.
    """
    large = gang(1, 2, RequestCpus=3)
    assert {2: 2} == given_to(allocate(offer(slot(5)), [large, demand(2, "eve", 9)], keeps=KEEPS))


def test_of_machines_near_each_other_those_are_kept_of_which_most_are_there() -> None:
    """Two of the three of one group, and the single one of another is for others."""
    slots = [slot(1, ParallelSchedulingGroup=name) for name in ("red", "blue", "blue")]
    near = gang(1, 3, WantParallelSchedulingGroups=True)
    allocation = allocate(offer(*slots), [near, demand(2, "eve", 9)], keeps=KEEPS)
    assert [(2, 0, 1)] == placed(allocation)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(2, 9), st.integers(0, 30))
def test_keeping_costs_at_most_what_one_job_takes(sizes: list[int], nodes: int, others: int) -> None:
    """The others get all that is left, and the job itself gets what it would get alone."""
    total = sum(sizes)
    given_away = given_to(
        allocate(offer(*map(slot, sizes)), [gang(1, nodes), demand(2, "eve", others)], keeps=KEEPS)
    )
    assert (nodes if total >= nodes else 0) == given_away.get(1, 0)
    assert min(others, max(0, total - nodes)) == given_away.get(2, 0)
