"""Accounting groups: trees, quotas, surplus, and who is served when."""

import math
import sys
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import NOTHING, ClassAd
from kettle.classad.columnar import Table
from kettle.matchmaking import (
    Allocation,
    Claimant,
    Demand,
    GroupError,
    GroupRule,
    Offer,
    Policy,
    Tree,
    allocate,
)
from kettle.matchmaking.groups import NO_GROUPS
from kettle.matchmaking.hierarchy import Hierarchy, Spent
from kettle.matchmaking.quotas import assign, divided, fair_share
from kettle_wire.ads import Expr


def static(quota: float, **more: bool) -> GroupRule:
    return GroupRule(quota=quota, **more)


def dynamic(part: float, **more: bool) -> GroupRule:
    return GroupRule(quota_dynamic=part, **more)


def calls(work: Callable[[], object]) -> int:
    """How many functions, also built-in ones, are called while this is done."""
    counted = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


def named(tree: Tree, amounts: list[float]) -> dict[str, float]:
    return {group.name: round(amount, 9) for group, amount in zip(tree.groups, amounts, strict=True)}


@pytest.mark.parametrize(
    ("rules", "group", "says"),
    [
        ({"a.b": static(1)}, "a.b", "no parent"),
        ({"a": static(1), "A": static(1)}, "A", "twice"),
        ({"a b": static(1)}, "a b", "no name"),
        ({"a.": static(1)}, "a.", "no name"),
        ({"a": GroupRule(quota=1, quota_dynamic=0.5)}, "a", "say one"),
        ({"a": dynamic(0.7), "b": dynamic(0.7)}, "b", "1.4 together, more than 1"),
        ({"a": static(10), "a.x": static(8), "a.y": static(3)}, "a.y", "11 together, more than its own 10"),
    ],
)
def test_what_is_no_tree_is_refused(rules: dict[str, GroupRule], group: str, says: str) -> None:
    """
    A group without its parent, twice, without a name, with two quotas, or with more below it than it has.
    """
    with pytest.raises(GroupError, match=says) as refused:
        Tree(rules)
    assert group == refused.value.group


def test_more_than_there_is_may_be_allowed() -> None:
    """With oversubscription the same quotas are a tree."""
    assert 4 == len(Tree({"a": static(10), "a.x": static(8), "a.y": static(3)}, oversubscription=True))


def test_the_longest_configured_beginning_is_the_group() -> None:
    """
    Of a, a.b: a.b.c.user is in a.b, A.user in a, ab.user and user in none; a user who is called as a group is in none.
    """
    tree = Tree({"a": static(1), "a.b": static(1)})
    names = ["a.b.c.user", "A.user", "ab.user", "user", "a", "a.b"]
    assert ["a.b", "a", "<none>", "<none>", "<none>", "a"] == [
        tree.groups[tree.number_of(name)].name for name in names
    ]


def test_a_name_with_many_dots_costs_no_more_than_the_tree_is_deep() -> None:
    """
    A submitter's name is others' to choose: with 80,000 dots the same few calls are enough as with three.
    """
    tree = Tree({"a": static(1), "a.b": static(1)})
    name = "a" + "." * 80_000 + "user"
    assert "a" == tree.groups[tree.number_of(name)].name
    assert calls(lambda: tree.number_of("a.x.y.user")) == calls(lambda: tree.number_of(name))


def test_quotas_are_assigned_from_the_top() -> None:
    """
    100 cores; a = 40, b half of what is left: 0.5*60 = 30, the root keeps 30. a.x = 0.25*40 = 10, a.y = 20, a keeps 10.
    """
    tree = Tree(
        {"a": static(40), "a.x": dynamic(0.25), "a.y": dynamic(0.5), "b": dynamic(0.5), "c": GroupRule()}
    )
    quotas = assign(tree, 100.0)
    assert named(tree, quotas.own) == dict(
        zip(("<none>", "a", "b", "c", "a.x", "a.y"), (30, 10, 30, 0, 10, 20), strict=True)
    )
    assert named(tree, quotas.subtree) == dict(
        zip(("<none>", "a", "b", "c", "a.x", "a.y"), (100, 40, 30, 0, 10, 20), strict=True)
    )


