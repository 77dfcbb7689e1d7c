"""
The slot of jobs that run where they were submitted: beside what the machine shares out, and not subject to its policy.
"""

import msgspec
import pytest

from kettle_services.startd.domain.ads import slot_ads, startd_ad
from kettle_services.startd.domain.claims import requests
from kettle_services.startd.domain.policy import draining, evaluation
from kettle_services.startd.domain.slots.slot import local_slot
from kettle_services.startd.domain.state.changes import ClaimRemoved
from kettle_services.startd.domain.state.claim import DrainInForce
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.slot_transitions import state_of
from kettle_wire.ads import Scalar
from kettle_wire.commands.startd import ClaimKey, ClaimsDecided

from .hosts import KEY, NOW, TOTAL, activated, activation, claimed, machine, request

HOME = ClaimKey("home", "s")


def host(start: str = "true", *, overcommit: float = 1.0, **given: Scalar) -> Machine:
    facts = msgspec.structs.replace(
        machine(start, **given).facts, local=local_slot(TOTAL), local_overcommit=overcommit
    )
    return Machine(facts, capability="right", local_capability="ours")


def at_home(one: Machine, *keys: ClaimKey, capability: str = "ours", **job: Scalar) -> ClaimsDecided:
    command = request(
        *(keys or (HOME,)), ad={"JobUniverse": 12, **job}, capability=capability, slot="local@host"
    )
    reply, changes = requests.request_claims(one, command, NOW)
    for change in changes:
        one.apply(change)
    return reply


def test_a_local_job_takes_nothing_of_what_is_shared_out() -> None:
    """The pool's jobs have the machine all the same."""
    one = host()

    granted = at_home(one, HOME, ClaimKey("home2", "s"), RequestCpus=2).granted

    assert ["local_1@host", "local_2@host"] == [grant.slot for grant in granted]
    assert 1 == len(claimed(one, KEY, RequestCpus=4).granted)
    assert ["slot1_3@host", "slot1@host"] == [ad["Name"] for ad in slot_ads(one, now=0.0)]
    assert 1 == startd_ad(one, now=0.0, version="")["NumDynamicSlots"]


def test_each_secret_opens_its_own_slots_only() -> None:
    """
    A match of the negotiator's is none of the local slot, and the machine's own schedd still needs a match for the others.
    """
    one = host()

    assert [] == at_home(one, capability="right").granted
    assert [] == requests.request_claims(one, request(KEY, capability="ours"), NOW)[0].granted
    shut = machine()
    assert [] == at_home(shut, capability="").granted


def test_only_jobs_of_these_universes_come_in() -> None:
    """
    START of the local slot is about the universe: a vanilla job is refused at the claim and at its activation.
    """
    one = host()

    assert [] == at_home(one, JobUniverse=5).granted
    assert 1 == len(at_home(one, JobUniverse=7).granted)
    assert 1027 == activated(one, activation(key=HOME, JobUniverse=5))
    assert 0 == activated(one, activation(key=HOME, JobUniverse=7))


def test_what_asks_for_more_than_the_machine_has_is_refused() -> None:
    """However much they may have together, one has no more than the machine."""
    assert "the machine has not enough left" == at_home(host(overcommit=9), RequestCpus=5).reason


@pytest.mark.parametrize(
    ("overcommit", "request_", "count"),
    [
        (1, {"RequestCpus": 2}, 2),
        (1, {"RequestMemory": 400}, 2),
        (1, {"RequestCpus": 0, "RequestMemory": 0}, 9),
        (2.5, {"RequestCpus": 4}, 2),
        (2.5, {"RequestCpus": 3}, 3),
    ],
)
def test_all_local_jobs_together_have_a_share(
    overcommit: float, request_: dict[str, Scalar], count: int
) -> None:
    """
    The machine's cores and memory once, or as often as its administrator says; who comes too late is told why, and comes
    in when another is gone.
    """
    one = host(overcommit=overcommit)
    keys = [ClaimKey(f"home{number}", "s") for number in range(9)]

    reply = at_home(one, *keys, capability="ours", **request_)

    assert count == len(reply.granted)
    if count < len(keys):
        assert "the other local jobs leave not enough" in reply.reason
        one.apply(ClaimRemoved("home0"))
        assert ["home8"] == [
            grant.claim for grant in at_home(one, keys[8], capability="ours", **request_).granted
        ]


def test_the_owners_policy_is_for_the_pools_jobs() -> None:
    """START, PREEMPT and IS_OWNER are not asked about local jobs."""
    one = host("false", PREEMPT="true", IS_OWNER="true", WANT_VACATE="false")
    at_home(one)
    activated(one, activation(key=HOME, JobUniverse=12))

    assert [] == evaluation.evaluate(one, NOW)
    assert ("Claimed", "Busy") == state_of(one.claims["home"])


def test_draining_is_for_the_pools_jobs() -> None:
    """Local jobs go on and begin while the machine is emptied, and are not waited for."""
    one = host()
    at_home(one)
    activated(one, activation(key=HOME, JobUniverse=12))
    wish = DrainInForce(id="d1", speed="fast", at=0.0, resume=True)

    for change in draining.begin(one, wish, "", NOW):
        one.apply(change)

    assert ("Claimed", "Busy") == state_of(one.claims["home"])
    assert 1 == len(at_home(one, ClaimKey("later", "s")).granted)
    assert 0 == activated(one, activation(key=ClaimKey("later", "s"), JobUniverse=12))
    for change in draining.proceed(one, NOW):
        one.apply(change)
    assert one.drain is None


def test_a_startd_that_stops_ends_local_jobs_too() -> None:
    """Nothing new begins, and what runs is ended."""
    one = host()
    at_home(one)
    one.stopping = True

    assert [] == at_home(one, ClaimKey("later", "s")).granted
    assert [ClaimRemoved("home")] == requests.shut_down(one, NOW, hard=False)
