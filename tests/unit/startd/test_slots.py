"""Static and partitionable slots, and the devices in them."""

from typing import Any

import msgspec
import pytest

from kettle.classad import ClassAd, evaluate_attribute, matches, parse
from kettle_services.startd.domain.ads import slot_ad, slot_ads
from kettle_services.startd.domain.claims.activation import activate
from kettle_services.startd.domain.claims.requests import request_claims
from kettle_services.startd.domain.slots.layout import SlotType, lay_out
from kettle_services.startd.domain.slots.resources import Carving, Resources
from kettle_services.startd.domain.slots.slot import device
from kettle_services.startd.domain.state.changes import Change, ClaimRemoved
from kettle_services.startd.domain.state.claim import Claim
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.domain.state.policy_expressions import PolicyExpressions
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.commands.startd import ClaimKey, ClaimsDecided

from .hosts import KEY, NOW, activated, activation, request

TOTAL = Resources(cpus=4, memory=4096, disk=100_000, custom={"GPUs": 3, "Licences": 2})
GPUS: dict[str, Ad] = {
    "GPU-a": {"Capability": 7.0, "DeviceName": "V100"},
    "GPU-b": {"Capability": 8.0, "DeviceName": "A100"},
    "GPU-c": {"Capability": 8.0, "DeviceName": "A100"},
}
STATIC_AND_REST = (SlotType(cpus=1, memory=1024, resources={"GPUs": 1}), SlotType(partitionable=True))


def machine(
    *types: SlotType,
    carving: Carving | None = None,
    weight: str = "Cpus",
    start: str = "true",
    total: Resources = TOTAL,
    **attributes: Scalar,
) -> Machine:
    facts = Facts(
        name="host",
        total=total,
        detected=total,
        slots=lay_out(types, total, {"GPUs": tuple(GPUS)}),
        devices={"GPUs": {each: device(each, properties) for each, properties in GPUS.items()}},
        carving=carving or Carving(),
        weight=weight,
        policy=PolicyExpressions({"START": start}),
        attributes=attributes,
    )
    return Machine(facts, capability="right")


def claimed(host: Machine, *names: str, slot: str = "slot1@host", **ad: Scalar) -> ClaimsDecided:
    keys = [ClaimKey(name, "s") for name in names or ("c1",)]
    reply, changes = request_claims(host, request(*keys, slot=slot, ad=dict(ad)), NOW)
    for change in changes:
        host.apply(change)
    return reply


def test_devices_are_given_once_and_come_back() -> None:
    """Each claim has its own, the p-slot those that are left; a claim that ends gives them back."""
    host = machine()

    reply = claimed(host, "c1", "c2", RequestGPUs=2)

    assert ["c1"] == [grant.claim for grant in reply.granted]
    assert "not enough left" in reply.reason
    assert "GPU-a,GPU-b" == reply.granted[0].ad["AssignedGPUs"]
    left = slot_ad(host, host.facts.slots[0], now=0.0)
    assert (1, "{ GPUs_GPU_c }") == (left["GPUs"], _text(left["AvailableGPUs"]))
    assert "{ GPUs_GPU_a, GPUs_GPU_b, GPUs_GPU_c }" == _text(left["TotalSlotAvailableGPUs"])
    host.apply(ClaimRemoved("c1"))
    assert "GPU-a,GPU-b" == claimed(host, "c3", RequestGPUs=2).granted[0].ad["AssignedGPUs"]


def test_a_job_gets_only_devices_that_suit_it() -> None:
    """By the properties of each; who asks for more of these than there are gets nothing."""
    host = machine()
    suits = Expr('Capability >= Least && DeviceName == "A100"')

    assert "not enough" in claimed(host, RequestGPUs=3, RequireGPUs=suits, Least=8.0).reason
    (grant,) = claimed(host, RequestGPUs=1, RequireGPUs=suits, Least=8.0).granted

    assert "GPU-b" == grant.ad["AssignedGPUs"]


