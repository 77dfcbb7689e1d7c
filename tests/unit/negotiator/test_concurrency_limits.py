"""Concurrency limits: never more than there is, whatever passes what on the way."""

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import NOTHING, ClassAd
from kettle.classad.columnar import Spending
from kettle.jobs.concurrency_limits import LimitsError, limits_of, text_of
from kettle.matchmaking import LimitRules
from kettle.matchmaking.candidates import Candidates
from kettle.matchmaking.concurrency_limits import MOST_TEXTS, Concurrency, WantedLimits
from kettle_services.negotiator.domain.concurrency_limits import SETTLES
from kettle_services.negotiator.domain.cycle import Outcome, negotiate
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.rejections import Reasons
from kettle_wire.ads import Ad, Expr
from kettle_wire.ads.daemon import SubmitterAd

from .test_cycle import job, pool, slot, submitter

RULES = LimitRules({"matlab": 3.0, "sw.big": 5.0}, {"sw": 2.0}, 100.0)


def using(text: str | Expr) -> Ad:
    return {**job(), "ConcurrencyLimits": text}


def run(one: Pool, now: float = 0.0, cycle: int = 1) -> Outcome:
    return negotiate(one, Reasons(), now=now, trust=2.0, limits=RULES, cycle=cycle)


def given_by(outcome: Outcome) -> dict[int, int]:
    counts: Counter[int] = Counter()
    for match in outcome.matches:
        counts[match.autocluster] += match.count
    return dict(counts)


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("Matlab", {"matlab": 1.0}),
        ("b:2, a", {"a": 1.0, "b": 2.0}),
        ("sw.big:2.5", {"sw.big": 2.5}),
        ("a,A:2", {"a": 3.0}),
        ("", {}),
        ("a\t:\n2 ,b", {"a": 2.0, "b": 1.0}),
        ("a:0.00005,b:0.000001", {"a": 5e-05, "b": 1e-06}),
        ("a:1000000000000000", {"a": 1e15}),
    ],
)
def test_limits_are_read(text: str, uses: dict[str, float]) -> None:
    """Names without regard to case, a number behind a colon, 1 without."""
    assert uses == limits_of(text)
    assert uses == limits_of(text_of(uses))


@pytest.mark.parametrize(
    "text",
    [
        *("a b;c", "a:", "a:-1", "a:0", "1a", "a.b.c", "a:nan", ",".join(f"l{n}" for n in range(65))),
        *("a:0.0000009", f"a:0.{310 * '0'}1", "a:1000000000000001", "a:1000000000000000,a"),
        f"a{2047 * ' '}b",
    ],
)
def test_what_is_no_limit_is_refused(text: str) -> None:
    """
    Neither a name nor a number, a number with which nobody can count, and more text than a job has cause to write.
    """
    with pytest.raises(LimitsError):
        limits_of(text)


def test_what_runs_and_what_is_given_count_together() -> None:
    """
    Of 3 matlab one runs at another schedd: of 8 jobs that want one 2 get slots, and the rest are told what is reached.
    """
    busy = SubmitterAd(
        name="bob", schedd="other", idle=0, running=1, held=0, requests=[], limits={"matlab": 1.0}
    )
    one = pool([slot()], submitter("alice", (1, 8, using("matlab"))), busy)
    outcome = run(one)
    assert {1: 2} == given_by(outcome)
    assert ["a concurrency limit is reached: matlab"] == [r.reason for r in outcome.rejections]
    assert [{"matlab": 1.0}] == [m.limits for m in outcome.messages["ap"]]


def test_all_limits_of_a_job_have_to_fit() -> None:
    """
    sw.big is 5 and each job uses 2: 2 jobs, 1 is left. sw.small has the 2 of its prefix, anything else 100.
    """
    wants = [using("sw.big:2,other"), using("sw.big,matlab"), using("sw.small"), using("other:60"), job()]
    one = pool([slot()], submitter("alice", *((n, 2, ad) for n, ad in enumerate(wants, 1))))
    assert {1: 2, 2: 1, 3: 2, 4: 1, 5: 2} == given_by(run(one))