def test_static_quotas_shrink_with_a_pool_that_is_too_small() -> None:
    """
    With a = 30 and b = 10 in a pool of 20: 30*20/40 = 15 and 5; the dynamic c has a part of the 0 that is left.
    """
    tree = Tree({"a": static(30), "b": static(10), "c": dynamic(1.0)})
    assert [0, 15, 5, 0] == assign(tree, 20.0).own


def test_with_oversubscription_each_keeps_its_quota() -> None:
    """
    With a = 30 and b = 10 in a pool of 20: sqa = 40, so they have 30 and 10; the root has max(0, 20 - 40) = 0.
    """
    tree = Tree({"a": static(30), "b": static(10)}, oversubscription=True)
    assert [0, 30, 10] == assign(tree, 20.0).own


def test_surplus_goes_to_who_accepts_it() -> None:
    """
    100 cores, a = 60, b = 30, c = 10. a wants 20, b and c want 200. 40 are left; only b accepts them: 30 + 40 = 70.
    """
    tree = Tree({"a": static(60), "b": static(30, accept_surplus=True), "c": static(10)})
    assert [0, 20, 70, 10] == fair_share(tree, assign(tree, 100.0), [0, 20, 200, 200])


def test_surplus_is_divided_by_quota_and_stays_in_its_subtree_first() -> None:
    """
    100 cores: p = 60 with p.x = 20, p.y = 20 (and 20 for itself), q = 40. p.x wants nothing, p.y 100, q 100, all accept.

    In p: surplus 20 of p itself, 20 of p.x; p.y takes all 40 and has 60. So nothing is left for q, which has its 40.
    """
    rules = {"p": static(60), "p.x": static(20), "p.y": static(20), "q": static(40)}
    tree = Tree(rules, accept_surplus=True)
    shares = fair_share(tree, assign(tree, 100.0), [0, 0, 100, 0, 100])
    assert {"<none>": 0, "p": 0, "q": 40, "p.x": 0, "p.y": 60} == named(tree, shares)


def test_a_division_goes_on_while_somebody_is_satisfied() -> None:
    """
    9 among 1, 10 and 10 with weights 1, 1 and 2: the first has 1; the other 8 are 8/3 and 16/3. Weight 0 waits for the rest.
    """
    assert pytest.approx([1, 8 / 3, 16 / 3, 0]) == divided(9, wants=[1, 10, 10, 5], weights=[1, 1, 2, 0])
    assert [1, 0, 4, 4] == divided(9, wants=[1, 0, 9, 9], weights=[1, 1, 0, 0])


amounts = st.integers(0, 100).map(float)


def grown(a: float, b: float, part: float, surplus: set[str]) -> Tree:
    """A tree of five groups, of which those in `surplus` accept it."""
    rules = {"a": static(a), "a.x": dynamic(part), "a.y": dynamic(1 - part), "b": static(b), "c": GroupRule()}
    return Tree(
        {name: msgspec.structs.replace(rule, accept_surplus=name in surplus) for name, rule in rules.items()}
    )


trees = st.builds(
    grown,
    amounts,
    amounts,
    st.sampled_from((0.0, 0.25, 0.5, 1.0)),
    st.sets(st.sampled_from(("a", "b", "c", "a.x", "a.y"))),
)


@given(tree=trees, pool=amounts, wants=st.lists(amounts, min_size=6, max_size=6))
def test_nobody_is_allotted_more_than_it_wants_and_all_no_more_than_there_is(
    tree: Tree, pool: float, wants: list[float]
) -> None:
    """
    Quotas sum to the pool; shares are between 0 and what is wanted; those of a subtree are within its quota where no surplus is
    accepted, and all sum to the pool at most, and to all of it if those without a group want more than they get.
    """
    quotas = assign(tree, pool)
    shares = fair_share(tree, quotas, wants)
    assert pytest.approx(pool) == math.fsum(quotas.own)
    assert math.fsum(shares) <= pool + 1e-6
    for group, share, want, quota in zip(tree.groups, shares, wants, quotas.subtree, strict=True):
        assert 0 <= share <= want + 1e-6
        below = [
            n
            for n in range(len(tree))
            if group is tree.groups[0] or tree.groups.index(group) in tree.upward(n)
        ]
        assert group.accept_surplus or sum(shares[n] for n in below) <= quota + 1e-6
    if wants[0] > shares[0] + 1e-6:
        assert pytest.approx(pool) == math.fsum(shares)


