"""
Several parts of one partitionable slot make room for one better job: who may, and what becomes of all of them.
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
import pytest

from kettle_services.startd.domain.claims import activation as attempts
from kettle_services.startd.domain.claims import preemption, requests
from kettle_services.startd.domain.policy import evaluation
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.state.changes import Change, StarterConnected
from kettle_services.startd.domain.state.claim import Now
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.slot_transitions import state_of
from kettle_wire.ads import Scalar
from kettle_wire.commands.startd import ClaimKey, ClaimsDecided, Occupied
from kettle_wire.jobs import JobId

from .hosts import KEY, NOW, activated, activation, claimed, machine, report, request

SECOND, BETTER, THIRD = ClaimKey("c2", "s2"), ClaimKey("c9", "s9"), ClaimKey("c3", "s3")
LATER = Now(clock=NOW.clock + 10.0, time=NOW.time + 10.0)


def happen(host: Machine, changes: list[Change]) -> None:
    for change in changes:
        host.apply(change)


def host(*, retirement: float = 5.0) -> Machine:
    """A machine of four cores: two jobs have one each, the second is liked more."""
    one = machine(RANK="TARGET.Liking ?: 0", MaxJobRetirementTime=retirement)
    claimed(one, KEY, Liking=1)
    claimed(one, SECOND, Liking=2)
    activated(one, activation(Liking=1))
    activated(one, activation(1, key=SECOND, Liking=2))
    happen(one, [StarterConnected("c1", 1, 1), StarterConnected("c2", 2, 1)])
    return one


def ask(
    one: Machine,
    now: Now = NOW,
    *,
    guess: bool = False,
    twice: bool = False,
    job: Mapping[str, Scalar] = MappingProxyType({}),
) -> ClaimsDecided:
    """Ask for what both have, and what is free."""
    first, second = (
        preemption.capability(one, one.claims[name]) if name in one.claims else "" for name in ("c1", "c2")
    )
    also = [Occupied("slot1_2@host", "guessed" if guess else second)] * (2 if twice else 1)
    ad = {"RequestCpus": 4, "Liking": 3, **job}
    command = request(BETTER, ad=ad, capability=first, slot="slot1_1@host")
    reply, changes = requests.request_claims(one, msgspec.structs.replace(command, also=also), now)
    happen(one, changes)
    return reply


def over(one: Machine, claim: str, proc: int) -> None:
    ended = msgspec.structs.replace(report(proc), claim=claim, job=JobId(1, proc))
    happen(one, attempts.over(one, ended, LATER))


def states(one: Machine) -> set[tuple[str, str]]:
    return {state_of(claim) for claim in one.claims.values()}


def test_the_better_job_has_what_both_had_and_what_was_free() -> None:
    """
    Both retire, what is free is nobody else's meanwhile; when both are gone the claim has all four cores.
    """
    one = host()

    assert ["c9"] == ask(one).waiting
    assert {("Claimed", "Retiring")} == states(one)
    assert [] == claimed(one, THIRD).granted
    happen(one, evaluation.evaluate(one, LATER))
    assert {("Preempting", "Vacating")} == states(one)
    over(one, "c1", 0)
    assert ["c9"] == ask(one, LATER).waiting
    over(one, "c2", 1)

    (granted,) = ask(one, LATER).granted
    assert 4 == granted.ad["Cpus"]
    assert {"c9"} == set(one.claims)
    assert Resources(
        cpus=4, memory=one.claims["c9"].resources.memory, disk=one.claims["c9"].resources.disk
    ) == (one.claims["c9"].resources)


def test_when_the_better_job_goes_away_both_go_on() -> None:
    """And what was free is free."""
    one = host()
    ask(one)

    happen(one, requests.release(one, [BETTER], "removed", NOW))

    assert {("Claimed", "Busy")} == states(one)
    assert ["c3"] == [grant.claim for grant in claimed(one, THIRD).granted]


def test_what_one_had_that_is_gone_meanwhile_is_used_as_what_is_free() -> None:
    """A match is a moment old when it comes."""
    one = host()
    happen(one, requests.release(one, [SECOND], "no job left", NOW))
    over(one, "c2", 1)

    assert ["c9"] == ask(one).waiting
    assert ["c1"] == one.waiting["c9"].after
    assert 3 == one.waiting["c9"].resources.cpus


@pytest.mark.parametrize(
    ("job", "how", "why"),
    [
        ({"Liking": 2}, {}, "RANK of the machine is 2 for the job, and 2 for the one that has the slot"),
        ({"RequestCpus": 5}, {}, "the job requests more than the claim has"),
        ({}, {"guess": True}, "the match is out of date"),
        ({}, {"twice": True}, "not parts of one partitionable slot"),
        ({"Requirements": False}, {}, "START of the machine or Requirements of the job"),
    ],
)
def test_if_one_of_them_need_not_make_room_none_does(
    job: dict[str, Scalar], how: dict[str, bool], why: str
) -> None:
    """
    One that is liked as much, too little, a secret that is not that of the claim, the same one twice: all go on.
    """
    one = host()

    reply = ask(one, NOW, guess=how.get("guess", False), twice=how.get("twice", False), job=job)

    assert ([], []) == (reply.granted, reply.waiting)
    assert why in reply.reason
    assert {("Claimed", "Busy")} == states(one)
    assert {} == one.waiting