def test_what_has_no_ids_is_counted() -> None:
    """A number of licences."""
    host = machine()

    assert ["c1", "c2"] == [
        grant.claim for grant in claimed(host, "c1", "c2", "c3", RequestLicences=1).granted
    ]
    assert 0 == host.free(host.facts.slots[0]).custom["Licences"]


def test_a_job_can_count_matching_devices_as_htcondor_s_do() -> None:
    """The clause that `require_gpus` makes, against the slot with all devices and with what is left."""
    host = machine()
    job = ClassAd.from_wire({
        "RequireGPUs": Expr("Capability >= 8.0"),
        "RequestGPUs": 2,
        "Requirements": Expr("countMatches(MY.RequireGPUs,TARGET.AvailableGPUs) >= RequestGPUs"),
    })  # fmt: skip

    before = ClassAd.from_wire(slot_ad(host, host.facts.slots[0], now=0.0))
    claimed(host, RequestGPUs=2)
    after = ClassAd.from_wire(slot_ad(host, host.facts.slots[0], now=0.0))

    assert (True, False) == (matches(job, before), matches(job, after))
    assert "A100" == evaluate_attribute(
        "x", ClassAd.from_wire({"x": Expr("GPUs_GPU_c.DeviceName"), **_wire(after)})
    )


def test_a_static_slot_is_taken_whole_and_once() -> None:
    """With everything that belongs to it, whatever the job asks for; its ad tells who has it."""
    host = machine(*STATIC_AND_REST)

    reply = claimed(host, "c1", "c2", RequestGPUs=0)

    (grant,) = reply.granted
    assert ("slot1@host", "the slot is claimed") == (grant.slot, reply.reason)
    assert ("Static", "Claimed", 1, 1024, 1, "GPU-a") == tuple(
        grant.ad[name] for name in ("SlotType", "State", "Cpus", "Memory", "GPUs", "AssignedGPUs")
    )
    ads = {str(ad["Name"]): ad["State"] for ad in slot_ads(host, now=0.0)}
    assert {"slot1@host": "Claimed", "slot2@host": "Unclaimed"} == ads
    host.apply(ClaimRemoved("c1"))
    assert "slot1@host" == claimed(host, "c3").granted[0].slot


def test_what_the_layout_leaves_over_makes_no_second_claim() -> None:
    """A static slot that would fit into the machine twice is there once."""
    small = SlotType(cpus=1, memory=64, disk=100, resources={"GPUs": 0, "Licences": 0})

    assert ["c1"] == [grant.claim for grant in claimed(machine(small), "c1", "c2", RequestMemory=64).granted]


@pytest.mark.parametrize(("name", "amount"), [("Cpus", 2), ("Memory", 2000), ("GPUs", 2)])
def test_a_job_that_is_too_large_for_a_static_slot_is_refused(name: str, amount: int) -> None:
    """The machine's rest does not help; the slot's ad says so beforehand."""
    host = machine(*STATIC_AND_REST)
    asked: dict[str, Any] = {f"Request{name}": amount}
    job = ClassAd.from_wire({"Requirements": True, **asked})

    assert not matches(ClassAd.from_wire(slot_ad(host, host.facts.slots[0], now=0.0)), job)
    assert "too small" in claimed(host, **asked).reason


def test_start_knows_the_slot() -> None:
    """A policy for one type of slot, which holds for what is carved out of it too."""
    host = machine(*STATIC_AND_REST, start='SlotTypeID != 2 || TARGET.Owner == "alice"')

    assert "START" in claimed(host, slot="slot2@host", Owner="bob").reason
    assert "slot2_1@host" == claimed(host, slot="slot2@host", Owner="alice").granted[0].slot
    assert 0 == activated(host, activation(key=ClaimKey("c1", "s"), Owner="alice"))
    assert "slot1@host" == claimed(host, "c2", Owner="bob").granted[0].slot


