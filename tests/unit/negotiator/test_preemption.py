"""Preemption for the sake of priorities: who has to make room, and only who the rules allow."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import parse
from kettle.matchmaking import GroupRule, Policy, Tree
from kettle_services.negotiator.domain.accountant import Standing
from kettle_services.negotiator.domain.cycle import UNGROUPED, Outcome, negotiate
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.preemption import Preemption
from kettle_services.negotiator.domain.principals import Principal
from kettle_services.negotiator.domain.rejections import QUOTA, Reasons
from kettle_wire.ads import Ad, Scalar

from .test_cycle import job, pool, slot, submitter

BETTER = Preemption(requirements=parse("RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2"))


def busy(name: str, user: str, **more: Scalar) -> Ad:
    return {
        **slot(name, 1),
        "State": "Claimed",
        "PartitionableSlot": False,
        "CurrentRank": 0.0,
        "AccountingGroup": user,
        "RemoteUser": user,
        "UserPreemption": True,
        **more,
    }


def standing(priority: float) -> Standing:
    return Standing(principal=Principal(priority=priority), factor=1.0)


def run(
    one: Pool, priorities: Mapping[str, float], rules: Preemption = BETTER, groups: Policy = UNGROUPED
) -> Outcome:
    standings = {name: standing(priority) for name, priority in priorities.items()}
    return negotiate(one, Reasons(), now=0.0, trust=2.0, standings=standings, preemption=rules, groups=groups)


def slots_of(outcome: Outcome) -> list[str]:
    return [match.slot for match in outcome.matches]


def test_who_has_less_than_its_share_takes_what_the_rules_allow() -> None:
    """
    Bob (P = 30) has all 4 cores, ada (P = 10) wants 9: her share is 3/4 of 4, so she has 3 of his, and not the 4th.
    """
    one = pool([busy(f"slot1_{n}@m", "bob") for n in range(4)], submitter("ada", (1, 9, job())))
    bob = submitter("bob", running=4)
    one.submitter("Submitter.bob", bob)
    assert 3 == len(run(one, {"ada": 10.0, "bob": 30.0}).matches)


@pytest.mark.parametrize(
    ("rules", "bob"),
    [
        (Preemption(), 30.0),
        (Preemption(requirements=parse("false")), 30.0),
        (Preemption(requirements=parse("Nothing > 1")), 30.0),
        (Preemption(consider=False, requirements=BETTER.requirements), 30.0),
        (BETTER, 12.0),
    ],
)
def test_nobody_makes_room_if_the_rules_do_not_say_so(rules: Preemption, bob: float) -> None:
    """
    Without PREEMPTION_REQUIREMENTS, with one that is not true, if preemption is not considered, and at 12 against 10*1.2.
    """
    one = pool([busy("slot1_1@m", "bob")], submitter("ada", (1, 9, job())))
    assert [] == run(one, {"ada": 10.0, "bob": bob}, rules).matches


def test_a_machine_that_does_not_let_priorities_count_is_left_alone() -> None:
    """Its startd would refuse the match."""
    one = pool([{**busy("slot1_1@m", "bob"), "UserPreemption": False}], submitter("ada", (1, 1, job())))
    assert [] == run(one, {"ada": 1.0, "bob": 30.0}).matches


def test_a_free_slot_is_taken_first_and_nobody_preempts_himself() -> None:
    """
    Ada takes what is free, then the slot of eve, who has the worst priority; her own and the one that is liked more stay.
    """
    slots = [
        busy("slot1_1@m", "ada"),
        busy("slot1_2@m", "bob"),
        busy("slot1_3@m", "eve"),
        {**busy("slot1_4@m", "eve"), "CurrentRank": 5.0},
        slot("slot1@n", 1),
    ]
    one = pool(slots, submitter("ada", (1, 2, job())))
    assert ["slot1@n", "slot1_3@m"] == slots_of(run(one, {"ada": 1.0, "bob": 30.0, "eve": 40.0}))


def test_of_one_user_the_job_makes_room_that_has_run_the_shortest() -> None:
    """PREEMPTION_RANK is RemoteUserPrio*1000000 - TotalJobRunTime."""
    slots = [busy(f"slot1_{n}@m", "bob", TotalJobRunTime=seconds) for n, seconds in enumerate((500, 20, 90))]
    one = pool(slots, submitter("ada", (1, 1, job())))
    assert ["slot1_1@m"] == slots_of(run(one, {"ada": 1.0, "bob": 30.0}))


def test_a_quota_holds_for_preemption_too() -> None:
    """
    With a quota of 1 for a: ada preempts one of bob's jobs, although her priority would allow all, and is told why not more.
    """
    groups = Policy(Tree({"a": GroupRule(quota=1)}))
    one = pool([busy(f"slot1_{n}@m", "bob") for n in range(4)], submitter("a.ada", (1, 9, job())))
    outcome = run(one, {"a.ada": 1.0, "bob": 90.0}, groups=groups)
    assert 1 == len(outcome.matches)
    assert [QUOTA] == [rejection.reason for rejection in outcome.rejections]


def test_a_full_group_divides_what_it_has_among_its_own() -> None:
    """
    With a quota of 2 for a, both in use by bob (P = 30): ada of a (P = 10) has a share of 1.5 of them, so she takes one, and
    none of zoe's, whose priority is worst: that would be beyond the quota.
    """
    groups = Policy(Tree({"a": GroupRule(quota=2)}))
    users = ("a.bob", "zoe", "a.bob", "zoe")
    slots = [busy(f"slot1_{n}@m", user) for n, user in enumerate(users)]
    asks = [submitter("a.ada", (1, 9, job())), submitter("a.bob", running=2), submitter("zoe", running=2)]
    priorities = {"a.ada": 10.0, "a.bob": 30.0, "zoe": 90.0}
    outcome = run(pool(slots, *asks), priorities, groups=groups)
    assert 1 == len(outcome.matches)
    assert {"slot1_0@m", "slot1_2@m"} >= set(slots_of(outcome))
    assert [(8, QUOTA)] == [(one.count, one.reason) for one in outcome.rejections]
    assert [] == run(pool(slots, *asks), {**priorities, "a.bob": 10.0}, groups=groups).matches


def test_rules_see_the_quotas_that_are_in_force() -> None:
    """
    Of 4 cores, all bob's, a has a dynamic quota of half: for ada of a it is 2, of which nothing is in use, and for those without
    a group the other 2, of which 4 are in use. Without any groups the quota is the pool.
    """
    slots = [busy(f"slot1_{n}@m", "bob") for n in range(4)]
    says = (
        "TARGET.SubmitterGroupQuota == {0} && TARGET.SubmitterGroupResourcesInUse == {1}"
        " && RemoteGroupQuota == {2} && RemoteGroupResourcesInUse == {3}"
    )
    for name, groups, figures in (
        ("a.ada", Policy(Tree({"a": GroupRule(quota_dynamic=0.5)})), (2, 0, 2, 4)),
        ("ada", UNGROUPED, (4, 4, 4, 4)),
    ):
        one = pool(slots, submitter(name, (1, 1, job())), submitter("bob", running=4))
        rules = Preemption(requirements=parse(says.format(*figures)))
        assert 1 == len(run(one, {name: 1.0, "bob": 90.0}, rules, groups).matches)


class CountingTree(Tree):
    """Counts how often it is asked whose group is whose."""

    asked = 0

    def number_of(self, submitter: str) -> int:
        self.asked += 1
        return super().number_of(submitter)


def test_groups_are_looked_up_in_proportion_to_submitters() -> None:
    """
    Twice as many submitters of whom all want something and have something: about twice as many look-ups, not four times.
    """

    def work(submitters: int) -> int:
        tree = CountingTree({"a": GroupRule(quota=1)})
        names = [f"a.u{n}" for n in range(submitters)]
        slots = [busy(f"slot1_{n}@m", name) for n, name in enumerate(names)]
        one = pool(slots, *(submitter(name, (1, 1, job())) for name in names))
        run(one, dict.fromkeys(names, 10.0), groups=Policy(tree))
        return tree.asked

    assert work(40) < 2.5 * work(20)


@given(
    held=st.lists(
        st.tuples(st.sampled_from(("ada", "bob", "eve")), st.integers(0, 2), st.integers(0, 2)), max_size=8
    ),
    wants=st.fixed_dictionaries({name: st.integers(0, 5) for name in ("ada", "bob", "eve")}),
    priorities=st.fixed_dictionaries({name: st.integers(1, 60).map(float) for name in ("ada", "bob", "eve")}),
    free=st.integers(0, 2),
)
def test_a_preempted_job_is_always_one_that_the_rules_allow(
    held: list[tuple[str, int, int]], wants: dict[str, int], priorities: dict[str, float], free: int
) -> None:
    """
    For any use and demand, a slot in use is given only to another submitter, whose priority is better as
    PREEMPTION_REQUIREMENTS says and whose job the machine ranks at least equally, within its share; or whose job the
    machine prefers.

    No submitter is given more than it wants, no slot is given twice, and a repetition gives the same result.
    """
    slots: list[Ad] = [
        {**busy(f"slot1_{n}@m", user), "CurrentRank": float(current), "Rank": float(liked)}
        for n, (user, current, liked) in enumerate(held)
    ] + [slot(f"slot{n}@n", 1) for n in range(free)]
    asks = [submitter(name, (1, count, job())) for name, count in wants.items()]
    outcome = run(pool(slots, *asks), priorities)
    used = {name: sum(user == name for user, _, _ in held) for name in wants}
    pie = sum(1.0 / value for value in priorities.values())
    share = {name: len(slots) / value / pie for name, value in priorities.items()}
    for match in outcome.matches:
        used[match.submitter] += 1
        if match.slot.endswith("@n"):
            continue
        user, current, liked = held[int(match.slot.removeprefix("slot1_").removesuffix("@m"))]
        if liked <= current:
            assert liked == current
            assert match.submitter != user
            assert priorities[user] > priorities[match.submitter] * 1.2
            assert used[match.submitter] <= share[match.submitter] + 1e-6
    assert len(set(slots_of(outcome))) == len(outcome.matches)
    for name, count in wants.items():
        assert sum(match.count for match in outcome.matches if match.submitter == name) <= count
    assert slots_of(outcome) == slots_of(run(pool(slots, *asks), priorities))