# -- with slots ------------------------------------------------------------------------------------------------------


def offer(cores: int) -> Offer:
    table = Table()
    table.put(
        "slot",
        {
            "PartitionableSlot": True,
            "Cpus": cores,
            "Memory": cores * 128,
            "Disk": cores * 1024,
            "Requirements": Expr("true"),
        },
    )
    return Offer(table, table.all_rows)


def demand(submitter: str, count: int = 1000, cpus: int | Expr = 1, suits: str = "true") -> Demand:
    job = ClassAd.from_wire(
        {"RequestCpus": cpus, "RequestMemory": 128, "RequestDisk": 1024, "Requirements": Expr(suits)}
    )
    return Demand(submitter=submitter, schedd="ap", autocluster=1, count=count, job=job)


def shared(
    tree: Tree,
    cores: int,
    *demands: Demand,
    used: dict[str, float] | None = None,
    claimants: list[Claimant] | None = None,
) -> tuple[dict[str, float], Allocation]:
    held = used or {}
    known = claimants or [Claimant(name=one.submitter, used=held.get(one.submitter, 0.0)) for one in demands]
    allocation = allocate(
        offer(cores), demands, claimants=known, pie=cores + sum(held.values()), groups=Policy(tree), used=held
    )
    return allocation.taken, allocation


def test_quotas_hold_and_shares_divide_a_group() -> None:
    """
    100 cores, a = 40 and b = 20: two of a share 40 as 20 and 20, b has 20, and who is in no group the 40 that are left.
    """
    tree = Tree({"a": static(40), "b": static(20)})
    taken, allocation = shared(tree, 100, demand("a.ada"), demand("a.bob"), demand("b.eve"), demand("zoe"))
    assert {"a.ada": 20, "a.bob": 20, "b.eve": 20, "zoe": 40} == taken
    limits = {unmet.demand.submitter: unmet.limit for unmet in allocation.unmet}
    assert {"a.ada": "quota", "a.bob": "quota", "b.eve": "quota", "zoe": ""} == limits


def test_what_nobody_else_wants_goes_to_who_accepts_surplus() -> None:
    """100 cores, a = 40, b = 20 which accepts surplus, and nobody without a group: a has 40 and b 60."""
    tree = Tree({"a": static(40), "b": static(20, accept_surplus=True)})
    assert {"a.ada": 40, "b.eve": 60} == shared(tree, 100, demand("a.ada"), demand("b.eve"))[0]


def test_what_a_group_cannot_use_goes_back_in_the_same_cycle() -> None:
    """
    With a = 8 wants jobs of three cores, and has two of them: 6. The 2 that are left go to b, which accepts surplus: 4 + 2.
    """
    tree = Tree({"a": static(8), "b": static(4, accept_surplus=True)})
    assert {"a.ada": 6, "b.eve": 6} == shared(tree, 12, demand("a.ada", cpus=3), demand("b.eve"))[0]


@pytest.mark.parametrize(
    ("cores", "parts", "cpus", "have"),
    [
        (9, {"a": 0.5, "b": 0.5}, 1, {"a.ada": 5, "b.ada": 4}),
        (48, {"a": 0.4, "b": 0.4, "c": 0.2}, 8, {"a.ada": 24, "b.ada": 16, "c.ada": 8}),
    ],
)
def test_what_is_too_little_for_a_job_of_each_is_enough_for_one(
    cores: int, parts: dict[str, float], cpus: int, have: dict[str, float]
) -> None:
    """
    Quotas of 4.5 and 4.5 cores, of which each can use 4: the ninth core is for one of them.  19.2, 19.2 and 9.6 for jobs of 8.
    """
    tree = Tree({name: dynamic(part) for name, part in parts.items()}, accept_surplus=True)
    wants = [demand(f"{name}.ada", 10, cpus) for name in parts]
    assert have == shared(tree, cores, *wants)[0]