def test_the_administrator_says_how_slots_are_carved() -> None:
    """
    By expressions over the job; the bare request is tried where the result does not fit, unless that is forbidden.
    """
    modify = {"Memory": parse("quantize(RequestMemory, {3000})"), "Cpus": parse("MY.RequestCpus + 1")}

    sizes: list[list[tuple[int, int]]] = []
    for must in (False, True):
        host = machine(carving=Carving(modify=modify, must=must))
        claimed(host, "c1", "c2", RequestMemory=1000)
        sizes.append([(claim.resources.cpus, claim.resources.memory) for claim in host.claims.values()])

    assert [[(2, 3000), (1, 1000)], [(2, 3000)]] == sizes


CAP = "min({RequestMemory, 500})"


@pytest.mark.parametrize(
    ("expression", "memory"),
    [
        ("MY.RequestMemory * 2", 2000),
        ("quantize(RequestMemory, {TARGET.MemQuantum})", 3000),
        ("quantize(RequestMemory, {MY.MemQuantum})", 1500),
        (CAP, 500),
        ("Memory / 2", 2048),
    ],
)
@pytest.mark.parametrize("must", [False, True])
def test_the_administrator_s_expressions_are_the_job_s(expression: str, memory: int, *, must: bool) -> None:
    """
    MY is the job and TARGET the slot; what they make of the request is what the job asks for from then on.
    """
    host = machine(carving=Carving(modify={"Memory": parse(expression)}, must=must), MemQuantum=3000)
    job: Ad = {
        "Requirements": Expr("TARGET.Memory >= RequestMemory"),
        "RequestMemory": 1000,
        "MemQuantum": 1500,
    }

    before = ClassAd.from_wire(slot_ad(host, host.facts.slots[0], now=0.0))
    reply, changes = request_claims(host, request(ClaimKey("c1", "s"), ad=job), NOW)

    assert matches(before, ClassAd.from_wire(job))
    assert [memory] == [grant.ad["Memory"] for grant in reply.granted]
    for change in changes:
        host.apply(change)
    what = msgspec.structs.replace(activation(key=ClaimKey("c1", "s")), ad=job)
    assert 0 == activated(host, what)


@pytest.mark.parametrize(
    ("expression", "left", "matching"),
    [
        ("quantize(MY.RequestMemory, {TARGET.MemQuantum})", 3000, True),
        ("quantize(MY.RequestMemory, {TARGET.MemQuantum})", 2999, False),
        (CAP, 500, True),
        (CAP, 499, False),
        ("max({RequestMemory, MY.Least ?: 0, CurrentTime - CurrentTime})", 1000, True),
        ("max({RequestMemory, [a = 3000].a})", 1000, True),
    ],
)
def test_a_slot_says_beforehand_what_the_expressions_demand(
    expression: str, left: int, *, matching: bool
) -> None:
    """From its own side, where MY is the slot; what cannot be said from there is asked as it is."""
    host = machine(carving=Carving(modify={"Memory": parse(expression)}, must=True), MemQuantum=3000)
    slot = {**slot_ad(host, host.facts.slots[0], now=0.0), "Memory": left}

    assert matching == matches(
        ClassAd.from_wire(slot), ClassAd.from_wire({"Requirements": True, "RequestMemory": 1000})
    )


def test_what_the_job_refuses_modified_it_may_take_as_it_asked() -> None:
    """Each size is matched by itself."""
    host = machine(carving=Carving(modify={"Memory": parse("quantize(RequestMemory, {3000})")}))

    (grant,) = claimed(host, RequestMemory=1000, Requirements=Expr("TARGET.Memory < 2000")).granted

    assert 1000 == grant.ad["Memory"]


