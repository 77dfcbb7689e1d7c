"""What was matched counts as used until a startd shows the claims, or it is clear that there are none."""

from itertools import count
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kettle.matchmaking import GroupRule, Policy, Tree
from kettle_services.negotiator.domain.concurrency_limits import SETTLES
from kettle_services.negotiator.domain.cycle import Outcome, negotiate
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.rejections import Reasons
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.subjects import slot_key

from .test_cycle import job, pool, slot, submitter

QUOTA = 2
GROUPS = Policy(Tree({"physics": GroupRule(quota=QUOTA)}))
ADA = "physics.ada"
WHOLE = slot_key("m", "slot1@m")


def run(one: Pool, *, now: float = 0.0, cycle: int = 1) -> Outcome:
    return negotiate(one, Reasons(), now=now, trust=2.0, groups=GROUPS, cycle=cycle)


def given_by(outcome: Outcome) -> int:
    return sum(match.count for match in outcome.matches)


def claimed(number: int, claim: str, user: str = ADA) -> tuple[str, Ad]:
    """A dynamic slot as its startd shows it: its key and its ad."""
    name = f"slot1_{number}@m"
    more: dict[str, Any] = {"State": "Claimed", "AccountingGroup": user, "PublicClaimId": claim}
    return slot_key("m", name), slot(name, 1, PartitionableSlot=False, DynamicSlot=True, **more)


def wants(jobs: int, *, cycle: int = 0, claims: int = 1) -> SubmitterAd:
    return msgspec.structs.replace(submitter(ADA, (1, jobs, job())), cycle=cycle, claims=claims)


def half_used(*, free: int = 1) -> Pool:
    """Of its quota physics has one core in use, and it wants more."""
    one = pool([slot(cpus=free)], wants(5))
    one.slot(*claimed(1, "first"))
    return one


def test_an_older_ad_of_the_slot_gives_no_quota_back() -> None:
    """
    A job of somebody else ends, and the ad that shows it is made before the claim is asked for: there is room on the machine
    and none in the quota. When the claim is shown it counts once.
    """
    one = half_used()
    assert 1 == given_by(run(one))
    one.slot(WHOLE, slot(cpus=2))
    one.submitter(f"Submitter.{ADA}", wants(5))
    assert 0 == given_by(run(one, now=0.1))

    one.slot(*claimed(2, "second"))
    one.slot(WHOLE, slot(cpus=1))
    assert QUOTA == one.used()[ADA]
    one.slot(slot_key("m", "slot1_1@m"), None)
    assert 1 == given_by(run(one, now=0.2, cycle=2))


def test_each_new_claim_is_one_of_those_that_were_awaited() -> None:
    """Also one in a slot that the same submitter had before; an ad of a claim that was known is none."""
    one = half_used()
    run(one)
    one.slot(*claimed(1, "first"))
    assert QUOTA == one.used()[ADA]
    one.slot(*claimed(1, "second"))
    assert 1 == one.used()[ADA]
    one.slot(*claimed(2, "of somebody else", "zoe"))
    assert 1 == one.used()[ADA]


def test_what_a_schedd_gave_up_is_free_again() -> None:
    """
    While it asks for a claim the quota is in use; when it does not any more, a cycle follows, and another has it.
    """
    one = half_used()
    run(one, cycle=7)
    one.submitter(f"Submitter.{ADA}", wants(5, cycle=6))
    assert 0 == given_by(run(one, now=5.0))
    one.submitter(f"Submitter.{ADA}", wants(5, cycle=7, claims=2))
    assert not one.stirred
    assert 0 == given_by(run(one, now=10.0))
    one.submitter(f"Submitter.{ADA}", wants(5, cycle=7))
    assert one.stirred
    assert 1 == given_by(run(one, now=11.0, cycle=8))


def test_a_claim_that_was_over_before_it_was_shown_is_not_used() -> None:
    """A short job had it, and its startd shows only what is there when it makes its ads."""
    one = half_used()
    run(one, cycle=7)
    one.submitter(f"Submitter.{ADA}", wants(5, cycle=7, claims=2))
    assert QUOTA == one.used()[ADA]
    one.submitter(f"Submitter.{ADA}", wants(5, cycle=7))
    assert 1 == one.used()[ADA]


