"""What a startd decides."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kettle_services.startd.domain.claims import activation as attempts
from kettle_services.startd.domain.claims import requests
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.slots.slot import whole_machine
from kettle_services.startd.domain.state.changes import (
    AttemptFinished,
    AttemptStopped,
    Change,
    ClaimClosing,
    Claimed,
    ClaimRemoved,
    Renewed,
    StarterConnected,
)
from kettle_services.startd.domain.state.claim import Now, StopOrder
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_wire.ads import Expr
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import (
    Activation,
    Alive,
    ClaimKey,
    Deactivation,
)
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import Started

from .hosts import KEY, NOW, TOTAL, activated, activation, claimed, machine, report, request


@pytest.mark.parametrize(
    ("asked", "total", "size"),
    [
        (Resources(1, 100, 100), TOTAL, Resources(1, 128, 1024)),
        (Resources(2, 256, 2048), TOTAL, Resources(2, 256, 2048)),
        (Resources(1, 100, 100), Resources(1, 120, 10_000), Resources(1, 100, 100)),
        (Resources(1, 100, 100), Resources(1, 99, 10_000), None),
        (Resources(5, 1, 1), TOTAL, None),
    ],
)
def test_slots_are_carved_in_multiples_while_they_fit(
    asked: Resources, total: Resources, size: Resources | None
) -> None:
    """128 MiB and 1024 KiB; the bare request is tried when the rounded one no longer fits."""
    host = Machine(
        Facts(name="host", total=total, detected=total, slots=whole_machine(total)), capability="right"
    )

    claimed(host, RequestCpus=asked.cpus, RequestMemory=asked.memory, RequestDisk=asked.disk)

    assert [size] * (size is not None) == [claim.resources for claim in host.claims.values()]


def test_claims_share_what_the_machine_has() -> None:
    """As many as fit, each with a slot of its own; the reason tells why not more."""
    host = machine()

    reply = claimed(host, *(ClaimKey(f"c{n}", "s") for n in range(6)))

    assert ["slot1_1@host", "slot1_2@host", "slot1_3@host", "slot1_4@host"] == [g.slot for g in reply.granted]
    assert "not enough" in reply.reason
    assert 0 == host.free(host.facts.slots[0]).cpus


def test_a_decision_changes_nothing_until_it_is_applied() -> None:
    """Deciding is pure."""
    host = machine()

    requests.request_claims(host, request(KEY, ClaimKey("c2", "s2")), NOW)

    assert TOTAL == host.free(host.facts.slots[0])


def test_a_slot_number_is_used_again_when_it_is_free() -> None:
    """The lowest one."""
    host = machine()
    claimed(host, ClaimKey("a", "s"), ClaimKey("b", "s"))
    host.apply(ClaimRemoved("a"))

    assert ["slot1_1@host"] == [g.slot for g in claimed(host, ClaimKey("c", "s")).granted]


def test_a_repeat_is_granted_as_it_was_and_records_nothing() -> None:
    """Also with the capability of a startd that is no more."""
    host = machine()
    first = claimed(host)

    again, changes = requests.request_claims(host, request(KEY, capability="old"), NOW)

    assert ([], first.granted) == (changes, again.granted)


@pytest.mark.parametrize(
    "wrong",
    [
        {"capability": "old"},
        {"slot": "slot1@other"},
        {"ad": {"RequestMemory": 2000}},
        {"ad": {"RequestCpus": -1}},
        {"ad": {"Requirements": Expr("TARGET.Memory > 5000")}},
        {"ad": {"Requirements": Expr("TARGET.NoSuchThing")}},
    ],
)
def test_claims_are_refused_with_a_reason(wrong: dict[str, Any]) -> None:
    """Stale matches, lack of room, unwilling jobs."""
    reply, changes = requests.request_claims(machine(), request(KEY, **wrong), NOW)

    assert ([], []) == (reply.granted, changes)
    assert reply.reason


def test_start_looks_at_slot_and_job() -> None:
    """MY is what is left of the machine, then the slot that would be carved; TARGET is the job."""
    host = machine('MY.Memory == (DynamicSlot =?= true ? 128 : TotalSlotMemory) && TARGET.Owner == "alice"')

    assert [] == claimed(host, Owner="bob").granted
    assert 1 == len(claimed(host, Owner="alice").granted)


def test_a_draining_machine_takes_nothing() -> None:
    """And says so."""
    host = machine()
    host.stopping = True

    assert "draining" in claimed(host).reason


def test_a_lease_is_renewed_on_this_clock_and_never_beyond_its_length() -> None:
    """A deadline from far away is cut, one from the past changes nothing, an unknown claim is named."""
    host = machine()
    claimed(host)
    keys = [KEY, ClaimKey("gone", "x")]

    far, changes = requests.alive(host, Alive(schedd="schedd", claims=keys, deadline=9e9), Now(1030.0, 0.0))
    assert [Renewed(["c1"], 1090.0)] == changes
    assert (["gone"], []) == (far.unknown, far.extra)
    host.apply(changes[0])

    _, past = requests.alive(host, Alive(schedd="schedd", claims=keys, deadline=1040.0), Now(1035.0, 0.0))
    assert [] == past


def test_a_claim_of_which_its_schedd_says_nothing_ends_soon() -> None:
    """
    Given a schedd that died before it recorded what it was granted, then the claim does not last for the lease; one that is
    renewed does, and so does one on which a job begins.
    """
    silent, renewed, used = machine(), machine(), machine()
    for host in (silent, renewed, used):
        claimed(host)
    _, changes = requests.alive(renewed, Alive(schedd="schedd", claims=[KEY], deadline=9e9), NOW)
    renewed.apply(changes[0])
    _, changes = attempts.activate(used, activation(0), NOW)
    used.apply(changes[0])

    later = Now(NOW.clock + requests.UNCONFIRMED_S, NOW.time)
    assert [ClaimRemoved("c1")] == requests.expire(silent, later)
    assert [] == requests.expire(renewed, later) + requests.expire(used, later)
    assert NOW.clock + 60.0 == renewed.claims["c1"].deadline == used.claims["c1"].deadline


def test_each_claim_goes_on_for_the_lease_that_it_has() -> None:
    """
    Given claims with different leases, when they are renewed, then each lives its own from the same moment on, and none
    longer than its own from now.
    """
    host = machine()
    claimed(host)
    short = msgspec.structs.replace(host.claims["c1"], key=ClaimKey("c2", "s"), lease=5.0, deadline=1005.0)
    host.apply(Claimed(short))

    said = Alive(schedd="schedd", claims=[KEY, short.key], deadline=1080.0, at=1020.0)
    _, changes = requests.alive(host, said, Now(1021.0, 0.0))
    assert {("c1", 1080.0), ("c2", 1025.0)} == {(*each.claims, each.deadline) for each in renewals(changes)}

    _, changes = requests.alive(host, msgspec.structs.replace(said, at=5000.0), Now(1022.0, 0.0))
    assert {("c1", 1082.0), ("c2", 1027.0)} == {(*each.claims, each.deadline) for each in renewals(changes)}


def renewals(changes: Sequence[Change]) -> list[Renewed]:
    return [change for change in changes if isinstance(change, Renewed)]


def test_the_owner_bounds_what_runs_unattended() -> None:
    """
    Given a machine whose owner lets no job run longer than so without word, when a longer lease is asked for, then the claim
    has that: the submit side, which counts on more, waits longer than it has to.
    """
    facts = msgspec.structs.replace(machine().facts, max_lease=20.0)
    claimed(host := Machine(facts, capability="right"))

    assert (20.0, NOW.clock + 20.0) == (host.claims["c1"].lease, host.claims["c1"].deadline)


def test_claims_that_a_schedd_leaves_out_are_named() -> None:
    """But not those of another schedd."""
    host = machine()
    claimed(host)

    ours, _ = requests.alive(host, Alive(schedd="schedd", claims=[], deadline=None), NOW)
    theirs, _ = requests.alive(host, Alive(schedd="other", claims=[], deadline=None), NOW)

    assert (["c1"], []) == (ours.extra, theirs.extra)


def test_an_ending_claim_exists_until_its_job_is_gone() -> None:
    """Otherwise the submit side could start the job elsewhere while it still lives here."""
    host = machine()
    claimed(host)
    activated(host, activation())
    changes = requests.expire(host, Now(2000.0, 0.0))
    for change in changes:
        host.apply(change)

    reply, renewed = requests.alive(
        host, Alive(schedd="schedd", claims=[KEY], deadline=9e9), Now(2001.0, 0.0)
    )
    assert ([], [], []) == (reply.unknown, reply.extra, renewed)
    assert [ClaimClosing, AttemptStopped] == [type(change) for change in changes]
    assert host.claims["c1"].attempt is not None
    assert isinstance(changes[0], ClaimClosing)
    assert host.claims["c1"].attempt.stop == StopOrder(
        Ending(code=1008, reason=changes[0].reason), hard=True, at=2000.0
    )

    over = attempts.over(host, report(), NOW)
    assert [AttemptFinished("c1", JobId(1, 0), 1, 2, NOW.time), ClaimRemoved("c1")] == over


def test_an_idle_claim_ends_at_once() -> None:
    """Nothing has to be waited for."""
    host = machine()
    claimed(host)

    assert [ClaimRemoved("c1")] == requests.release(host, [KEY], "enough", NOW)
    assert [] == requests.release(host, [ClaimKey("c1", "wrong")], "enough", NOW)


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (activation(), 0),
        (activation(key=ClaimKey("c1", "wrong")), 1034),
        (activation(key=ClaimKey("c2", "s1")), 1034),
        (activation(name="../up"), 1026),
        (activation(name="/abs"), 1026),
        (activation(name="a//b"), 1026),
    ],
)
def test_activations_are_accepted_or_refused_with_a_code(what: Activation, code: int) -> None:
    """HTCondor's codes."""
    host = machine()
    claimed(host)

    assert code == activated(host, what)