def test_an_expression_may_look_at_the_slot() -> None:
    """
    Slots of site a use the licences there, of which there are 3; those of site b others, of which there are hardly too few.
    """
    slots = [slot("slot1@a", Site="matlab"), slot("slot1@b", Site="elsewhere"), slot("slot1@c")]
    slots[2]["Cpus"] = 0
    one = pool(slots, submitter("alice", (1, 20, using(Expr("TARGET.Site")))))
    assert {"slot1@a": 3, "slot1@b": 8} == {match.slot: match.count for match in run(one).matches}


def test_what_is_no_list_of_limits_matches_nothing() -> None:
    """A job whose limits cannot be read gets no slot, and is told why."""
    outcome = run(pool([slot()], submitter("alice", (1, 1, using("a;b")))))
    assert [] == outcome.matches
    assert "is no concurrency limit" in outcome.rejections[0].reason


@pytest.mark.parametrize(
    "text", [f"x:0.{310 * '0'}1", Expr(f'strcat("x:0.{310 * "0"}1")'), f"a{16_000 * ' '}b"]
)
def test_nothing_that_a_job_says_ends_a_cycle(text: str | Expr) -> None:
    """
    A number so small that a division by it has no result, and a text that takes long to read, match nothing; others do.
    """
    one = pool([slot()], submitter("alice", (1, 8, using(text))), submitter("bob", (2, 1, job())))
    assert {2: 1} == given_by(run(one))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -100.0, 1e19])
def test_what_a_schedd_says_that_is_in_use_is_a_number(number: float) -> None:
    """With what is none no sum could be made, and less than nothing would make room."""
    said = submitter("bob")
    wrong = msgspec.msgpack.encode(msgspec.structs.replace(said, limits={"matlab": number}))
    with pytest.raises(msgspec.ValidationError, match="limits"):
        msgspec.msgpack.decode(wrong, type=SubmitterAd)
    right = msgspec.structs.replace(said, limits={"matlab": 1e18})
    assert right == msgspec.msgpack.decode(msgspec.msgpack.encode(right), type=SubmitterAd)


def test_there_is_room_for_no_more_jobs_than_can_be_counted() -> None:
    """The largest limit and the smallest number of it that a job may use make a whole number."""
    assert 2.0**53 == Concurrency(LimitRules({"x": 1e15}), {}).room({"x": 1e-6})


@pytest.mark.parametrize(("texts", "given"), [(MOST_TEXTS, MOST_TEXTS), (MOST_TEXTS + 1, 0)])
def test_an_expression_has_few_values(texts: int, given: int) -> None:
    """
    Each is work in every cycle: a job whose limits are others in each of very many slots matches none, and is told why.
    """
    slots = [slot(f"slot1@m{n:03}", cpus=1, Site=f"s{n}") for n in range(texts)]
    outcome = run(pool(slots, submitter("alice", (1, 100, using(Expr("TARGET.Site"))))))
    assert given == len(outcome.matches)
    assert ("more than 64 values" in outcome.rejections[0].reason) is not given


def test_slots_come_in_their_order_whatever_a_job_uses_there() -> None:
    """
    Of slots with licences and others in turns the first ones are taken; once there is no licence more, the others only.
    """
    slots = [slot(f"slot1@m{n:03}", cpus=1, Site=("matlab", "other")[n % 2]) for n in range(40)]
    outcome = run(pool(slots, submitter("alice", (1, 10, using(Expr("TARGET.Site"))))))
    taken = [0, 1, 2, 3, 4, 5, 7, 9, 11, 13]
    assert [f"slot1@m{n:03}" for n in taken] == sorted(match.slot for match in outcome.matches)
    assert {"matlab": 3, "other": 7} == Counter(name for match in outcome.matches for name in match.limits)


def test_what_is_full_is_not_looked_at_again() -> None:
    """
    Stretches of slots in which a job uses what there is no more of are passed over, however many there are.
    """
    one = pool([slot(f"slot1@m{n:03}", Site=("a", "b")[n % 2]) for n in range(40)])
    offer, ad = one.offer(), ClassAd.from_wire(using(Expr("TARGET.Site")))
    found = Candidates(offer.rows, {"Cpus": 1.0}, np.ones(40, np.int64))
    parts = WantedLimits(ad).divided(
        found, ad, offer, NOTHING, Spending(), lambda uses: 0.0 if "a" in uses else 1.0
    )
    assert {"a": 1, "b": 20} == Counter(name for _, uses in parts for name in uses)


