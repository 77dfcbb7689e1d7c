"""Negotiation cycles over ads."""

from kettle.negotiator.domain.cycle import BUSY, NO_MATCH, NO_SLOTS, fresh, negotiate
from kettle.negotiator.domain.pool import Pool
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
    outcome = negotiate(pool([slot()], submitter("alice", (1, 10, job()))), now=0.0, trust=2.0)

    assert [8] == [m.count for m in outcome.matches]
    assert [(2, BUSY)] == [(r.count, r.reason) for r in outcome.rejections]
    assert "secret of slot1@m" == outcome.messages["ap"][0].capability


def test_two_submitters_get_equal_shares() -> None:
    """
    Who asks for everything gets half if somebody else asks for everything too.
    """
    both = pool([slot()], submitter("alice", (1, 100, job())), submitter("bob", (2, 100, job())))
    given = {m.submitter: m.count for m in negotiate(both, now=0.0, trust=2.0).matches}

    assert {"alice": 4, "bob": 4} == given


def test_unused_shares_flow_to_the_others() -> None:
    """
    A submitter with one job leaves the rest of its share to the other.
    """
    both = pool([slot()], submitter("alice", (1, 100, job())), submitter("bob", (2, 1, job())))
    given = {m.submitter: m.count for m in negotiate(both, now=0.0, trust=2.0).matches}

    assert {"alice": 7, "bob": 1} == given


def test_an_impossible_request_is_explained_clause_by_clause() -> None:
    """
    The refusal names the clause and how many slots it refuses, as if nothing ran on them.
    """
    wants = job('TARGET.Memory >= RequestMemory && TARGET.Arch == "Z80"')
    outcome = negotiate(
        pool([slot("slot1@a"), slot("slot1@b", cpus=0)], submitter("alice", (1, 3, wants))),
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
    outcome = negotiate(pool([], submitter("alice", (1, 1, job()))), now=0.0, trust=2.0)
    assert [NO_SLOTS] == [r.reason for r in outcome.rejections]


def test_what_was_given_is_not_given_again() -> None:
    """
    Until the ads show the effect of a match, or it is clear that there is none, neither slot nor demand is counted again.
    """
    one = pool([slot()], submitter("alice", (1, 3, job())))
    negotiate(one, now=0.0, trust=2.0)

    assert [] == negotiate(one, now=1.0, trust=2.0).matches
    assert [3] == [m.count for m in negotiate(one, now=2.5, trust=2.0).matches]


def test_a_new_ad_replaces_what_was_assumed() -> None:
    """
    A slot that says itself what is left is believed.
    """
    one = pool([slot()], submitter("alice", (1, 8, job())))
    negotiate(one, now=0.0, trust=2.0)
    one.slot(key("slot1@m"), slot(cpus=5))
    one.submitter("Submitter.alice", submitter("alice", (1, 8, job())))

    assert [5] == [m.count for m in negotiate(one, now=0.5, trust=2.0).matches]


def test_only_news_is_recorded() -> None:
    """
    A refusal that differs from the last one only in how many jobs wait is no news.
    """
    first = negotiate(pool([], submitter("alice", (1, 3, job()))), now=0.0, trust=2.0).rejections
    second = negotiate(pool([], submitter("alice", (1, 2, job()))), now=1.0, trust=2.0).rejections
    before = {("alice", "ap", 1): first[0]}

    assert (first, []) == (fresh(first, {}), fresh(second, before))


def test_rank_chooses_the_slot() -> None:
    """
    A job goes to the slot that it ranks highest.
    """
    ranked = job(Rank=Expr("TARGET.Speed"))
    slots = [slot("slot1@slow", Speed=1), slot("slot1@fast", Speed=9)]
    outcome = negotiate(pool(slots, submitter("alice", (1, 1, ranked))), now=0.0, trust=2.0)

    assert ["slot1@fast"] == [m.slot for m in outcome.matches]
