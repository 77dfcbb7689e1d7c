"""Accounting groups in cycles over ads: nobody starves, and what is shown afterwards adds up."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kettle.matchmaking import GroupRule, Policy, Tree
from kettle_services.negotiator.domain.accountant import Accountant
from kettle_services.negotiator.domain.cycle import negotiate
from kettle_services.negotiator.domain.principals import fold_into
from kettle_services.negotiator.domain.rejections import Reasons
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SlotSecret
from kettle_wire.subjects import slot_key

from .test_cycle import job, pool, slot, submitter

TREE = Tree(
    {
        "a": GroupRule(quota=2),
        "a.x": GroupRule(quota=1, accept_surplus=True),
        "b": GroupRule(quota_dynamic=0.5, accept_surplus=True),
    }
)
NAMES = ("a.ada", "a.x.bob", "a.x.eve", "b.kim", "b.lea", "zoe")


@pytest.mark.slow
@given(
    cores=st.integers(4, 8), wanting=st.sets(st.sampled_from(NAMES), min_size=1), minutes=st.integers(1, 60)
)
@settings(max_examples=25)
def test_who_wants_something_is_served_within_bounded_cycles(
    cores: int, wanting: set[str], minutes: int
) -> None:
    """
    On slots of one core, of which all are given again in each cycle: each submitter in a group with a quota of a core
    or more, or in none, has had one within three cycles for each submitter; a never has more than its quota, and all no
    more than there is.
    """
    accountant = Accountant(tree=TREE)
    served: Counter[str] = Counter()
    now = 1_000_000.0
    for _ in range(3 * len(wanting)):
        slots: list[Ad] = [slot(f"slot{n}@m", 1) for n in range(cores)]
        one = pool(slots, *(submitter(name, (1, 50, job())) for name in sorted(wanting)))
        standings = accountant.standings(now, wanting)
        outcome = negotiate(one, Reasons(), now=0.0, trust=2.0, standings=standings, groups=Policy(TREE))
        served.update({match.submitter: match.count for match in outcome.matches})
        for match in outcome.matches:
            ad = slot(
                match.slot, 1, State="Claimed", PartitionableSlot=False, AccountingGroup=match.submitter
            )
            one.slot(slot_key("m", match.slot), ad)
            one.secret(slot_key("m", match.slot), SlotSecret(startd="m", capability="other"))
        accountant.observe(now, one.states.usage())
        now += 60.0 * minutes
        for event in accountant.charge(now):
            fold_into(accountant.principals, event)
        accountant.observe(now, {})
        shown = {share.name: share for share in outcome.groups}
        assert sum(share.used for share in outcome.groups) <= cores
        assert shown["a"].subtree_used <= 2
    assert wanting <= set(served)


def test_a_made_up_name_uses_up_no_groups_quota() -> None:
    """
    A slot that says it is in use by physics.ghost, with a weight of 1000, of whom no schedd and no record speaks: physics has
    its 8. If the record knows physics.ghost, its schedd may only be away, and physics has nothing left.
    """
    groups = Policy(Tree({"physics": GroupRule(quota=8)}))
    ghost = slot("ghost@m", 1, State="Claimed", AccountingGroup="physics.ghost", SlotWeight=1000)
    for recorded, had in ((frozenset[str](), 8), (frozenset({"physics.ghost"}), 0)):
        one = pool([slot("slot1@m", 8), ghost], submitter("physics.ada", (1, 50, job())))
        outcome = negotiate(one, Reasons(), now=0.0, trust=2.0, groups=groups, recorded=recorded)
        assert had == sum(match.count for match in outcome.matches)
