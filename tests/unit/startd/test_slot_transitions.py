"""Every transition of a slot, on the pure state machine; the numbers are those of HTCondor's drawing."""

import msgspec
import pytest

from kettle_services.startd.domain.ads import question, slot_ad
from kettle_services.startd.domain.claims import activation as attempts
from kettle_services.startd.domain.claims import requests
from kettle_services.startd.domain.policy import draining, evaluation
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.state.changes import (
    AttemptAccepted,
    AttemptStopped,
    AttemptSuspended,
    Change,
    ClaimClosing,
    Claimed,
    ClaimRemoved,
    StarterConnected,
)
from kettle_services.startd.domain.state.claim import (
    Claim,
    DrainInForce,
    Now,
    RunningAttempt,
    Speed,
    StopOrder,
)
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.policy_expressions import DEFAULTS
from kettle_services.startd.domain.state.slot_transitions import retire, state_of, step
from kettle_wire.ads import Expr
from kettle_wire.attempts import Ending
from kettle_wire.codes import VacateCode
from kettle_wire.commands.startd import Alive, ClaimKey
from kettle_wire.jobs import JobId

from .hosts import KEY, NOW, activated, activation, claimed, machine, report, request


class Says:
    """A policy whose answers are given; the rest is HTCondor's default."""

    def __init__(self, *true: str, **seconds: float) -> None:
        self._true = {"WANT_VACATE", *true}
        self._false = {name.removeprefix("not_") for name in true if name.startswith("not_")}
        self._seconds = seconds

    def holds(self, name: str) -> bool:
        return name in self._true - self._false

    def refuses(self, name: str) -> bool:
        return name in self._false

    def seconds(self, name: str) -> float:
        return self._seconds.get(name, float(DEFAULTS[name]))

    def hold_reason(self) -> tuple[str, int]:
        return "go home", 7


DRAIN = StopOrder(Ending(code=1014, reason="drained"))
BEGAN = 900.0
"""On the clock since boot: the job has run for 100 s at `NOW`."""


def one(*changes: Change) -> Machine:
    """A machine with one claim, on which a job runs, after some changes."""
    host = machine()
    claim = Claim(
        key=KEY,
        schedd="schedd",
        submitter="alice",
        slot=1,
        resources=Resources(1, 128, 1024),
        lease=60.0,
        deadline=2000.0,
        made=4000.0,
        changed=4000.0,
    )
    host.apply(Claimed(claim))
    host.apply(
        AttemptAccepted(
            "c1", RunningAttempt(job=JobId(1, 0), attempt=1, sequence=0, began=4900.0, clock=BEGAN, pid=7)
        )
    )
    for change in changes:
        host.apply(change)
    return host


def after(host: Machine, changes: list[Change]) -> tuple[str, str] | None:
    """Where the slot of the claim is then; None: there is none any more."""
    for change in changes:
        host.apply(change)
    claim = host.claims.get("c1")
    return None if claim is None else state_of(claim)


BUSY = ()
SUSPENDED = (AttemptSuspended("c1", 950.0, 4950.0),)
RETIRING = (ClaimClosing("c1", DRAIN.ending.reason, DRAIN, 4950.0),)
RETIRING_SUSPENDED = (*RETIRING, *SUSPENDED)
VACATING = (*RETIRING, AttemptStopped("c1", StopOrder(Ending(code=1014, reason="drained"), at=950.0), 4950.0))
KILLING = (
    *RETIRING,
    AttemptStopped("c1", StopOrder(Ending(code=1014, reason="drained"), hard=True, at=950.0), 4950.0),
)
CLEANING = (AttemptStopped("c1", StopOrder(Ending(code=1023, reason="removed"), at=950.0), 4950.0),)


def test_a_claim_that_is_retired_while_its_job_is_being_ended_ends_with_it() -> None:
    """12: the order of the submit side stands, and no further job begins on what makes room or is drained."""
    host = one(*CLEANING)

    where = after(host, retire(host.claims["c1"], DRAIN, Says(), NOW))

    attempt = host.claims["c1"].attempt
    assert attempt is not None
    assert attempt.stop is not None
    assert (("Preempting", "Vacating"), 1023) == (where, attempt.stop.ending.code)
    assert [] == retire(host.claims["c1"], DRAIN, Says(), NOW)


