"""What a cycle says of those who got less than they asked for: how many, for which reason, with figures."""

from typing import Any

import pytest

from kettle.classad import ClassAd, parse
from kettle.matchmaking import Explainer, Explanation, GroupRule, LimitRules, Policy, Tree
from kettle_services.negotiator.domain.accountant import Standing
from kettle_services.negotiator.domain.cycle import Outcome, fresh, negotiate
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.preemption import Preemption
from kettle_services.negotiator.domain.principals import Principal
from kettle_services.negotiator.domain.rejections import Reasons
from kettle_wire.ads import Ad, Expr
from kettle_wire.events import Rejection, Withheld

from .test_cycle import job, pool, slot, submitter
from .test_preemption import BETTER, busy, run


def cycle(one: Pool, **more: Any) -> Outcome:
    return negotiate(one, Reasons(), now=0.0, trust=2.0, **more)


def of(outcome: Outcome, submitter: str) -> Rejection:
    (found,) = [one for one in outcome.rejections if one.submitter == submitter]
    return found


def test_what_was_asked_given_and_left_is_told_with_how_many_slots_could() -> None:
    """
    Of 11 jobs 8 run on the one machine of two that has memory enough: asked 11, given 8, 3 left, 1 slot of 2 able.
    """
    small = slot("slot1@small", memory=64, TotalSlotMemory=64)
    found = of(cycle(pool([slot(), small], submitter("alice", (1, 11, job())))), "alice")

    assert (11, 8, 3) == (found.asked, found.given, found.count)
    assert (1, 2, "busy") == (found.able, found.slots, found.cause)
    assert [("TARGET.Memory >= RequestMemory", 1)] == [(one.text, one.refuses) for one in found.clauses]


def test_whose_share_is_used_up_is_told_so() -> None:
    """Of 8 cores 4 are the share of each of two equal submitters, who both want 100."""
    both = pool([slot()], submitter("alice", (1, 100, job())), submitter("bob", (2, 100, job())))
    found = of(cycle(both), "alice")

    assert ("share", 4.0, 4.0) == (found.cause, found.share, found.used)
    assert 96 == found.count


def test_who_is_below_its_share_waits_for_slots() -> None:
    """
    Alice has the better priority, and had nothing to share with until now: the slots are taken, she has none of them.
    """
    one = pool([busy("slot1_1@m", "bob")], submitter("alice", (1, 1, job())))
    one.submitter("Submitter.bob", submitter("bob", running=1))
    found = of(run(one, {"alice": 1.0, "bob": 9.0}, Preemption()), "alice")

    assert ("busy", 0.0, 0.9) == (found.cause, found.used, round(found.share, 9))


def test_each_limit_has_its_own_word() -> None:
    """A ceiling of 2, a quota of 3 and a concurrency limit of 1 each leave the rest of 8 cores free."""
    ceiling = Standing(principal=Principal(ceiling=2.0), factor=1.0)
    asks = submitter("phys.alice", (1, 9, job()))
    groups = Policy(Tree({"phys": GroupRule(quota=3)}))
    limited = {**job(), "ConcurrencyLimits": "matlab"}

    at_ceiling = of(cycle(pool([slot()], asks), standings={"phys.alice": ceiling}), "phys.alice")
    at_quota = of(cycle(pool([slot()], asks), groups=groups), "phys.alice")
    at_limit = of(
        cycle(pool([slot()], submitter("bob", (1, 9, limited))), limits=LimitRules({"matlab": 1.0})), "bob"
    )

    assert ("ceiling", 2, 2.0) == (at_ceiling.cause, at_ceiling.given, at_ceiling.used)
    assert ("quota", 3, 3.0) == (at_quota.cause, at_quota.given, at_quota.share)
    assert ("concurrency", 1, ["matlab"]) == (at_limit.cause, at_limit.given, at_limit.limits)


@pytest.mark.parametrize(
    ("ads", "cause"),
    [([], "no_slots"), ([slot()], "no_match"), ([slot(Requirements=Expr("TARGET.Nice"))], "no_match")],
)
def test_a_job_that_nothing_suits_is_no_matter_of_shares(ads: list[Ad], cause: str) -> None:
    """Neither where there is nothing at all."""
    one = pool(ads, submitter("alice", (1, 1, job("TARGET.Speed > 1"))))
    assert (cause, 0) == (of(cycle(one), "alice").cause, of(cycle(one), "alice").able)


def test_a_job_that_cannot_be_is_its_own_fault() -> None:
    """A request that is no amount."""
    one = pool([slot()], submitter("alice", (1, 1, job(RequestCpus=-1))))
    assert "fault" == of(cycle(one), "alice").cause