def test_each_match_says_what_its_jobs_use() -> None:
    """
    A slot on which the job uses something else once there is less left of it has two matches, each with its own limits.
    """
    choice = Expr('ifThenElse(TARGET.Cpus > 4, "matlab", "other")')
    one = pool([slot()], submitter("alice", (1, 8, using(choice))), submitter("bob", (2, 1, job())))
    outcome = negotiate(one, Reasons(), now=0.0, trust=2.0, cycle=1)
    assert {"matlab": 4, "other": 3} == {name: m.count for m in outcome.matches for name in m.limits}


def test_a_match_counts_until_its_schedd_speaks_of_it() -> None:
    """
    An ad that was made before the matches came does not give them back; one that knows of the cycle says what is so.
    """
    asks = submitter("alice", (1, 8, using("matlab")))
    one = pool([slot()], asks)
    assert {1: 3} == given_by(run(one, cycle=7))

    one.slot("slot1@m", None)
    again = pool([slot()])
    for name, ad in (("k", {**slot("slot9@m")}),):
        one.slot(name, ad)
        one.secret(name, next(iter(again.secrets.values())))
    one.submitter("Submitter.alice", msgspec.structs.replace(asks, cycle=6))
    assert {} == given_by(run(one, now=1.0, cycle=8))
    one.submitter("Submitter.alice", msgspec.structs.replace(asks, cycle=7, limits={"matlab": 2.0}))
    assert one.stirred
    assert {1: 1} == given_by(run(one, now=2.0, cycle=8))


@pytest.mark.parametrize(
    ("cycle", "limits", "stirs"),
    [
        (6, {}, False),
        (7, {}, True),
        (7, {"matlab": 2.0}, True),
        (7, {"matlab": 3.0}, False),
        (8, {"matlab": 2.0, "other": 1.0}, True),
    ],
)
def test_a_cycle_follows_when_a_limit_has_room_again(
    cycle: int, limits: dict[str, float], stirs: bool
) -> None:
    """
    Less in use than what was matched, or than was said before, may be for others; more, or what was known, is not.
    """
    asks = submitter("alice", (1, 3, using("matlab")))
    one = pool([slot()], asks)
    run(one, cycle=7)
    assert not one.stirred
    done = msgspec.structs.replace(asks, requests=[], cycle=cycle, limits=limits, claims=3)
    one.submitter("Submitter.alice", done)
    assert one.stirred is stirs
    one.stirred = False
    one.submitter("Submitter.alice", done)
    assert not one.stirred
    one.submitter("Submitter.alice", msgspec.structs.replace(done, limits={}))
    assert one.stirred is bool(limits)


def test_what_came_to_nothing_is_given_again() -> None:
    """If a schedd is not heard of, its matches count until they would long have been taken."""
    one = pool([slot("slot1@a"), slot("slot1@b")], submitter("alice", (1, 8, using("matlab"))))
    assert {1: 3} == given_by(run(one))
    assert {} == given_by(run(one, now=SETTLES - 1, cycle=2))
    assert {1: 3} == given_by(run(one, now=SETTLES + 1, cycle=2))


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(("cycle", "take", "late", "end")), st.integers(1, 3)), max_size=12
    ),
)
def test_more_than_there_is_never_runs(steps: list[tuple[str, int]]) -> None:
    """
    Cycles, matches that come late, ads that pass them, claims that end, in any order: what claims and matches use together is
    never more than the limit.
    """
    asks = submitter("alice", (1, 50, using("matlab")))
    one, cycle, known = pool([slot("slot1@m", 64, 64 * 128)], asks), 0, 0
    waiting: list[tuple[int, int]] = []
    claims = 0
    for step, number in steps:
        if step == "cycle":
            outcome = run(one, now=float(cycle), cycle=cycle + 1)
            if outcome.matches:
                cycle += 1
                waiting.append((cycle, sum(match.count for match in outcome.matches)))
        elif step == "take" and waiting:
            known, count = waiting.pop(0)
            claims += count
        elif step == "end":
            claims = max(0, claims - number)
        said = msgspec.structs.replace(asks, cycle=known, limits={"matlab": float(claims)} if claims else {})
        if step != "late":
            one.submitter("Submitter.alice", said)
        assert claims + sum(count for _, count in waiting) <= 3