@pytest.mark.parametrize(
    ("number", "came", "says", "leads"),
    [
        ("-", BUSY, Says(), ("Claimed", "Busy")),
        ("-", BUSY, Says("SUSPEND", "CONTINUE", "KILL"), ("Claimed", "Busy")),
        ("14", BUSY, Says("WANT_SUSPEND", "SUSPEND"), ("Claimed", "Suspended")),
        ("14", BUSY, Says("WANT_SUSPEND", "SUSPEND", "PREEMPT"), ("Claimed", "Suspended")),
        ("13", BUSY, Says("WANT_SUSPEND", "PREEMPT"), ("Claimed", "Busy")),
        ("13", BUSY, Says("PREEMPT", MaxJobRetirementTime=101), ("Claimed", "Retiring")),
        ("13+18", BUSY, Says("PREEMPT", MaxJobRetirementTime=100), ("Preempting", "Vacating")),
        ("13+18", BUSY, Says("PREEMPT", "not_WANT_VACATE"), ("Preempting", "Killing")),
        ("-", SUSPENDED, Says(), ("Claimed", "Suspended")),
        ("15", SUSPENDED, Says("CONTINUE"), ("Claimed", "Busy")),
        ("16", SUSPENDED, Says("PREEMPT", "CONTINUE", MaxJobRetirementTime=51), ("Claimed", "Retiring")),
        ("17", SUSPENDED, Says("PREEMPT", MaxJobRetirementTime=50), ("Preempting", "Vacating")),
        ("17", SUSPENDED, Says("PREEMPT", "not_WANT_VACATE"), ("Preempting", "Killing")),
        ("16", RETIRING_SUSPENDED, Says("CONTINUE", MaxJobRetirementTime=51), ("Claimed", "Retiring")),
        ("17", RETIRING_SUSPENDED, Says("PREEMPT"), ("Preempting", "Vacating")),
        ("-", RETIRING, Says("PREEMPT", MaxJobRetirementTime=101), ("Claimed", "Retiring")),
        ("18", RETIRING, Says(MaxJobRetirementTime=100), ("Preempting", "Vacating")),
        ("20", RETIRING, Says("WANT_SUSPEND", "SUSPEND", MaxJobRetirementTime=101), ("Claimed", "Suspended")),
        ("-", VACATING, Says("PREEMPT", "WANT_SUSPEND", "SUSPEND"), ("Preempting", "Vacating")),
        ("21", VACATING, Says("KILL"), ("Preempting", "Killing")),
        ("21", VACATING, Says(MachineMaxVacateTime=50), ("Preempting", "Killing")),
        ("-", VACATING, Says(MachineMaxVacateTime=51), ("Preempting", "Vacating")),
        ("-", KILLING, Says("KILL", "PREEMPT", "CONTINUE"), ("Preempting", "Killing")),
        ("12", CLEANING, Says("KILL", "PREEMPT", "WANT_SUSPEND", "SUSPEND"), ("Claimed", "Cleaning")),
    ],
)
def test_the_policy_moves_a_slot_on(
    number: str, came: tuple[Change, ...], says: Says, leads: tuple[str, str]
) -> None:
    """
    From each activity by each expression; retirement counts the time that the job ran, without suspensions.
    """
    del number
    host = one(*came)

    assert leads == after(host, step(host.claims["c1"], says, NOW))


@pytest.mark.parametrize("came", [SUSPENDED, RETIRING, VACATING, KILLING, CLEANING, BUSY, RETIRING_SUSPENDED])
def test_a_job_that_is_over_frees_its_slot(came: tuple[Change, ...]) -> None:
    """11, 12a, 17, 18, 22: the claim goes on, or ends once if it is ending."""
    host = one(*came)
    ending = bool(host.claims["c1"].ending)

    changes = attempts.over(host, report(), NOW)

    assert (None if ending else ("Claimed", "Idle")) == after(host, changes)
    assert ending == (sum(isinstance(change, ClaimRemoved) for change in changes) == 1)
    assert [] == attempts.over(host, report(), NOW)


def test_an_idle_claim_ends_when_start_is_false_of_the_slot() -> None:
    """10: but not where it only does not know, because it asks for a job."""
    host = one()
    after(host, attempts.over(host, report(), NOW))
    idle = host.claims["c1"]

    assert ([], [ClaimRemoved("c1")]) == (step(idle, Says(), NOW), step(idle, Says("not_START"), NOW))


