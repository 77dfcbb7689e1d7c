"""Negotiation cycles over ads."""

from collections import Counter

import msgspec
import pytest

from kettle.classad import Context
from kettle_services.condor.dagman.kept_outputs import preference
from kettle_services.negotiator.domain.cycle import fresh, negotiate
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.rejections import BUSY, NO_MATCH, NO_SLOTS, Reasons
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.ads.daemon import ResourceRequest, SlotSecret, SubmitterAd
from kettle_wire.subjects import slot_key


def slot(name: str = "slot1@m", cpus: int = 8, memory: int = 8192, **more: Scalar) -> Ad:
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


def submitter(name: str, *requests: tuple[int, int, Ad], running: int = 0) -> SubmitterAd:
    listed = [ResourceRequest(autocluster=a, count=n, ad=ad) for a, n, ad in requests]
    idle = sum(r.count for r in listed)
    return SubmitterAd(name=name, schedd="ap", idle=idle, running=running, held=0, requests=listed)


def pool(slots: list[Ad], *submitters: SubmitterAd) -> Pool:
    made = Pool()
    for ad in slots:
        name = slot_key("m", str(ad["Name"]))
        made.slot(name, ad)
        made.secret(name, SlotSecret(startd="m", capability=f"secret of {ad['Name']}"))
    for demand in submitters:
        made.submitter(f"Submitter.{demand.name}", demand)
    return made


@pytest.mark.parametrize("state", ["Unclaimed", "Backfill"])
def test_a_partitionable_slot_takes_as_many_as_fit(state: str) -> None:
    """
    Eight cores take eight of ten one-core jobs; the other two wait because all matching slots are busy. What the slot does
    for its owner meanwhile is in nobody's way.
    """
    outcome = negotiate(
        pool([slot(State=state)], submitter("alice", (1, 10, job()))), Reasons(), now=0.0, trust=2.0
    )

    assert [8] == [m.count for m in outcome.matches]
    assert [(2, BUSY)] == [(r.count, r.reason) for r in outcome.rejections]
    assert "secret of slot1@m" == outcome.messages["ap"][0].capability


def test_two_submitters_get_equal_shares() -> None:
    """Who asks for everything gets half if somebody else asks for everything too."""
    both = pool([slot()], submitter("alice", (1, 100, job())), submitter("bob", (2, 100, job())))
    given = {m.submitter: m.count for m in negotiate(both, Reasons(), now=0.0, trust=2.0).matches}

    assert {"alice": 4, "bob": 4} == given


def test_unused_shares_flow_to_the_others() -> None:
    """A submitter with one job leaves the rest of its share to the other."""
    both = pool([slot()], submitter("alice", (1, 100, job())), submitter("bob", (2, 1, job())))
    given = {m.submitter: m.count for m in negotiate(both, Reasons(), now=0.0, trust=2.0).matches}

    assert {"alice": 7, "bob": 1} == given


@pytest.mark.parametrize("fed_back", [True, False])
def test_who_has_least_is_served_first(fed_back: bool) -> None:
    """
    Where one slot comes free at a time two equal submitters get half of them each, also before their ads show it.
    """
    got: Counter[str] = Counter()
    one = pool([], submitter("alice", (1, 1000, job())), submitter("bob", (1, 1000, job())))
    for cycle in range(100):
        name = f"slot{cycle}@m"
        one.slot(slot_key("m", name), slot(name, cpus=1))
        one.secret(slot_key("m", name), SlotSecret(startd="m", capability="c"))
        (match,) = negotiate(one, Reasons(), now=float(cycle), trust=1000.0, cycle=cycle + 1).matches
        got[match.submitter] += 1
        if fed_back:
            one.slot(
                slot_key("m", name), slot(name, cpus=1, State="Claimed", AccountingGroup=match.submitter)
            )

    assert {"alice": 50, "bob": 50} == dict(got)


def test_a_submitter_with_two_schedds_counts_as_one() -> None:
    """The schedd of a submitter at which less runs comes first."""
    one = pool([slot(cpus=1)], submitter("bob", (1, 9, job()), running=3))
    for schedd, running in (("a", 2), ("b", 1)):
        ad = submitter("alice", (1, 9, job()), running=running)
        one.submitter(f"Submitter.{schedd}", msgspec.structs.replace(ad, schedd=schedd))
    assert ["Submitter.b", "Submitter.a", "Submitter.bob"] == [demand.key for demand in one.demands()]


def test_two_ads_with_one_name_are_two_demands() -> None:
    """What is promised to one ad of a submitter at a schedd is not asked for again by it."""
    one = pool([slot()])
    for name in ("k1", "k2"):
        one.submitter(name, submitter("alice", (1, 2, job())))
    matches = [m for now in range(5) for m in negotiate(one, Reasons(), now=now, trust=100.0).matches]

    assert 4 == sum(m.count for m in matches)