def test_where_the_expressions_must_hold_the_slot_says_so_beforehand() -> None:
    """Otherwise a negotiator would give it away again and again."""
    host = machine(carving=Carving(modify={"Memory": parse("quantize(RequestMemory, {3000})")}, must=True))
    claimed(host)
    job = ClassAd.from_wire({"Requirements": True, "RequestMemory": 1000})

    assert not matches(ClassAd.from_wire(slot_ad(host, host.facts.slots[0], now=0.0)), job)


def test_a_slot_weighs_what_the_administrator_says() -> None:
    """An expression over each slot's ad."""
    host = machine(*STATIC_AND_REST, weight="Cpus + 10 * GPUs")
    (grant,) = claimed(host, slot="slot2@host", RequestCpus=2, RequestGPUs=1).granted

    assert 12 == grant.ad["SlotWeight"]
    assert [11, 11] == [slot_ad(host, slot, now=0.0)["SlotWeight"] for slot in host.facts.slots]


def test_a_weight_may_depend_on_the_kind_of_slot() -> None:
    """On all that the ad says: what is checked at the start is what is advertised later."""
    host = machine(*STATIC_AND_REST, weight="SlotTypeID * 10 + ifThenElse(DynamicSlot, 1, 2)")
    (grant,) = claimed(host, slot="slot2@host").granted

    assert 21 == grant.ad["SlotWeight"]
    assert [12, 22] == [slot_ad(host, slot, now=0.0)["SlotWeight"] for slot in host.facts.slots]


def test_children_are_rolled_up() -> None:
    """One ad tells about all dynamic slots of its slot, and not about others'."""
    host = machine(*STATIC_AND_REST)
    claimed(host, "whole")
    claimed(host, "c1", slot="slot2@host", RequestCpus=2, RequestGPUs=1)
    activated(host, activation(key=ClaimKey("c1", "s")))
    ad = slot_ad(host, host.facts.slots[1], now=0.0)

    assert {
        "ChildName": '{ "slot2_2@host" }',
        "ChildCpus": "{ 2 }",
        "ChildMemory": "{ 128 }",
        "ChildDisk": "{ 1024 }",
        "ChildGPUs": "{ 1 }",
        "ChildLicences": "{ 0 }",
        "ChildState": '{ "Claimed" }',
        "ChildActivity": '{ "Busy" }',
        "ChildRemoteUser": '{ "alice" }',
    } == {name: _text(value) for name, value in ad.items() if name.startswith("Child")}
    assert (1, 3, 3072, 2) == tuple(
        ad[name] for name in ("NumDynamicSlots", "TotalSlotCpus", "TotalSlotMemory", "TotalSlotGPUs")
    )


def test_a_journal_from_before_there_were_devices_is_read() -> None:
    """Its claims have no devices, and are parts of the one slot that there was."""
    old = {
        "type": "claimed",
        "claim": {
            "key": ["c1", "s1"],
            "schedd": "schedd",
            "submitter": "alice",
            "slot": 3,
            "resources": {"cpus": 1, "memory": 128, "disk": 1024},
            "lease": 60.0,
            "deadline": 1.0,
            "made": 0.0,
            "changed": 0.0,
        },
    }
    host = machine()

    host.apply(msgspec.msgpack.decode(msgspec.msgpack.encode(old), type=Change))

    assert ("slot1_3@host", {}) == (host.facts.name_of(host.claims["c1"]), host.claims["c1"].devices)
    assert 3 == host.free(host.facts.slots[0]).cpus


def test_claims_that_began_in_another_layout_are_in_nobody_s_way() -> None:
    """
    A startd that is started again with other slot types lets them end, and gives away only what they do not have.
    """
    before = machine()
    claimed(before, "c1", RequestCpus=2, RequestGPUs=1)
    claimed(before, "c2", RequestCpus=1)
    after = machine(SlotType(count=2), SlotType(partitionable=True))
    for change in before.snapshot():
        after.apply(change)

    assert "the slot is claimed" == claimed(after, "n1").reason
    names = [ad["Name"] for ad in slot_ads(after, now=0.0)]
    assert ["slot1_1@host", "slot1_2@host", "slot2@host", "slot3@host"] == names
    assert ["slot2@host"] == [grant.slot for grant in claimed(after, "n2", slot="slot2@host").granted]
    assert [] == claimed(after, "n3", slot="slot3@host").granted
    assert 4 == sum(claim.resources.cpus for claim in after.claims.values())


