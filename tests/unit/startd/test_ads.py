"""The ads of a machine."""

from kettle.classad import ClassAd, evaluate_attribute, matches
from kettle_services.startd.domain.ads import claim_ad, slot_ad, startd_ad
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.slots.slot import whole_machine
from kettle_services.startd.domain.state.changes import AttemptStopped, ClaimClosing, Claimed
from kettle_services.startd.domain.state.claim import Claim, RunningAttempt, StopOrder
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId

TOTAL = Resources(cpus=4, memory=1024, disk=4096)


def machine() -> Machine:
    facts = Facts(
        name="host",
        total=TOTAL,
        detected=TOTAL,
        slots=whole_machine(TOTAL),
        attributes={"Arch": "X86_64"},
    )
    return Machine(facts, capability="secret")


def claim() -> Claim:
    return Claim(
        key=ClaimKey("c1", "hidden"),
        schedd="schedd",
        submitter="alice",
        slot=1,
        resources=Resources(1, 128, 1024),
        lease=60.0,
        deadline=0.0,
        made=10.0,
        changed=20.0,
        attempt=RunningAttempt(
            job=JobId(3, 4), attempt=1, sequence=0, global_job_id="schedd#3.4", began=20.0
        ),
    )


def test_a_partitionable_slot_takes_what_fits_into_what_is_left() -> None:
    """START and the limits are one expression that a negotiator can evaluate."""
    host = machine()
    host.apply(Claimed(claim()))
    slot = ClassAd.from_wire(slot_ad(host, host.facts.slots[0], now=0.0))

    fits = {"RequestCpus": 3, "RequestMemory": 896, "Requirements": True}
    for job, expected in ((fits, True), ({**fits, "RequestCpus": 4}, False), ({"Requirements": True}, True)):
        assert expected is matches(slot, ClassAd.from_wire(job))
    assert (3, 896, 4) == tuple(
        evaluate_attribute(name, slot) for name in ("Cpus", "Memory", "TotalSlotCpus")
    )


def test_a_draining_machine_matches_nothing() -> None:
    """Requirements are false."""
    host = machine()
    host.stopping = True

    ad = slot_ad(host, host.facts.slots[0], now=0.0)

    assert (False, "Drained", True) == (ad["Requirements"], ad["State"], ad["Draining"])


def test_a_claimed_slot_tells_what_runs_on_it_but_no_secret() -> None:
    """Owner, job and public id of the claim."""
    ad = claim_ad(machine(), claim(), now=0.0)

    assert ("Claimed", "Busy", "alice", "3.4", "schedd#3.4", "c1") == tuple(
        ad[name] for name in ("State", "Activity", "RemoteOwner", "JobId", "GlobalJobId", "PublicClaimId")
    )
    assert not any("hidden" in str(value) for value in ad.values())


def test_a_claim_that_ends_is_seen_to_end() -> None:
    """Retiring as long as its job may run, then Preempting; the slot matches nothing from the beginning."""
    host = machine()
    host.apply(Claimed(claim()))
    host.apply(ClaimClosing("c1", "over"))
    retiring = claim_ad(host, host.claims["c1"], now=0.0)
    host.apply(AttemptStopped("c1", StopOrder(Ending(code=1017, reason="over"))))
    vacating = claim_ad(host, host.claims["c1"], now=0.0)

    assert ("Claimed", "Retiring", False) == tuple(retiring[n] for n in ("State", "Activity", "Requirements"))
    assert ("Preempting", "Vacating") == (vacating["State"], vacating["Activity"])


def test_the_startd_tells_the_whole_machine() -> None:
    """Totals, not what is left."""
    host = machine()
    host.apply(Claimed(claim()))

    ad = startd_ad(host, now=0.0, version="1")

    assert ("StartD", 4, 1) == (ad["MyType"], ad["TotalCpus"], ad["NumDynamicSlots"])