def test_a_job_that_is_preempted_can_be_held() -> None:
    """
    WANT_HOLD says so when PREEMPT fires, and its reason and subcode come along; when it was asked to leave, it stays so.
    """
    host = one()
    says = Says("PREEMPT", "WANT_HOLD", MaxJobRetirementTime=200)
    after(host, step(host.claims["c1"], says, NOW))
    later = Now(clock=1100.0, time=5100.0)

    assert ("Preempting", "Vacating") == after(host, step(host.claims["c1"], Says(), later))
    attempt = host.claims["c1"].attempt
    assert attempt is not None
    assert StopOrder(Ending(code=21, reason="go home", subcode=7), at=1100.0) == attempt.stop


def test_what_has_no_starter_yet_is_not_suspended() -> None:
    """It would be continued before it began, and nobody would hear of either."""
    host = one(StarterConnected("c1", 0, 0))

    assert [] == step(host.claims["c1"], Says("WANT_SUSPEND", "SUSPEND"), NOW)


def test_a_suspension_is_no_run_time() -> None:
    """A job that was suspended for half of its time has run for half of it."""
    host = one(*SUSPENDED)
    attempt = host.claims["c1"].attempt
    assert attempt is not None
    assert (50.0, 50.0) == (attempt.run_time(1000.0), attempt.run_time(2000.0))

    assert ("Claimed", "Busy") == after(host, step(host.claims["c1"], Says("CONTINUE"), NOW))

    attempt = host.claims["c1"].attempt
    assert attempt is not None
    assert (50.0, 150.0) == (attempt.suspension, attempt.run_time(1100.0))


def test_the_lease_of_a_retiring_claim_goes_on_and_that_of_a_preempted_one_does_not() -> None:
    """Retirement may take days; what is being ended must not be kept alive."""
    for came, lives in ((RETIRING, True), (SUSPENDED, True), (VACATING, False)):
        host = one(*came)
        _, changes = requests.alive(
            host, Alive(schedd="schedd", claims=[KEY], deadline=9e9), Now(1990.0, 0.0)
        )
        assert lives is bool(changes)
        assert (2000.0 if lives else None) == host.next_deadline()


def test_an_order_to_end_overtakes_retirement() -> None:
    """A release by the schedd waits for nobody, and its reason counts."""
    host = one(*RETIRING)

    assert ("Preempting", "Vacating") == after(host, requests.release(host, [KEY], "enough", NOW))
    attempt = host.claims["c1"].attempt
    assert attempt is not None
    assert attempt.stop is not None
    assert (1017, "enough") == (attempt.stop.ending.code, attempt.stop.ending.reason)


def test_retiring_twice_is_retiring_once() -> None:
    """The first reason counts."""
    host = one()
    says = Says(MaxJobRetirementTime=500)
    after(host, retire(host.claims["c1"], DRAIN, says, NOW))

    assert [] == retire(host.claims["c1"], StopOrder(Ending(code=1011, reason="preempted")), says, NOW)
    assert host.claims["c1"].then == DRAIN


@pytest.mark.parametrize(
    ("owner", "state"), [("true", "Owner"), ("false", "Unclaimed"), ("Nothing", "Unclaimed")]
)
def test_the_owner_has_his_machine_back(owner: str, state: str) -> None:
    """1, 2: an owned slot takes nothing and matches nothing."""
    host = machine(IS_OWNER=owner)
    host.owned = evaluation.owned(host, NOW)

    ad = slot_ad(host, host.facts.slots[0], now=0.0)

    assert (state, "Idle") == (ad["State"], ad["Activity"])
    assert (state == "Owner") == (ad["Requirements"] is False)
    assert (0 if state == "Owner" else 1) == len(claimed(host).granted)


def drained(host: Machine, speed: Speed = "graceful", **more: object) -> tuple[str, str] | None:
    wish = DrainInForce(id="d1", speed=speed, at=0.0, **more)  # type: ignore[arg-type]
    return after(host, draining.begin(host, wish, "", NOW))