def test_what_is_too_little_for_a_job_is_for_nobody_whose_quota_is_reached() -> None:
    """
    With 4.5 cores each, both have 4; only b accepts surplus, so the ninth core is for b, also if a comes first.
    """
    tree = Tree({"a": dynamic(0.5), "b": dynamic(0.5, accept_surplus=True)})
    assert {"a.ada": 4, "b.ada": 5} == shared(tree, 9, demand("a.ada"), demand("b.ada"))[0]


def test_who_cannot_use_a_part_of_a_core_has_its_part_of_the_surplus() -> None:
    """
    With a = b = 30.5 and c = 39, whose jobs suit no slot: a and b have 30 each, then half of the other 40 each.
    """
    tree = Tree({"a": static(30.5), "b": static(30.5), "c": static(39)}, accept_surplus=True)
    wants = demand("a.ada"), demand("b.bob"), demand("c.eve", suits="false")
    assert {"a.ada": 50, "b.bob": 50} == shared(tree, 100, *wants)[0]


@given(
    cores=st.integers(1, 40),
    parts=st.lists(st.integers(0, 10).map(float), min_size=3, max_size=3),
    surplus=st.lists(st.booleans(), min_size=3, max_size=3),
    counts=st.lists(st.integers(0, 30), min_size=3, max_size=3),
)
def test_no_core_is_free_while_somebody_may_have_it(
    cores: int, parts: list[float], surplus: list[bool], counts: list[int]
) -> None:
    """
    With jobs of one core: either all are used, or those who accept surplus have no jobs left and the others have their quotas.
    What groups are said to be allotted is what they have at least, and no more than the pool together.
    """
    rules = {
        name: static(part + 0.5, accept_surplus=accepts)
        for name, part, accepts in zip("abc", parts, surplus, strict=True)
    }
    tree = Tree(rules)
    names = [f"{name}.ada" for name in rules]
    wants = [demand(name, count) for name, count in zip(names, counts, strict=True) if count]
    taken, allocation = shared(tree, cores, *wants)
    assert sum(group.allotted for group in allocation.groups) <= cores + 1e-6
    assert all(group.used <= group.allotted + 1e-6 for group in allocation.groups)
    free = cores - sum(taken.values())
    quotas = assign(tree, cores).own[1:]
    for name, count, quota, accepts in zip(names, counts, quotas, surplus, strict=True):
        has = taken.get(name, 0.0)
        assert accepts or has <= quota + 1e-6
        assert free < 1 or has == count or (not accepts and has + 1 > quota)


def test_what_runs_counts_also_of_who_wants_nothing_more() -> None:
    """
    With a = 6 of 10: bob, who wants nothing, has 4 of them, so ada has 2; 4 of the 6 free cores are for who is in no group.
    """
    tree = Tree({"a": static(6)})
    taken, _ = shared(tree, 6, demand("a.ada"), demand("zoe"), used={"a.bob": 4.0})
    assert {"a.ada": 2, "zoe": 4} == taken


def test_a_subtree_keeps_within_the_quota_of_its_top() -> None:
    """
    With a = 4 with a.x = 2, which accepts surplus, and 3 in use in a itself: a.x has 1, although 2 are its quota.
    """
    tree = Tree({"a": static(4), "a.x": static(2, accept_surplus=True)})
    assert {"a.x.ada": 1} == shared(tree, 7, demand("a.x.ada"), used={"a.bob": 3.0})[0]


def test_what_those_below_took_of_a_groups_quota_is_not_given_twice() -> None:
    """
    With g = 10, g.x = 5 which accepts surplus and runs 10: g has none of 40 free cores left, although it runs nothing itself.
    """
    tree = Tree({"g": static(10), "g.x": static(5, accept_surplus=True)})
    assert {} == shared(tree, 40, demand("g.ada"), used={"g.x.bob": 10.0})[0]
    assert {"g.ada": 2} == shared(tree, 40, demand("g.ada"), used={"g.x.bob": 8.0})[0]