def test_a_request_that_fits_nowhere_is_said_to() -> None:
    """Five hundred cores are more than any machine has, whatever runs there."""
    wants = job("true", RequestCpus=500)
    (rejection,) = negotiate(
        pool([slot("slot1@a"), slot("slot1@b", cpus=0)], submitter("alice", (1, 1, wants))),
        Reasons(),
        now=0.0,
        trust=2.0,
    ).rejections

    assert NO_MATCH == rejection.reason
    assert [("RequestCpus = 500 does not fit", 2)] == [(c.text, c.refuses) for c in rejection.clauses]


@pytest.mark.parametrize("state", ["unclaimed", "Claimed", Expr('strcat("Un", "claimed")'), True, 1])
def test_only_a_slot_that_says_unclaimed_is_offered(state: Scalar) -> None:
    """The word as it is, not an expression for it: what a machine writes there is not evaluated."""
    several = pool([slot("slot1@a", State=state), slot("slot1@b"), slot("slot1@c", State=state)])
    assert ["slot1@b"] == [several.name_of(row) for row in several.offer().rows.tolist()]


@pytest.mark.parametrize("carved", ["true", 1, False, Expr("1 == 1")])
def test_only_a_slot_that_says_true_is_carved_out(carved: Scalar) -> None:
    """Explanations look at all other slots."""
    several = pool([slot("slot1@a", DynamicSlot=True), slot("slot1@b", DynamicSlot=carved), slot("slot1@c")])
    assert ["slot1@b", "slot1@c"] == [several.name_of(row) for row in several.machines().tolist()]


def test_an_impossible_request_is_explained_clause_by_clause() -> None:
    """The refusal names the clause and how many slots it refuses, as if nothing ran on them."""
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
    """Without any slot the reason is that, not a clause."""
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
    """A slot that says itself what is left is believed."""
    one = pool([slot()], submitter("alice", (1, 8, job())))
    negotiate(one, Reasons(), now=0.0, trust=2.0)
    one.slot(slot_key("m", "slot1@m"), slot(cpus=5))
    one.submitter("Submitter.alice", submitter("alice", (1, 8, job())))

    assert [5] == [m.count for m in negotiate(one, Reasons(), now=0.5, trust=2.0).matches]


def test_only_news_is_recorded() -> None:
    """A refusal that differs from the last one only in how many jobs wait is no news."""
    first = negotiate(pool([], submitter("alice", (1, 3, job()))), Reasons(), now=0.0, trust=2.0).rejections
    second = negotiate(pool([], submitter("alice", (1, 2, job()))), Reasons(), now=1.0, trust=2.0).rejections
    before = {("alice", "ap", 1): first[0]}

    assert (first, []) == (fresh(first, {}), fresh(second, before))


def test_rank_chooses_the_slot() -> None:
    """A job goes to the slot that it ranks highest."""
    ranked = job(Rank=Expr("TARGET.Speed"))
    slots = [slot("slot1@slow", Speed=1), slot("slot1@fast", Speed=9)]
    outcome = negotiate(pool(slots, submitter("alice", (1, 1, ranked))), Reasons(), now=0.0, trust=2.0)

    assert ["slot1@fast"] == [m.slot for m in outcome.matches]


@pytest.mark.parametrize(("free", "chosen"), [(8, "slot1@near"), (0, "slot1@far")])
def test_a_job_goes_where_the_results_are_that_it_reads(free: int, chosen: str) -> None:
    """If there is room; otherwise it goes elsewhere at once."""
    near = slot("slot1@near", free, KeptOutputsOf="ap#3,ap#7")
    reads = job(Rank=preference("ap", [7]))
    outcome = negotiate(
        pool([slot("slot1@far"), near], submitter("alice", (1, 1, reads))), Reasons(), now=0.0, trust=2.0
    )
    assert [chosen] == [match.slot for match in outcome.matches]


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
    """The record says which attribute is wrong, and others get what they ask for."""
    wrong = job(RequestCpus=Expr('real("INF")'))
    outcome = negotiate(
        pool([slot()], submitter("alice", (1, 3, wrong), (2, 1, job()))), Reasons(), now=0.0, trust=2.0
    )
    assert [(1, "RequestCpus is no amount")] == [(r.autocluster, r.reason) for r in outcome.rejections]
    assert [2] == [m.autocluster for m in outcome.matches]


def test_time_comes_from_outside() -> None:
    """Requirements may depend on the time that is passed in."""
    early = pool([slot()], submitter("alice", (1, 1, job("time() > 100"))))
    before = negotiate(early, Reasons(), now=0.0, trust=2.0, context=Context(now=lambda: 50))
    after = negotiate(early, Reasons(), now=0.0, trust=2.0, context=Context(now=lambda: 150))

    assert ([], 1) == (before.matches, len(after.matches))


def test_an_old_assumption_is_not_counted_again() -> None:
    """What was given and showed no effect in time is forgotten, also when the slot is given again."""
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
    one.slot(slot_key("m", "slot1@m"), slot(cpus=0, MyCurrentTime=2))
    one.submitter("Submitter.alice", submitter("alice", (1, 2, job())))
    assert not stirs()
    one.submitter("Submitter.alice", submitter("alice", (1, 3, job())))
    assert stirs()
    one.slot(slot_key("m", "slot1@m"), slot(cpus=4))
    assert stirs()
    negotiate(one, Reasons(), now=0.0, trust=2.0)
    one.slot(slot_key("m", "slot1@m"), slot(cpus=4))
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