@pytest.mark.parametrize(
    ("speed", "time", "leads"),
    [
        ("graceful", "1000", ("Claimed", "Retiring")),
        ("graceful", "100", ("Preempting", "Vacating")),
        ("quick", "1000", ("Preempting", "Vacating")),
        ("fast", "1000", ("Preempting", "Killing")),
    ],
)
def test_a_machine_is_drained_at_three_speeds(speed: Speed, time: str, leads: tuple[str, str]) -> None:
    """36, 37, 33: Drained, Retiring while something runs, Idle then."""
    host = one()
    host.facts = msgspec.structs.replace(host.facts, policy=machine(MaxJobRetirementTime=time).facts.policy)

    assert leads == drained(host, speed)
    slot = host.facts.slots[0]
    seen = slot_ad(host, slot, now=0.0)
    assert ("Drained", "Retiring", True, False) == tuple(
        seen[name] for name in ("State", "Activity", "Draining", "Requirements")
    )
    assert after(host, attempts.over(host, report(), NOW)) is None
    assert ("Drained", "Idle") == tuple(slot_ad(host, slot, now=0.0)[name] for name in ("State", "Activity"))
    assert "draining" in claimed(host, ClaimKey("c2", "s2")).reason


def test_a_drain_can_be_hurried_and_not_slowed() -> None:
    """Said again it changes nothing."""
    host = one()
    host.facts = msgspec.structs.replace(host.facts, policy=machine(MaxJobRetirementTime="1000").facts.policy)
    drained(host)

    assert ("Claimed", "Retiring") == drained(host)
    with pytest.raises(draining.DrainRefused, match="already"):
        draining.begin(host, DrainInForce(id="d2", speed="graceful", at=0.0), "", NOW)
    quick = DrainInForce(id="d3", speed="quick", at=0.0)
    assert ("Preempting", "Vacating") == after(host, draining.begin(host, quick, "", NOW))


def test_a_machine_can_be_left_in_peace_until_its_jobs_are_over() -> None:
    """
    No retirement time ends them; the claim takes no other job after that, and who is in a hurry after all can be.
    """
    host = one()
    host.facts = msgspec.structs.replace(host.facts, policy=machine(MaxJobRetirementTime="0").facts.policy)

    assert ("Claimed", "Retiring") == drained(host, "peaceful")
    assert ("Claimed", "Retiring") == after(host, evaluation.evaluate(host, NOW))
    assert "draining" in claimed(host, ClaimKey("c2", "s2")).reason
    hurried = DrainInForce(id="d2", speed="graceful", at=0.0)
    assert ("Preempting", "Vacating") == after(host, draining.begin(host, hurried, "", NOW))

    host = one()
    drained(host, "peaceful")
    assert after(host, attempts.over(host, report(), NOW)) is None


def test_a_machine_that_is_left_in_peace_still_has_its_policy() -> None:
    """PREEMPT ends a job of it as ever, with the same reason and after the same retirement time."""
    for limit, leads in ((101, ("Claimed", "Retiring")), (100, ("Preempting", "Vacating"))):
        host = one()
        drained(host, "peaceful")
        says = Says("PREEMPT", MaxJobRetirementTime=limit)
        assert leads == after(host, step(host.claims["c1"], says, NOW))
        then = host.claims["c1"].then
        assert then is not None
        assert VacateCode.StartdPreemptExpression is then.ending.code
    host = one()
    drained(host, "peaceful")
    assert [] == step(host.claims["c1"], Says("PREEMPT", "WANT_SUSPEND"), NOW)


def test_a_cancelled_drain_lets_jobs_go_on() -> None:
    """34, 35: those that were retiring run as before; those that were told to end do end."""
    host = one()
    host.facts = msgspec.structs.replace(host.facts, policy=machine(MaxJobRetirementTime="1000").facts.policy)
    drained(host)

    with pytest.raises(draining.DrainRefused, match="d1"):
        draining.cancel(host, "another", NOW)
    assert ("Claimed", "Busy") == after(host, draining.cancel(host, "d1", NOW))
    with pytest.raises(draining.DrainRefused, match="not being drained"):
        draining.cancel(host, "", NOW)

    drained(host, "quick")
    assert ("Preempting", "Vacating") == after(host, draining.cancel(host, "", NOW))
    assert 1 == len(claimed(host, ClaimKey("c2", "s2")).granted)


def test_a_drain_is_refused_if_a_slot_does_not_meet_the_check() -> None:
    """And names the slot; nothing has changed."""
    host = one()
    wish = DrainInForce(id="d1", speed="graceful", at=0.0)

    with pytest.raises(draining.DrainRefused, match="slot1_1@host"):
        draining.begin(host, wish, 'State != "Claimed"', NOW)
    assert draining.begin(host, wish, "Cpus >= 1", NOW)