def test_many_groups_below_one_cost_in_proportion() -> None:
    """Twice as many groups below one cost about twice as many calls, not four times as many."""

    def work(children: int) -> int:
        rules = {"a": static(float(children)), **{f"a.{n}": dynamic(1 / children) for n in range(children)}}
        tree = Tree(rules)
        asks = {f"a.{n}.ada": 2.0 for n in range(children)}
        view = Hierarchy(Policy(tree), pie=float(children), used={}, wanted=asks, context=NOTHING)
        return calls(lambda: view.share(lambda names, pie, room: Spent(room, 0.0)))

    assert work(200) < 2.5 * work(100)


def test_who_may_be_regrouped_has_what_is_left() -> None:
    """
    10 cores, a = 2 with autoregroup: ada has 2 by quota; nobody wants the other 8, so she has them among the groupless.
    """
    assert {"a.ada": 10} == shared(Tree({"a": static(2, autoregroup=True)}), 10, demand("a.ada"))[0]
    assert {"a.ada": 2} == shared(Tree({"a": static(2)}), 10, demand("a.ada"))[0]


def test_floors_are_served_first_within_a_group() -> None:
    """
    With a = 10, ada with a hundred times bob's priority value but a floor of 4: bob's share is 9.9, hers 0.1; she has 1 by it.

    The floor is within her share, as without groups: 0.1 of a core, rounded up to one.
    """
    tree = Tree({"a": static(10)})
    known = [Claimant(name="a.ada", priority=50_000.0, floor=4.0), Claimant(name="a.bob", priority=500.0)]
    taken, _ = shared(tree, 20, demand("a.ada"), demand("a.bob"), claimants=known)
    assert {"a.ada": 1, "a.bob": 9} == taken


def test_the_starving_group_comes_first() -> None:
    """
    Of two groups with a quota of 4, one has 3 in use: of two free cores the other is served first, and takes both.
    """
    tree = Tree({"a": static(4), "b": static(4)})
    taken, _ = shared(tree, 2, demand("a.ada"), demand("b.bob"), used={"a.ada": 3.0, "x": 3.0})
    assert {"b.bob": 2} == taken


@given(
    cores=st.integers(1, 60),
    quotas=st.fixed_dictionaries({name: st.integers(0, 40).map(float) for name in ("a", "b")}),
    surplus=st.booleans(),
    sizes=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), min_size=4, max_size=4),
    used=st.fixed_dictionaries({name: st.integers(0, 9).map(float) for name in ("a.ada", "b.bob", "zoe")}),
)
def test_quotas_are_never_exceeded_and_the_same_again(
    cores: int,
    quotas: dict[str, float],
    surplus: bool,
    sizes: list[tuple[int, int]],
    used: dict[str, float],
) -> None:
    """
    Whatever is wanted: a group that accepts no surplus never comes to have more than its quota by what a cycle gives; no
    more is given than there is; and the same once more gives the same.
    """
    tree = Tree({"a": static(quotas["a"]), "b": static(quotas["b"], accept_surplus=surplus)})
    names = ("a.ada", "a.bob", "b.bob", "zoe")
    wants = [demand(name, count, cpus) for name, (count, cpus) in zip(names, sizes, strict=True) if count]
    taken, first = shared(tree, cores, *wants, used=used)
    assert sum(taken.values()) <= cores
    of_a = sum(weight for name, weight in taken.items() if name.startswith("a."))
    quota = assign(tree, cores + sum(used.values())).own[1]
    assert of_a == 0 or of_a + used["a.ada"] <= quota + 1e-6
    again, second = shared(tree, cores, *wants, used=used)
    assert taken == again
    assert [(g.row, g.count) for g in first.grants] == [(g.row, g.count) for g in second.grants]


def test_a_pool_without_groups_is_one() -> None:
    """Without groups nothing is different from a pool that has none."""
    taken, allocation = shared(NO_GROUPS, 10, demand("ada"), demand("bob"))
    assert {"ada": 5, "bob": 5} == taken
    assert [] == allocation.groups