def test_an_activation_that_start_refuses_does_not_match() -> None:
    """The machine's policy is asked for each job, not only for the first."""
    host = machine('TARGET.Owner == "alice"')
    claimed(host, Owner="alice")

    assert (1027, 0) == (activated(host, activation(Owner="bob")), activated(host, activation(Owner="alice")))


def test_one_attempt_at_a_time() -> None:
    """Busy: not idle; being ended: still cleaning; the same again: accepted, and nothing begins."""
    host = machine()
    claimed(host)
    activated(host, activation(0))

    assert ([], 0) == (attempts.activate(host, activation(0), NOW)[1], activated(host, activation(0)))
    assert 1032 == activated(host, activation(1))
    host.apply(AttemptStopped("c1", StopOrder(Ending(code=1023, reason="removed"))))
    assert 1028 == activated(host, activation(1))


def test_a_late_repeat_of_a_finished_attempt_does_not_run_it_again() -> None:
    """However many other jobs the claim has run since."""
    host = machine()
    claimed(host)
    for proc in range(3):
        activated(host, activation(proc))
        for change in attempts.over(host, report(proc, sequence=10 * proc + 2), NOW):
            host.apply(change)

    result, changes = attempts.activate(host, activation(0), NOW)

    assert (0, []) == (result.code, changes)
    assert 22 == host.claims["c1"].sequence