def gpus(name: str, free: int) -> Ad:
    return slot(f"slot1@{name}", GPUs=free, TotalSlotGPUs=2, WithinResourceLimits=True)


@pytest.mark.parametrize("ask", [1, Expr("3 - 2"), Expr("MY.Many")])
def test_gpus_are_counted_while_they_are_given_away(ask: int | Expr) -> None:
    """Hosts with a GPU or two are served in one cycle, and what was promised counts in the next one too."""
    wants = job("TARGET.GPUs >= RequestGPUs", RequestGPUs=ask, Many=1)
    having = pool(
        [gpus("a", 1), gpus("b", 2), gpus("c", 0), slot("slot1@d")], submitter("alice", (1, 9, wants))
    )

    outcome = negotiate(having, Reasons(), now=0.0, trust=2.0)
    again = negotiate(having, Reasons(), now=1.0, trust=2.0)

    assert {"slot1@a": 1, "slot1@b": 2} == {match.slot: match.count for match in outcome.matches}
    assert [(6, BUSY)] == [(each.count, each.reason) for each in outcome.rejections]
    assert [] == again.matches


def test_a_resource_of_which_a_slot_knows_nothing_is_not_counted() -> None:
    """Its startd does not either; who wants only slots that know it says so in its requirements."""
    wants = job("true", RequestLicences=1)
    having = pool(
        [slot(), slot("slot1@n", Licences=1, TotalSlotLicences=1)], submitter("alice", (1, 9, wants))
    )

    assert {"slot1@m": 8, "slot1@n": 1} == {
        match.slot: match.count for match in negotiate(having, Reasons(), now=0.0, trust=2.0).matches
    }


def test_an_explanation_follows_the_slots_within_seconds() -> None:
    """It holds for two seconds while slots change, and the cycle says when it is to be looked at again."""
    changing, reasons = pool([slot()], submitter("alice", (1, 1, job("TARGET.Speed > 1")))), Reasons()
    changing.slot(slot_key("m", "slot1@m"), slot(cpus=0))
    assert [NO_MATCH] == [r.reason for r in negotiate(changing, reasons, now=0.0, trust=2.0).rejections]
    changing.slot(slot_key("m", "slot1@m"), slot(cpus=0, Speed=2))
    soon = negotiate(changing, reasons, now=1.0, trust=2.0)

    assert ([NO_MATCH], 2.0) == ([r.reason for r in soon.rejections], soon.again)
    assert [BUSY] == [r.reason for r in negotiate(changing, reasons, now=2.0, trust=2.0).rejections]


def busy(name: str, rank: float, **more: Scalar) -> Ad:
    """A slot of a machine that likes jobs as they say, with one of this rank."""
    taken: Ad = {"State": "Claimed", "PartitionableSlot": False, "CurrentRank": rank}
    return slot(name, 1) | taken | {"Rank": Expr("TARGET.Liking"), **more}


def test_a_job_that_a_slot_ranks_higher_is_matched_to_it_if_none_is_free() -> None:
    """
    The free slot comes first, whatever the others think; then those whose RANK is greater for the job than for its own.
    """
    slots = [busy("slot1_1@m", 1.0), busy("slot1_2@m", 2.0), busy("slot1_3@m", 0.0), slot("slot1@n", 1)]
    jobs = submitter("alice", (1, 10, job(Liking=2)))

    matches = negotiate(pool(slots, jobs), Reasons(), now=0.0, trust=2.0).matches

    assert ["slot1@n", "slot1_1@m", "slot1_3@m"] == [match.slot for match in matches]
    assert [1, 1, 1] == [match.count for match in matches]


def test_nobody_preempts_where_the_slot_does_not_say_how() -> None:
    """
    No secret, a RANK that is the same for all jobs or undefined, Requirements that are false: the job waits.
    """
    slots = [
        busy("slot1_1@m", 0.0),
        busy("slot1_2@m", 0.0, Rank=0.0),
        busy("slot1_3@m", 0.0, Rank=Expr("TARGET.NoSuchThing")),
        busy("slot1_4@m", 0.0, Requirements=False),
    ]
    found = pool(slots, submitter("alice", (1, 10, job(Liking=2))))
    found.secret(slot_key("m", "slot1_1@m"), None)

    outcome = negotiate(found, Reasons(), now=0.0, trust=2.0)

    assert [] == outcome.matches
    assert [10] == [rejection.count for rejection in outcome.rejections]


def test_a_slot_is_preempted_once() -> None:
    """
    Who was given a claimed slot has it until its ad says otherwise; the next cycle gives it to nobody else.
    """
    found = pool([busy("slot1_1@m", 0.0)], submitter("alice", (1, 1, job(Liking=2))))
    first = negotiate(found, Reasons(), now=0.0, trust=2.0).matches
    found.submitter("Submitter.bob", submitter("bob", (2, 1, job(Liking=3))))

    second = negotiate(found, Reasons(), now=1.0, trust=2.0).matches

    assert ["alice"] == [match.submitter for match in first]
    assert [] == second