def test_a_schedd_that_is_not_heard_of_has_nothing_in_the_end() -> None:
    """Its matches count until it would long have asked for claims."""
    one = half_used()
    run(one)
    assert 0 == given_by(run(one, now=SETTLES - 1, cycle=2))
    one.submitter(f"Submitter.{ADA}", None)
    assert {ADA: float(QUOTA)} == one.used()
    run(one, now=SETTLES + 1, cycle=2)
    one.submitter(f"Submitter.{ADA}", wants(5))
    assert 1 == one.used()[ADA]


def test_slots_that_are_not_divided_count_as_a_whole() -> None:
    """By their SlotWeight; and parts of one by their cores."""
    undivided = slot(cpus=4, PartitionableSlot=False, SlotWeight=3.0)
    for ad, weight in ((undivided, 3.0), (slot(cpus=8, SlotWeight=4.0), 0.5)):
        one = pool([ad], submitter(ADA, (1, 1, job())))
        negotiate(one, Reasons(), now=0.0, trust=2.0, cycle=1)
        assert {ADA: weight} == one.used()


STEPS = ("cycle", "ask", "grant", "refuse", "show", "repeat", "speak", "end")


@given(steps=st.lists(st.sampled_from(STEPS), max_size=30))
def test_a_quota_is_never_exceeded(steps: list[str]) -> None:
    """
    Matches that come late, claims granted, refused and ended, ads of startd and schedd made before and after, in any order:
    what is claimed and what is on its way are never more than the quota.
    """
    world = _World()
    for step in steps:
        getattr(world, step)()
        assert len(world.claims) + world.asked + sum(jobs for _, jobs in world.under_way) <= QUOTA


class _World:
    """One machine with 8 cores, one schedd, and the negotiator with what it has heard of them."""

    def __init__(self) -> None:
        self.pool = pool([slot(cpus=8)], wants(9, claims=0))
        self.under_way: list[tuple[int, int]] = []
        """Messages to the schedd: a cycle's number, and how many jobs were matched."""
        self.asked = 0
        self.claims: list[int] = []
        self._shown: set[int] = set()
        self._numbers = count(1)
        self._cycle = self._known = 0

    def cycle(self) -> None:
        if jobs := given_by(run(self.pool, cycle=self._cycle + 1)):
            self._cycle += 1
            self.under_way.append((self._cycle, jobs))

    def ask(self) -> None:
        if self.under_way:
            self._known, jobs = self.under_way.pop(0)
            self.asked += jobs

    def grant(self) -> None:
        if self.asked:
            self.asked -= 1
            self.claims.append(next(self._numbers))

    def refuse(self) -> None:
        self.asked = max(0, self.asked - 1)

    def end(self) -> None:
        del self.claims[:1]

    def show(self) -> None:
        """The machine's ads, dynamic slots before the one that they are parts of."""
        for gone in self._shown - set(self.claims):
            self.pool.slot(slot_key("m", f"slot1_{gone}@m"), None)
        for number in self.claims:
            self.pool.slot(*claimed(number, f"claim {number}"))
        self._shown = set(self.claims)
        self.repeat()

    def repeat(self) -> None:
        """The partitionable slot alone, as it was."""
        self.pool.slot(WHOLE, slot(cpus=8 - len(self._shown)))

    def speak(self) -> None:
        """The schedd's ad."""
        claims = len(self.claims) + self.asked
        self.pool.submitter(f"Submitter.{ADA}", wants(9, cycle=self._known, claims=claims))


def test_no_schedd_talks_the_claims_of_another_away() -> None:
    """One that says that it has less than no claims changes nothing of what another one is to get."""
    one = half_used()
    run(one)
    one.submitter(f"Submitter.{ADA}", wants(5, cycle=1, claims=2))
    assert QUOTA == one.used()[ADA]
    liar = msgspec.structs.replace(wants(0, cycle=1, claims=-100), schedd="other")
    one.submitter("Submitter.other", liar)
    assert QUOTA == one.used()[ADA]