def test_the_first_reason_counts_and_a_hard_order_hurries() -> None:
    """A soft end after a hard one changes nothing."""
    host = machine()
    claimed(host)
    activated(host, activation())
    soft = Deactivation(key=KEY, job=JobId(1, 0), attempt=1, ending=Ending(code=1023, reason="removed"))
    hard = msgspec.structs.replace(soft, ending=Ending(code=1004, reason="other"), hard=True)

    heard: list[list[Change]] = []
    for command in (soft, soft, hard, soft, hard):
        changes = attempts.deactivate(host, command, NOW)
        heard.append(changes)
        for change in changes:
            host.apply(change)

    first = StopOrder(Ending(code=1023, reason="removed"), at=NOW.clock)
    hurried = msgspec.structs.replace(first, hard=True)
    assert [
        [AttemptStopped("c1", first, NOW.time)],
        [],
        [AttemptStopped("c1", hurried, NOW.time)],
        [],
        [],
    ] == heard


def test_deactivation_needs_the_secret_and_the_attempt() -> None:
    """A late one, for the attempt or the job before, ends nothing."""
    host = machine()
    claimed(host)
    activated(host, activation(attempt=2))

    this, other = JobId(1, 0), JobId(1, 7)
    for key, job, attempt in ((ClaimKey("c1", "x"), this, 2), (KEY, this, 1), (KEY, other, 2)):
        order = Deactivation(key=key, job=job, attempt=attempt, ending=Ending(code=1, reason=""))
        assert [] == attempts.deactivate(host, order, NOW)


def test_a_report_that_is_not_final_ends_nothing() -> None:
    """Nor does one of another job."""
    host = machine()
    claimed(host)
    activated(host, activation())

    started = msgspec.structs.replace(report(), body=Started(pid=1, at=0.0))
    assert ([], []) == (attempts.over(host, started, NOW), attempts.over(host, report(7), NOW))


def test_the_fold_of_a_snapshot_is_the_machine() -> None:
    """What a restarted startd knows is what its predecessor knew."""
    host = machine()
    claimed(host, KEY, ClaimKey("c2", "s2"))
    activated(host, activation())
    host.apply(StarterConnected("c1", 42, 99))
    activated(host, activation(5, key=ClaimKey("c2", "s2")))
    host.apply(AttemptFinished("c2", JobId(1, 5), 1, 2, 0.0))

    twin = machine()
    for change in host.snapshot():
        twin.apply(change)

    assert host.claims == twin.claims
    assert twin.knows("c2", JobId(1, 5), 1)


def test_changes_of_what_is_gone_change_nothing() -> None:
    """A fold is total."""
    host = machine()
    gone = (
        StarterConnected("x", 1, 1),
        AttemptStopped("x", StopOrder(Ending(code=1, reason=""))),
        Renewed(["x"], 1.0),
        ClaimClosing("x", ""),
        ClaimRemoved("x"),
        AttemptFinished("x", JobId(1, 1), 1, 1, 0.0),
    )

    for change in gone:
        host.apply(change)

    assert {} == host.claims


@pytest.mark.parametrize("hard", [False, True])
def test_a_startd_that_is_to_end_fast_gives_jobs_no_time(hard: bool) -> None:
    """A fast end is a hard order for each job; any other lets them end by themselves first."""
    host = machine()
    claimed(host)
    activated(host, activation())
    (stopped,) = [
        each for each in requests.shut_down(host, NOW, hard=hard) if isinstance(each, AttemptStopped)
    ]
    assert ("c1", hard) == (stopped.claim, stopped.stop.hard)
