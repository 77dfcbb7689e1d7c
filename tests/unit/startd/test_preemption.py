"""RANK preempts: who may, what becomes of the job that has the slot, and who has the slot afterwards."""

import msgspec
import pytest

from kettle_services.startd.domain.ads import claim_ad
from kettle_services.startd.domain.claims import activation as attempts
from kettle_services.startd.domain.claims import preemption, requests
from kettle_services.startd.domain.policy import evaluation
from kettle_services.startd.domain.policy.draining import begin
from kettle_services.startd.domain.state.changes import (
    AttemptAccepted,
    Change,
    ClaimRemoved,
    ClaimWaiting,
    StarterConnected,
)
from kettle_services.startd.domain.state.claim import DrainInForce, Now
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.slot_transitions import state_of
from kettle_wire.ads import Ad, Scalar
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import Alive, ClaimKey, ClaimsDecided, Deactivation
from kettle_wire.jobs import JobId

from .hosts import KEY, NOW, activated, activation, claimed, machine, report, request

BETTER = ClaimKey("c2", "s2")
ENDED = Deactivation(key=KEY, job=JobId(1, 0), attempt=1, ending=Ending(code=1023, reason="removed"))
LATER = Now(clock=NOW.clock + 10.0, time=NOW.time + 10.0)


def happen(host: Machine, changes: list[Change]) -> None:
    for change in changes:
        host.apply(change)


def host(*, runs: bool = True, retirement: float = 100.0) -> Machine:
    """A machine that likes jobs as they say, with a claim on which a job runs or none yet."""
    one = machine(RANK="TARGET.Liking ?: 0", MaxJobRetirementTime=retirement)
    claimed(one, Liking=1)
    if runs:
        activated(one, activation(Liking=1))
        happen(one, [StarterConnected("c1", 1, 1)])
    return one


def ask(
    one: Machine,
    job: Ad | None = None,
    *,
    key: ClaimKey = BETTER,
    right: str | None = None,
    now: Now = NOW,
) -> ClaimsDecided:
    """Ask for the slot that the first claim has."""
    current = one.claims.get("c1")
    secret = right if right is not None or current is None else preemption.capability(one, current)
    command = request(key, ad={"Liking": 2, **(job or {})}, capability=secret or "gone", slot="slot1_1@host")
    reply, changes = requests.request_claims(one, command, now)
    happen(one, changes)
    return reply


def over(one: Machine, now: Now = NOW) -> None:
    happen(one, attempts.over(one, report(), now))


def test_the_better_claim_waits_while_the_job_retires() -> None:
    """Claimed/Busy -> Retiring: the slot says who is to come, and the answer is that the claim waits."""
    one = host()

    reply = ask(one)

    assert (["c2"], []) == (reply.waiting, reply.granted)
    assert ("Claimed", "Retiring") == state_of(one.claims["c1"])
    ad = claim_ad(one, one.claims["c1"], now=0.0)
    assert ("alice", 2.0, False) == (ad["PreemptingUser"], ad["PreemptingRank"], ad["Requirements"])
    assert [] == evaluation.evaluate(one, LATER)


def test_the_job_is_vacated_when_its_retirement_is_over() -> None:
    """
    Retiring -> Preempting -> Claimed/Idle of the other: 1018 is why, and the same slot is granted when it is asked again.
    """
    one = host(retirement=5.0)
    ask(one)

    happen(one, evaluation.evaluate(one, LATER))
    stop = one.claims["c1"].attempt.stop if one.claims["c1"].attempt is not None else None
    assert stop is not None
    assert (1018, False) == (stop.ending.code, stop.hard)
    assert ("Preempting", "Vacating") == state_of(one.claims["c1"])
    over(one, now=LATER)

    assert {"c2"} == set(one.claims)
    assert ("Claimed", "Idle") == state_of(one.claims["c2"])
    assert [("c2", "slot1_1@host")] == [(g.claim, g.slot) for g in ask(one, right="gone").granted]