def test_a_machine_with_a_little_less_disk_than_before_keeps_its_slots_open() -> None:
    """How much of it is free is measured at each start, and something is always written in between."""
    before = machine(SlotType(count=2))
    claimed(before, "c1")
    after = machine(SlotType(count=2), total=msgspec.structs.replace(TOTAL, disk=TOTAL.disk - 10))
    for change in before.snapshot():
        after.apply(change)

    ad = slot_ad(after, after.facts.slots[1], now=0.0)
    (grant,) = claimed(after, "c2", slot="slot2@host").granted

    assert ad["Requirements"] is not False
    assert (49_990, 49_990) == (ad["Disk"], grant.ad["Disk"])
    assert TOTAL.disk - 10 == sum(claim.resources.disk for claim in after.claims.values())


@pytest.mark.parametrize(
    ("wants", "why"),
    [
        ({"RequestGPUs": 1}, ""),
        ({"requestgpus": 1, "RequestMemory": Expr("TARGET.Memory")}, ""),
        ({"RequestGPUs": 1, "RequireGPUs": Expr("Capability < Least"), "Least": 8.0}, ""),
        ({"RequestGPUs": 0, "RequireGPUs": Expr("Capability >= 8.0")}, ""),
        ({"RequestGPUs": 2}, "more than the claim has"),
        ({"RequestMemory": 129}, "more than the claim has"),
        ({"RequestMemory": Expr("TARGET.Memory + 1")}, "more than the claim has"),
        ({"RequestLicences": 1}, "more than the claim has"),
        ({"RequestGPUs": 1, "RequireGPUs": Expr("Capability >= 8.0")}, "satisfy the job's RequireGPUs"),
        ({"RequestCpus": "one"}, "no amount"),
    ],
)
def test_a_claim_that_is_used_again_has_what_the_next_job_asks_for(wants: Ad, why: str) -> None:
    """
    Its schedd chooses that job; the startd looks whether amounts and devices are such as this one asks for.
    """
    host = machine()
    claimed(host, RequestMemory=100, RequestGPUs=1)

    what = msgspec.structs.replace(activation(key=ClaimKey("c1", "s")), ad=wants)
    result, changes = activate(host, what, NOW)

    assert why in result.reason
    assert (0 if not why else 1027, not why) == (result.code, bool(changes))


def _text(value: object) -> str:
    return value.expr if isinstance(value, Expr) else str(value)


def _wire(ad: ClassAd) -> Ad:
    return ad.to_wire()


def test_a_repeat_finds_its_static_slot() -> None:
    """The answer was lost: the same claim is granted again as it was."""
    host = machine(*STATIC_AND_REST)
    first = claimed(host)

    assert first.granted == claimed(host).granted
    assert isinstance(host.claims["c1"], Claim)
    assert KEY.claim in host.claims


def test_an_owner_keeps_a_part_of_a_machine_by_what_is_left() -> None:
    """
    START is asked of what is left, for each claim of one request, and of the slot that the job would have: jobs of one kind leave
    two cores to another.
    """
    start = "TARGET.InteractiveJob =?= true || DynamicSlot =?= true || Cpus - TARGET.RequestCpus >= 2"
    host = machine(start=start)
    reply = claimed(host, "c1", "c2", "c3", RequestCpus=1)
    assert ["c1", "c2"] == [grant.claim for grant in reply.granted]
    assert "START of the machine is not true for what is left of the slot" == reply.reason
    assert ["c4", "c5"] == [
        grant.claim for grant in claimed(host, "c4", "c5", RequestCpus=1, InteractiveJob=True).granted
    ]