def test_what_start_lets_in_meanwhile_leaves_when_the_others_are_gone() -> None:
    """
    The machine takes what the drain's START says, is seen by who looks for such a slot, and is empty in the end.
    """
    host = one()
    drained(host, "graceful", start="TARGET.Short =?= true", resume=True)
    late = ClaimKey("c2", "s2")
    assert [] == claimed(host, late).granted
    assert 1 == len(claimed(host, late, Short=True).granted)
    assert "Unclaimed" == slot_ad(host, host.facts.slots[0], now=0.0)["State"]
    assert 0 == activated(host, activation(key=late, Short=True))
    assert [] == draining.proceed(host, NOW)

    after(host, attempts.over(host, report(), NOW))
    for change in draining.proceed(host, NOW):
        host.apply(change)

    assert ("Preempting", "Vacating") == state_of(host.claims["c2"])
    host.apply(ClaimRemoved("c2"))
    for change in draining.proceed(host, NOW):
        host.apply(change)
    assert host.drain is None


def test_a_restarted_startd_goes_on_draining() -> None:
    """The journal knows."""
    host = one()
    drained(host, reason="new disks")
    twin = machine()
    for change in host.snapshot():
        twin.apply(change)

    assert host.drain is not None
    assert host.drain == twin.drain


def test_a_claim_serves_its_time() -> None:
    """CLAIM_WORKLIFE: the job that runs finishes, and no other begins; 0: one job per claim, -1: no limit."""
    for worklife, gone in (("1000", True), ("1001", False), ("0", True), ("-1", False)):
        host = one()
        host.facts = msgspec.structs.replace(host.facts, policy=machine(CLAIM_WORKLIFE=worklife).facts.policy)
        assert gone is (after(host, attempts.over(host, report(), NOW)) is None)


def test_the_rank_of_a_claim_is_that_of_its_job() -> None:
    """RANK is seen in the slot's ad, and what it came to in the claim's."""
    host = machine(RANK="TARGET.Prio * 2")

    reply = claimed(host, Prio=21)

    assert (Expr("TARGET.Prio * 2"), 42.0) == (
        reply.granted[0].ad["Rank"],
        host.claims["c1"].rank,
    )


def test_the_policy_sees_the_job_that_runs() -> None:
    """TARGET is the job, and the journal keeps what is needed of it."""
    for going, leads in ((True, ("Preempting", "Vacating")), (False, ("Claimed", "Busy"))):
        host = machine(PREEMPT="TARGET.Go =?= true")
        claimed(host)
        activated(host, activation(Go=going))
        assert leads == after(host, evaluation.evaluate(host, NOW))


def test_of_jobs_that_no_policy_looks_at_only_their_times_are_kept() -> None:
    """The journal does not hold every job's ad."""
    host = machine()
    claimed(host)
    activated(host, activation(Go=True, JobMaxVacateTime=7))

    attempt = host.claims["c1"].attempt
    assert attempt is not None
    assert {"JobMaxVacateTime": 7} == attempt.ad
    assert [] == evaluation.evaluate(host, NOW)


def test_what_is_asked_of_a_job_that_has_to_go_may_ask_the_job() -> None:
    """MaxJobRetirementTime may depend on the job, also where nothing is watched while it runs."""
    host = machine(MaxJobRetirementTime="TARGET.Precious =?= true ? 600 : 0")
    claimed(host)
    activated(host, activation(Precious=True))

    assert 600 == question(host, host.claims["c1"], NOW).seconds("MaxJobRetirementTime")


def test_a_job_may_ask_for_less_time_and_not_for_more() -> None:
    """MaxJobRetirementTime and JobMaxVacateTime of the job."""
    for asked, given in ((10, 10.0), (5000, 500.0), ("soon", 500.0)):
        host = machine(MaxJobRetirementTime="500", MachineMaxVacateTime="500")
        claimed(host)
        activated(host, activation(MaxJobRetirementTime=asked, JobMaxVacateTime=asked))
        about = question(host, host.claims["c1"], NOW)
        assert (given, given) == (
            about.seconds("MaxJobRetirementTime"),
            about.seconds("MachineMaxVacateTime"),
        )


def test_a_request_during_draining_says_why_not() -> None:
    """So that a schedd can tell."""
    host = machine()
    drained(host)

    reply, changes = requests.request_claims(host, request(KEY), NOW)

    assert ([], "the machine is draining") == (changes, reply.reason)