def test_where_priorities_count_a_job_makes_room_for_one_that_is_liked_as_much() -> None:
    """
    With user_preemption the slot says so, and the job is vacated with 1019; one that is liked less is refused all the same, and
    so are both without it; if the better job goes away, the one that has the slot goes on.
    """
    one = host(retirement=5.0)
    assert [] == ask(one, {"Liking": 1}).waiting
    one.facts = msgspec.structs.replace(one.facts, user_preemption=True)
    assert claim_ad(one, one.claims["c1"], now=0.0)["UserPreemption"] is True
    assert [] == ask(one, {"Liking": 0}).waiting
    assert ["c2"] == ask(one, {"Liking": 1}).waiting
    heir = one.waits_for(one.claims["c1"])
    assert heir is not None
    happen(one, preemption.withdraw(one, heir, NOW))
    assert ("Claimed", "Busy") == state_of(one.claims["c1"])

    ask(one, {"Liking": 1})
    happen(one, evaluation.evaluate(one, LATER))
    stop = one.claims["c1"].attempt.stop if one.claims["c1"].attempt is not None else None
    assert stop is not None
    assert (1019, False) == (stop.ending.code, stop.hard)


def test_a_claim_that_is_released_with_the_one_that_waits_for_it_ends() -> None:
    """
    The job is not to go on because nobody waits any more: its own schedd has given the claim back with the same word.
    """
    one = host()
    ask(one)
    heir = one.waits_for(one.claims["c1"])
    assert heir is not None

    happen(one, requests.release(one, [KEY, heir.key], "enough", NOW))
    over(one)

    assert {} == one.claims
    assert {} == one.waiting


def test_an_idle_claim_makes_room_at_once() -> None:
    """Claimed/Idle -> Claimed/Idle of the better one: there is no job to wait for."""
    one = host(runs=False)

    assert ["c2"] == [grant.claim for grant in ask(one).granted]
    assert {"c2"} == set(one.claims)


def test_a_job_goes_on_when_the_better_claim_goes_away() -> None:
    """Retiring -> Busy (19): released, or not renewed by being asked for again."""
    for away in ("released", "lapsed"):
        one = host()
        ask(one)

        if away == "released":
            happen(one, requests.release(one, [BETTER], "", NOW))
        else:
            happen(one, requests.alive(one, _renewal(300.0), LATER)[1])
            happen(one, requests.expire(one, Now(clock=NOW.clock + 61.0, time=NOW.time + 61.0)))

        assert ("Claimed", "Busy") == state_of(one.claims["c1"])
        assert {} == one.waiting


def _renewal(seconds: float) -> Alive:
    return Alive(schedd="schedd", claims=[KEY], deadline=NOW.clock + seconds)


def test_asking_again_renews_and_changes_nothing_else() -> None:
    """A repeat is harmless, and keeps the waiting claim alive."""
    one = host()
    ask(one)
    before = state_of(one.claims["c1"])

    assert ["c2"] == ask(one, now=LATER).waiting
    assert LATER.clock + 60.0 == one.waiting["c2"].deadline
    assert before == state_of(one.claims["c1"])
    assert NOW.clock + 60.0 == one.next_deadline()


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"Liking": 1}, "RANK of the machine is 1 for the job, and 1 for the one that has the slot"),
        ({"RequestCpus": 99}, "the job requests more than the claim has"),
        ({"Requirements": False}, "START of the machine or Requirements of the job"),
    ],
)
def test_who_may_not_preempt_is_told_why(job: Ad, why: str) -> None:
    """RANK has to be greater, the slot large enough, and both sides willing; nothing happens to the job."""
    one = host()

    reply = ask(one, job)

    assert ([], []) == (reply.granted, reply.waiting)
    assert why in reply.reason
    assert ("Claimed", "Busy") == state_of(one.claims["c1"])


def test_a_match_of_the_free_slot_preempts_nobody() -> None:
    """
    The match names the claim that is to make room: that of the slot before, or of a claim before, is out of date.
    """
    one = host()

    assert "the match is out of date" == ask(one, right="right").reason
    assert "the match is out of date" == ask(one, right="0" * 64).reason
    assert ("Claimed", "Busy") == state_of(one.claims["c1"])


