"""Negotiation cycles over ads."""

from kettle.classad import Context
from kettle.negotiator.domain.cycle import fresh, negotiate
from kettle.negotiator.domain.pool import Pool
from kettle.negotiator.domain.reasons import BUSY, NO_MATCH, NO_SLOTS, Reasons
from kettle.wire.ads import Ad, Expr
from kettle.wire.ads.daemon import ResourceRequest, SlotSecret, SubmitterAd
from kettle.wire.subjects import key


def slot(name: str = "slot1@m", cpus: int = 8, memory: int = 8192, **more: int | str) -> Ad:
    return {
        "Name": name,
        "State": "Unclaimed",
        "PartitionableSlot": True,
        "Cpus": cpus,
        "Memory": memory,
        "Disk": 1_000_000,
        "TotalSlotCpus": 8,
        "TotalSlotMemory": 8192,
        "TotalSlotDisk": 1_000_000,
        "Requirements": Expr("true"),
        **more,
    }


def job(requirements: str = "TARGET.Memory >= RequestMemory", **more: int | Expr) -> Ad:
    return {
        "RequestCpus": 1,
        "RequestMemory": 128,
        "RequestDisk": 1024,
        "Requirements": Expr(requirements),
        **more,
    }


def submitter(name: str, *requests: tuple[int, int, Ad]) -> SubmitterAd:
    listed = [ResourceRequest(autocluster=a, count=n, ad=ad) for a, n, ad in requests]
    idle = sum(r.count for r in listed)
    return SubmitterAd(name=name, schedd="ap", idle=idle, running=0, held=0, requests=listed)


def pool(slots: list[Ad], *submitters: SubmitterAd) -> Pool:
    made = Pool()
    for ad in slots:
        name = key(str(ad["Name"]))
        made.slot(name, ad)
        made.secret(name, SlotSecret(startd="m", capability=f"secret of {ad['Name']}"))
    for demand in submitters:
        made.submitter(f"Submitter.{demand.name}", demand)
    return made


def test_a_partitionable_slot_takes_as_many_as_fit() -> None:
    """
    Eight cores take eight of ten one-core jobs; the other two wait because all matching slots are busy.
    """
    outcome = negotiate(pool([slot()], submitter("alice", (1, 10, job()))), Reasons(), now=0.0, trust=2.0)

    assert [8] == [m.count for m in outcome.matches]
    assert [(2, BUSY)] == [(r.count, r.reason) for r in outcome.rejections]
    assert "secret of slot1@m" == outcome.messages["ap"][0].capability


def test_two_submitters_get_equal_shares() -> None:
    """
    Who asks for everything gets half if somebody else asks for everything too.
    """
    both = pool([slot()], submitter("alice", (1, 100, job())), submitter("bob", (2, 100, job())))
    given = {m.submitter: m.count for m in negotiate(both, Reasons(), now=0.0, trust=2.0).matches}

    assert {"alice": 4, "bob": 4} == given


def test_unused_shares_flow_to_the_others() -> None:
    """
    A submitter with one job leaves the rest of its share to the other.
    """
    both = pool([slot()], submitter("alice", (1, 100, job())), submitter("bob", (2, 1, job())))
    given = {m.submitter: m.count for m in negotiate(both, Reasons(), now=0.0, trust=2.0).matches}

    assert {"alice": 7, "bob": 1} == given


def test_an_impossible_request_is_explained_clause_by_clause() -> None:
    """
    The refusal names the clause and how many slots it refuses, as if nothing ran on them.
    """
    wants = job('TARGET.Memory >= RequestMemory && TARGET.Arch == "Z80"')
    outcome = negotiate(
        pool([slot("slot1@a"), slot("slot1@b", cpus=0)], submitter("alice", (1, 3, wants))),
        Reasons(),
        now=0.0,
        trust=2.0,
    )
    (rejection,) = outcome.rejections

    assert (NO_MATCH, 2, 3) == (rejection.reason, rejection.slots, rejection.count)
    assert [("job", 2)] == [(c.side, c.refuses) for c in rejection.clauses]
    assert "Z80" in rejection.clauses[0].text


def test_an_empty_pool_is_said_to_be_empty() -> None:
    """
    Without any slot the reason is that, not a clause.
    """
    outcome = negotiate(pool([], submitter("alice", (1, 1, job()))), Reasons(), now=0.0, trust=2.0)
    assert [NO_SLOTS] == [r.reason for r in outcome.rejections]


def test_what_was_given_is_not_given_again() -> None:
    """
    Until the ads show the effect of a match, or it is clear that there is none, neither slot nor demand is counted again.
    """
    one = pool([slot()], submitter("alice", (1, 3, job())))
    negotiate(one, Reasons(), now=0.0, trust=2.0)

    assert [] == negotiate(one, Reasons(), now=1.0, trust=2.0).matches
    assert [3] == [m.count for m in negotiate(one, Reasons(), now=2.5, trust=2.0).matches]


def test_a_new_ad_replaces_what_was_assumed() -> None:
    """
    A slot that says itself what is left is believed.
    """
    one = pool([slot()], submitter("alice", (1, 8, job())))
    negotiate(one, Reasons(), now=0.0, trust=2.0)
    one.slot(key("slot1@m"), slot(cpus=5))
    one.submitter("Submitter.alice", submitter("alice", (1, 8, job())))

    assert [5] == [m.count for m in negotiate(one, Reasons(), now=0.5, trust=2.0).matches]