@pytest.mark.parametrize(
    ("rules", "ad", "rule"),
    [
        (Preemption(consider=False, requirements=BETTER.requirements), {}, "off"),
        (Preemption(), {}, "no_rule"),
        (BETTER, {"UserPreemption": False}, "machine"),
        (BETTER, {"CurrentRank": 5.0}, "rank"),
        (Preemption(requirements=parse("RemoteUserPrio > 1000")), {}, "requirements"),
    ],
)
def test_what_protects_the_slots_of_others_is_told(rules: Preemption, ad: Ad, rule: str) -> None:
    """Two slots of bob would suit, one is too small for it, and alice's own does not count."""
    wants = job("TARGET.Memory >= RequestMemory", RequestMemory=200)
    slots = [{**busy(f"slot1_{n}@m", "bob"), **ad} for n in range(2)]
    slots += [busy("slot1_8@m", "alice"), {**busy("slot1_9@m", "bob", **ad), "Memory": 100}]
    found = of(
        run(pool(slots, submitter("alice", (1, 9, wants))), {"alice": 1.0, "bob": 9.0}, rules), "alice"
    )

    assert [Withheld(rule=rule, slots=2)] == found.withheld


def test_who_has_its_share_is_told_that_the_rules_allow_more() -> None:
    """Alice (P = 10) has 3 of bob's 4 cores, which is her share; the rules would let her have the fourth."""
    one = pool([busy(f"slot1_{n}@m", "bob") for n in range(4)], submitter("alice", (1, 9, job())))
    one.submitter("Submitter.bob", submitter("bob", running=4))
    found = of(run(one, {"alice": 10.0, "bob": 30.0}), "alice")

    assert ("share", 3, 6) == (found.cause, found.given, found.count)
    assert ["share"] == [each.rule for each in found.withheld]


def test_what_is_different_all_the_time_is_no_news_and_what_is_given_is() -> None:
    """
    Another number of idle jobs or of slots in use is not recorded again; a part that was given is, and so is another reason.
    """
    said = Rejection(
        submitter="alice", schedd="ap", autocluster=1, count=3, reason="x", slots=4, cause="busy", asked=3
    )
    before = {("alice", "ap", 1): said}

    def changed(**fields: Any) -> Rejection:
        return Rejection(**{**{name: getattr(said, name) for name in said.__struct_fields__}, **fields})

    same = changed(
        count=5, asked=5, used=2.0, share=1.0, cause="share", withheld=[Withheld(rule="rank", slots=1)]
    )
    assert [] == fresh([same], before)
    for news in (changed(given=1), changed(able=2), changed(cause="quota"), changed(slots=5)):
        assert [news] == fresh([news], before)


def test_a_request_that_depends_on_the_slot_is_no_fault_where_there_is_none_to_ask() -> None:
    """Without any slot, and with one that is taken."""
    wants = submitter("alice", (1, 1, job(RequestMemory=Expr("TARGET.Memory / 3"))))
    assert "no_slots" == of(cycle(pool([], wants)), "alice").cause
    assert "busy" == of(cycle(pool([slot(State="Claimed")], wants)), "alice").cause


@pytest.mark.parametrize(
    ("start", "requirements", "times"),
    [
        ("true", "TARGET.Memory >= RequestMemory", 1),
        ("TARGET.ProcId < 1000", "TARGET.Memory >= RequestMemory", 20),
        ("true", "TARGET.Memory >= RequestMemory && ProcId >= 0", 20),
    ],
)
def test_jobs_that_nobody_can_tell_apart_are_explained_once(
    monkeypatch: pytest.MonkeyPatch, start: str, requirements: str, times: int
) -> None:
    """What is said of each is the same as if it was the only one."""
    looked: list[ClassAd] = []
    explain = Explainer.explain

    def counted(self: Explainer, job: ClassAd) -> Explanation:
        looked.append(job)
        return explain(self, job)

    def asking(number: int) -> Ad:
        return {**job(), "ProcId": number, "RequestMemory": 1 << 30, "Requirements": Expr(requirements)}

    one = pool([slot(Start=Expr(start))])
    for number in range(20):
        one.submitter(f"Submitter.u{number}", submitter(f"u{number}", (1, 1, asking(number))))
    monkeypatch.setattr(Explainer, "explain", counted)

    outcome = cycle(one)

    assert times == len(looked)
    assert 20 == len(outcome.rejections)
    alone = pool([slot(Start=Expr(start))], submitter("u7", (1, 1, asking(7))))
    assert of(cycle(alone), "u7").clauses == of(outcome, "u7").clauses