def test_there_is_one_waiting_claim_at_most() -> None:
    """Who comes second is refused, however well he is liked."""
    one = host()
    ask(one)

    assert "another waits" in ask(one, {"Liking": 9}, key=ClaimKey("c3", "s3")).reason
    assert {"c2"} == set(one.waiting)


def test_a_claim_whose_job_is_being_ended_has_one_heir_and_is_not_used_again() -> None:
    """
    The submit side ends the job: the first better claim waits, the claim ends with its job and the second is refused.
    """
    one = host()
    happen(one, attempts.deactivate(one, ENDED, NOW))
    assert ("Claimed", "Cleaning") == state_of(one.claims["c1"])

    waiting = ask(one).waiting
    second = ask(one, {"Liking": 9}, key=ClaimKey("c3", "s3"))
    over(one)

    assert ["c2"] == waiting
    assert ([], "the claim on the slot is ending, or another waits for it already") == (
        second.waiting,
        second.reason,
    )
    assert ({"c2"}, {}) == (set(one.claims), one.waiting)
    assert 3 == one.free(one.facts.slots[0]).cpus


def test_of_several_heirs_the_first_has_the_slot() -> None:
    """
    In a journal in which two claims wait for one, its resources are given once, and the other does not wait endlessly.
    """
    one = host()
    ask(one)
    other = msgspec.structs.replace(one.waiting["c2"], key=ClaimKey("c3", "s3"))

    happen(one, [ClaimWaiting(other), ClaimRemoved("c1")])

    assert ({"c2"}, {}) == (set(one.claims), one.waiting)


def test_the_rank_of_a_claim_is_that_of_the_job_that_runs() -> None:
    """
    A claim is used again: who likes the second job as much as the first may not take its slot, and the other way round.
    """
    one = host()
    over(one)

    activated(one, activation(1, Liking=3))

    assert 3.0 == claim_ad(one, one.claims["c1"], now=0.0)["CurrentRank"]
    assert "RANK of the machine is 2 for the job, and 3 for" in ask(one).reason
    restarted = Machine(one.facts, capability="other")
    happen(restarted, one.snapshot())
    assert 3.0 == restarted.claims["c1"].rank


def test_a_begin_in_an_old_journal_leaves_the_rank() -> None:
    """It did not say how much its job is liked."""
    one = host(runs=False)
    began = attempts.activate(one, activation(Liking=7), NOW)[1][0]
    assert isinstance(began, AttemptAccepted)
    data = msgspec.to_builtins(began)
    del data["rank"]

    happen(one, [msgspec.convert(data, AttemptAccepted)])

    assert 1.0 == one.claims["c1"].rank


@pytest.mark.parametrize("lease", [float("nan"), 0.0, -1.0, float("inf")])
def test_a_waiting_claim_has_a_lease_that_ends(lease: float) -> None:
    """As every claim: what never lapses would keep a slot for a schedd that is dead."""
    one = host()
    command = request(BETTER, ad={"Liking": 2}, capability=preemption.capability(one, one.claims["c1"]))
    command = msgspec.structs.replace(command, slot="slot1_1@host", lease=lease)

    reply, changes = requests.request_claims(one, command, NOW)

    assert [] == changes
    assert f"a lease of {lease} seconds is none" in reply.reason


def test_nobody_preempts_or_swaps_on_what_the_owner_has_for_himself() -> None:
    """IS_OWNER: nothing new comes, in whatever way."""
    one = host()
    one.owned = frozenset({1})

    assert "IS_OWNER" in ask(one).reason
    assert "IS_OWNER" in swap(one, KEY, RequestCpus=1).reason
    assert ("Claimed", "Busy") == state_of(one.claims["c1"])