def test_only_news_is_recorded() -> None:
    """
    A refusal that differs from the last one only in how many jobs wait is no news.
    """
    first = negotiate(pool([], submitter("alice", (1, 3, job()))), Reasons(), now=0.0, trust=2.0).rejections
    second = negotiate(pool([], submitter("alice", (1, 2, job()))), Reasons(), now=1.0, trust=2.0).rejections
    before = {("alice", "ap", 1): first[0]}

    assert (first, []) == (fresh(first, {}), fresh(second, before))


def test_rank_chooses_the_slot() -> None:
    """
    A job goes to the slot that it ranks highest.
    """
    ranked = job(Rank=Expr("TARGET.Speed"))
    slots = [slot("slot1@slow", Speed=1), slot("slot1@fast", Speed=9)]
    outcome = negotiate(pool(slots, submitter("alice", (1, 1, ranked))), Reasons(), now=0.0, trust=2.0)

    assert ["slot1@fast"] == [m.slot for m in outcome.matches]


def test_a_slot_is_known_by_the_key_of_its_ad() -> None:
    """
    An ad that came under another key than that of its name is matched with the capability of its own key.
    """
    odd = Pool()
    odd.slot("x", slot("y"))
    odd.secret("x", SlotSecret(startd="m", capability="of x"))
    odd.submitter("Submitter.alice", submitter("alice", (1, 1, job())))
    outcome = negotiate(odd, Reasons(), now=0.0, trust=2.0)

    assert [("y", "of x")] == [(m.slot, m.capability) for m in outcome.messages["ap"]]
    assert [] == negotiate(odd, Reasons(), now=1.0, trust=2.0).matches


def test_a_demand_that_cannot_be_is_refused_by_its_attribute() -> None:
    """
    The record says which attribute is wrong, and others get what they ask for.
    """
    wrong = job(RequestCpus=Expr('real("INF")'))
    outcome = negotiate(
        pool([slot()], submitter("alice", (1, 3, wrong), (2, 1, job()))), Reasons(), now=0.0, trust=2.0
    )
    assert [(1, "RequestCpus is no amount")] == [(r.autocluster, r.reason) for r in outcome.rejections]
    assert [2] == [m.autocluster for m in outcome.matches]


def test_time_comes_from_outside() -> None:
    """
    Requirements may depend on the time that is passed in.
    """
    early = pool([slot()], submitter("alice", (1, 1, job("time() > 100"))))
    before = negotiate(early, Reasons(), now=0.0, trust=2.0, context=Context(now=lambda: 50))
    after = negotiate(early, Reasons(), now=0.0, trust=2.0, context=Context(now=lambda: 150))

    assert ([], 1) == (before.matches, len(after.matches))


def test_an_old_assumption_is_not_counted_again() -> None:
    """
    What was given and showed no effect in time is forgotten, also when the slot is given again.
    """
    one = pool([slot(cpus=4)], submitter("alice", (1, 3, job())))
    for now in (0.0, 2.5):
        negotiate(one, Reasons(), now=now, trust=2.0)
    one.submitter("Submitter.bob", submitter("bob", (2, 1, job())))

    assert ["bob"] == [m.submitter for m in negotiate(one, Reasons(), now=3.0, trust=2.0).matches]


def test_only_what_makes_a_match_possible_stirs_the_pool() -> None:
    """
    Less demand and a pulse without news are no reason for a cycle; more demand, a change and a spent match are.
    """
    one = pool([slot(cpus=0, MyCurrentTime=1)], submitter("alice", (1, 3, job())))

    def stirs() -> bool:
        stirred, one.stirred = one.stirred, False
        return stirred

    assert stirs()
    one.slot(key("slot1@m"), slot(cpus=0, MyCurrentTime=2))
    one.submitter("Submitter.alice", submitter("alice", (1, 2, job())))
    assert not stirs()
    one.submitter("Submitter.alice", submitter("alice", (1, 3, job())))
    assert stirs()
    one.slot(key("slot1@m"), slot(cpus=4))
    assert stirs()
    negotiate(one, Reasons(), now=0.0, trust=2.0)
    one.slot(key("slot1@m"), slot(cpus=4))
    assert stirs()


def test_a_cycle_explains_no_more_than_it_has_time_for() -> None:
    """
    What is not explained in one cycle comes first in the next, and what is known is not worked out again.
    """
    many = [slot(f"slot1@m{i}") for i in range(3)]
    wants = [(n, 1, job("TARGET.Speed > 1", RequestCpus=9)) for n in range(250)]
    big, reasons = pool(many, submitter("alice", *wants)), Reasons()
    outcomes = [negotiate(big, reasons, now=0.0, trust=2.0) for _ in range(3)]

    assert [100, 200, 250] == [len(outcome.rejections) for outcome in outcomes]
    assert [0.0, 0.0, None] == [outcome.again for outcome in outcomes]


def test_an_explanation_follows_the_slots_within_seconds() -> None:
    """
    It holds for two seconds while slots change, and the cycle says when it is to be looked at again.
    """
    changing, reasons = pool([slot()], submitter("alice", (1, 1, job("TARGET.Speed > 1")))), Reasons()
    changing.slot(key("slot1@m"), slot(cpus=0))
    assert [NO_MATCH] == [r.reason for r in negotiate(changing, reasons, now=0.0, trust=2.0).rejections]
    changing.slot(key("slot1@m"), slot(cpus=0, Speed=2))
    soon = negotiate(changing, reasons, now=1.0, trust=2.0)

    assert ([NO_MATCH], 2.0) == ([r.reason for r in soon.rejections], soon.again)
    assert [BUSY] == [r.reason for r in negotiate(changing, reasons, now=2.0, trust=2.0).rejections]
