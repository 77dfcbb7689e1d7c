"""Fair shares in cycles over ads."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kettle.matchmaking import Claimant
from kettle.matchmaking.shares import limits
from kettle_services.negotiator.domain.accountant import Accountant, Standing
from kettle_services.negotiator.domain.cycle import Outcome, negotiate
from kettle_services.negotiator.domain.principals import Principal, fold_into
from kettle_services.negotiator.domain.rejections import CEILING, Reasons
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SlotSecret
from kettle_wire.subjects import slot_key

from .test_cycle import job, pool, slot, submitter


def standing(priority: float = 0.5, factor: float = 1000.0, **more: float) -> Standing:
    return Standing(principal=Principal(priority=priority, **more), factor=factor)


def claimed(name: str, submitter: str, cpus: int) -> Ad:
    return slot(name, cpus, State="Claimed", PartitionableSlot=False, AccountingGroup=submitter)


def given_by(outcome: Outcome) -> dict[str, int]:
    given: Counter[str] = Counter()
    for match in outcome.matches:
        given[match.submitter] += match.count
    return dict(given)


def test_shares_are_in_inverse_proportion_to_effective_priorities() -> None:
    """
    P = 500, 1000 and 250: max/P = 2, 1 and 4, N = 7; of 70 cores the shares are 2/7, 1/7 and 4/7: 20, 10 and 40.
    """
    wants = [submitter(name, (1, 100, job())) for name in ("ada", "bob", "eve")]
    three = pool([slot(cpus=70, memory=70 * 128)], *wants)
    standings = {"ada": standing(0.5), "bob": standing(1.0), "eve": standing(0.5, 500.0)}
    outcome = negotiate(three, Reasons(), now=0.0, trust=2.0, standings=standings)

    assert {"ada": 20, "bob": 10, "eve": 40} == given_by(outcome)


def test_what_runs_already_counts() -> None:
    """
    Both have half of the 20 cores of the pool; alice runs on 7, so she may have 10 - 7 = 3 more, and bob gets 10 of 13.
    """
    ads = [slot(cpus=13), claimed("slot2@m", "alice", 7)]
    both = pool(ads, submitter("alice", (1, 100, job())), submitter("bob", (2, 100, job())))
    assert {"alice": 3, "bob": 10} == given_by(negotiate(both, Reasons(), now=0.0, trust=2.0))


def test_who_has_more_than_its_share_waits_for_the_others() -> None:
    """With 16 of 20 cores alice may have none of the four that are free until bob has what he wants."""
    ads = [slot(cpus=4), claimed("slot2@m", "alice", 16)]
    asks = submitter("alice", (1, 100, job()))
    greedy = pool(ads, asks, submitter("bob", (2, 100, job())))
    assert {"bob": 4} == given_by(negotiate(greedy, Reasons(), now=0.0, trust=2.0))
    modest = pool(ads, asks, submitter("bob", (2, 1, job())))
    assert {"alice": 3, "bob": 1} == given_by(negotiate(modest, Reasons(), now=0.0, trust=2.0))


def test_a_ceiling_is_never_exceeded_and_is_the_reason() -> None:
    """
    A ceiling of 5 less the 2 cores that alice has leaves 3; the other five are for nobody, and the record says why.
    """
    ads = [slot(cpus=8), claimed("slot2@m", "alice", 2)]
    capped = pool(ads, submitter("alice", (1, 100, job())))
    outcome = negotiate(capped, Reasons(), now=0.0, trust=2.0, standings={"alice": standing(ceiling=5.0)})
    assert {"alice": 3} == given_by(outcome)
    assert [(97, CEILING)] == [(each.count, each.reason) for each in outcome.rejections]


def test_a_thousand_jobs_fill_sixteen_machines_in_one_cycle() -> None:
    """
    1,000 idle one-core jobs and 16 empty machines of 64 cores: 15 full ones, and 40 on the last, one match a machine.
    """
    ads = [slot(f"slot1@m{n}", 64, memory=64 * 1024) for n in range(16)]
    outcome = negotiate(pool(ads, submitter("alice", (1, 1000, job()))), Reasons(), now=0.0, trust=2.0)
    assert [64] * 15 + [40] == [match.count for match in outcome.matches]


@given(st.lists(st.floats(0.5, 1e12), min_size=1, max_size=30, unique=True), st.floats(0.0, 1e6))
def test_shares_sum_to_the_pool(priorities: list[float], pie: float) -> None:
    """Whatever the priorities, the limits of submitters who have nothing are together the whole pie."""
    claimants = [Claimant(name=str(number), priority=one) for number, one in enumerate(priorities)]
    limit = limits(claimants, dict.fromkeys((one.name for one in claimants), 0.0), pie)
    assert pie == pytest.approx(sum(limit.values()), rel=1e-9)


@given(
    st.lists(st.floats(0.5, 100.0), min_size=2, max_size=5),
    st.integers(1, 6),
    st.integers(0, 2**32),
)
@settings(max_examples=8, deadline=None)
def test_nobody_starves(priorities: list[float], cores: int, seed: int) -> None:
    """
    Every submitter that asks gets a slot within bounded cycles, even if others ask for everything: one core comes free
    at a time, and the accountant charges what runs, a half-life for each cycle.
    """
    names = [f"user{number}" for number in range(len(priorities))]
    accountant = Accountant()
    accountant.restore(
        {name: Principal(priority=one, charged=1e6) for name, one in zip(names, priorities, strict=True)}
    )
    one = pool([], *(submitter(name, (1, 1000, job())) for name in names))
    served: set[str] = set()
    random = Random(seed)
    for cycle in range(20 * len(names)):
        now = 1e6 + 86_400.0 * cycle
        free = f"slot{random.randrange(cores)}@m"
        one.slot(slot_key("m", free), slot(free, cpus=1))
        one.secret(slot_key("m", free), SlotSecret(startd="m", capability="c"))
        accountant.observe(now, one.states.usage())
        standings = accountant.standings(now, names)
        outcome = negotiate(one, Reasons(), now=now, trust=1.0, standings=standings)
        for match in outcome.matches:
            served.add(match.submitter)
            one.slot(slot_key("m", match.slot), claimed(match.slot, match.submitter, 1))
        accountant.observe(now, one.states.usage())
        for event in accountant.charge(now):
            fold_into(accountant.principals, event)
        if served == set(names):
            return
    raise AssertionError(f"never served: {set(names) - served}")


@settings(max_examples=6, deadline=None)
@given(st.permutations(["ada", "bob", "eve"]), st.permutations([2, 3, 5]))
def test_equal_inputs_give_equal_matches(order: list[str], sizes: list[int]) -> None:
    """In whatever order submitters' ads came, the same slots go to the same submitters."""
    ads = [slot(f"slot1@m{n}", cpus) for n, cpus in enumerate(sizes)]
    made = [
        negotiate(
            pool(ads, *(submitter(name, (1, 100, job())) for name in names)), Reasons(), now=0.0, trust=2.0
        )
        for names in (order, sorted(order))
    ]
    assert made[0].matches == made[1].matches