def test_draining_sends_waiting_claims_away() -> None:
    """Nothing new begins on a machine that is emptied."""
    one = host()
    ask(one)

    happen(one, begin(one, DrainInForce(id="d", speed="graceful", at=0.0), "", NOW))
    over(one)

    assert {} == one.claims


def test_a_restarted_startd_knows_who_waits() -> None:
    """The journal holds both claims of a slot."""
    one = host()
    ask(one)
    after = Machine(one.facts, capability="other")

    happen(after, one.snapshot())
    happen(after, [ClaimRemoved("c1")])

    assert {"c2"} == set(after.claims)


def test_a_machine_without_rank_offers_nothing_to_preempt() -> None:
    """Only where RANK tells jobs apart claimed slots are matched at all."""
    plain = machine()
    claimed(plain)

    assert [] == preemption.preemptible(plain)
    assert ["c1"] == [claim.key.claim for claim in preemption.preemptible(host())]


def two(*, run: bool = True) -> Machine:
    """A machine with two claims of one core each, on which jobs run or none yet."""
    one = machine()
    claimed(one, KEY, SECOND)
    if run:
        activated(one, activation())
        activated(one, activation(1, key=SECOND))
        happen(one, [StarterConnected("c1", 1, 1), StarterConnected("c2", 2, 1)])
    return one


SECOND = ClaimKey("c2", "s2")
SWAPPED = ClaimKey("c9", "s9")


def swap(one: Machine, *keys: ClaimKey, **job: Scalar) -> ClaimsDecided:
    """Ask for what some claims have together."""
    command = request(SWAPPED, ad={"RequestCpus": 2, **job}, capability="", slot="slot1_1@host")
    command = msgspec.structs.replace(command, instead_of=list(keys))
    reply, changes = requests.request_claims(one, command, NOW)
    happen(one, changes)
    return reply


def test_a_swap_ends_the_jobs_and_waits_for_all_of_them() -> None:
    """
    Both are vacated with 1015; what the first one had is nobody else's while the second one is still there.
    """
    one = two()

    assert ["c9"] == swap(one, KEY, SECOND).waiting
    assert {1015} == {c.attempt.stop.ending.code for c in one.claims.values() if c.attempt and c.attempt.stop}
    assert {("Preempting", "Vacating")} == {state_of(claim) for claim in one.claims.values()}
    over(one)

    assert {"c2"} == set(one.claims)
    assert 2 == one.free(one.facts.slots[0]).cpus
    assert 3 == one.free_number()
    happen(one, [ClaimRemoved("c2")])
    assert ("Claimed", "Idle") == state_of(one.claims["c9"])
    assert 2 == one.claims["c9"].resources.cpus
    assert "slot1_1@host" == one.facts.name_of(one.claims["c9"])


def test_idle_claims_are_swapped_at_once() -> None:
    """There is nothing to wait for."""
    one = two(run=False)

    assert ["c9"] == [grant.claim for grant in swap(one, KEY, SECOND).granted]
    assert {"c9"} == set(one.claims)


@pytest.mark.parametrize(
    ("keys", "job", "why"),
    [
        ((KEY, ClaimKey("c2", "guessed")), {}, "not there any more"),
        ((KEY,), {}, "the job requests more than the claim has"),
        ((KEY, SECOND), {"Requirements": False}, "START of the machine or Requirements"),
    ],
)
def test_a_swap_that_cannot_be_changes_nothing(
    keys: tuple[ClaimKey, ...], job: dict[str, Scalar], why: str
) -> None:
    """A claim that is not one's own, too little, a job that does not match: the jobs go on."""
    one = two()

    assert why in swap(one, *keys, **job).reason
    assert {("Claimed", "Busy")} == {state_of(claim) for claim in one.claims.values()}


def test_a_swap_that_is_called_off_frees_what_it_had() -> None:
    """The jobs were told to end, and do; nothing is kept for who does not come."""
    one = two()
    swap(one, KEY, SECOND)
    over(one)

    happen(one, requests.release(one, [SWAPPED], "", NOW))

    assert {} == one.waiting
    assert 3 == one.free(one.facts.slots[0]).cpus
