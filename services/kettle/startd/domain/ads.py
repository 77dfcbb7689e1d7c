"""
The ads of a machine, with HTCondor's attribute names.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from kettle.classad import NOTHING, ClassAd, EvaluationFailed, Node, evaluate, parse, unparse
from kettle.startd.domain.claim import Claim
from kettle.startd.domain.machine import Facts, Machine
from kettle.startd.domain.resources import STANDARD, Resources
from kettle.startd.domain.slots import Slot, attribute_of
from kettle.startd.domain.turning import turned
from kettle.wire.ads import Ad, Expr


def slot_ads(machine: Machine, *, now: float) -> list[Ad]:
    """
    All slots of the machine, those that claims have before those that may be claimed.
    """
    claimed = [claim_ad(machine.facts, claim, now=now) for claim in machine.claims.values()]
    free = [
        slot_ad(machine, slot, now=now)
        for slot in machine.facts.slots
        if slot.partitionable or not machine.claims_on(slot)
    ]
    return [*claimed, *(ad for ad in free if ad["Name"] not in {other["Name"] for other in claimed})]


def slot_ad(machine: Machine, slot: Slot, *, now: float) -> Ad:
    """
    A slot as those see it who may want to claim it; the resources of a partitionable one are those that are left.
    """
    facts = machine.facts
    name = facts.slot_name(slot.number)
    left = machine.offered(slot)
    claims = machine.claims_on(slot)
    shut = machine.draining or bool(machine.trouble) or not machine.open_to_claims(slot)
    ad: Ad = {
        **_common(facts, name, left, now=now),
        **_devices(facts, slot.devices, machine.free_devices(slot)),
        "SlotType": "Partitionable" if slot.partitionable else "Static",
        "PartitionableSlot": slot.partitionable,
        "DynamicSlot": False,
        "SlotID": slot.number,
        "SlotTypeID": slot.type,
        "State": "Drained" if machine.draining else "Unclaimed",
        "Activity": "Retiring" if machine.draining and machine.claims else "Idle",
        "EnteredCurrentState": facts.started,
        "EnteredCurrentActivity": facts.started,
        "Draining": machine.draining,
        **_totals("TotalSlot", slot.total),
        **{f"TotalSlotAvailable{tag}": _pieces(tag, ids) for tag, ids in slot.devices.items()},
        "Requirements": False if shut else Expr("START && WithinResourceLimits"),
        **({"Trouble": machine.trouble} if machine.trouble else {}),
        **({"NumDynamicSlots": len(claims), **_children(facts, claims)} if slot.partitionable else {}),
    }
    return _weighed(facts, left, ad)


def claim_ad(facts: Facts, claim: Claim, *, now: float) -> Ad:
    """
    The slot of one claim.
    """
    attempt = claim.attempt
    parent = facts.slot(facts.slot_name(claim.parent))
    kind: Ad = {"SlotType": "Static", "DynamicSlot": False}
    if not claim.whole:
        kind = {
            "SlotType": "Dynamic",
            "DynamicSlot": True,
            "DSlotId": claim.slot,
            "ParentSlotId": claim.parent,
        }
    ad: Ad = {
        **_common(facts, facts.name_of(claim), claim.resources, now=now),
        **_devices(facts, claim.devices, claim.devices),
        **kind,
        "PartitionableSlot": False,
        "SlotID": claim.parent,
        **({"SlotTypeID": parent.type} if parent is not None else {}),
        "State": _state(claim),
        "Activity": _activity(claim),
        "EnteredCurrentState": int(claim.made),
        "EnteredCurrentActivity": int(claim.changed),
        **_totals("TotalSlot", claim.resources),
        "Requirements": Expr("START && WithinResourceLimits"),
        "PublicClaimId": claim.key.claim,
        "RemoteOwner": claim.submitter,
        "RemoteUser": claim.submitter,
        "AccountingGroup": claim.submitter,
        "RemoteScheddName": claim.schedd,
        "ClientMachine": claim.schedd,
        **(
            {
                "JobId": str(attempt.job),
                "GlobalJobId": attempt.global_job_id,
                "JobStart": int(attempt.began),
            }
            if attempt is not None
            else {}
        ),
    }
    return _weighed(facts, claim.resources, ad)


def startd_ad(machine: Machine, *, now: float, version: str) -> Ad:
    """
    The startd itself.
    """
    facts = machine.facts
    return {
        "MyType": "StartDaemon",
        "Name": facts.name,
        "Machine": facts.name,
        "DaemonStartTime": facts.started,
        "MyCurrentTime": int(now),
        "KettleVersion": version,
        "DetectedCpus": facts.detected.cpus,
        "DetectedMemory": facts.detected.memory,
        **_totals("Total", facts.total),
        **{f"Offline{tag}": ",".join(ids) for tag, ids in facts.offline.items()},
        "TotalSlots": len(facts.slots),
        "NumDynamicSlots": sum(not claim.whole for claim in machine.claims.values()),
        "Draining": machine.draining,
    }


def weight_of(expression: Node, slot: ClassAd) -> float | None:
    """
    What a slot counts for by a SLOT_WEIGHT expression; None if that is no number.
    """
    try:
        value = evaluate(expression, slot, None, NOTHING)
    except EvaluationFailed:
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _state(claim: Claim) -> str:
    return "Preempting" if claim.ending else "Claimed"


def _activity(claim: Claim) -> str:
    if claim.attempt is None:
        return "Idle"
    return "Vacating" if claim.ending or claim.attempt.stop else "Busy"


def _totals(prefix: str, resources: Resources) -> Ad:
    return {f"{prefix}{name}": amount for name, amount in resources.named().items()}


def _common(facts: Facts, name: str, resources: Resources, *, now: float) -> Ad:
    ad: Ad = {
        "MyType": "Machine",
        "TargetType": "Job",
        "Name": name,
        "Machine": facts.name,
        "StartdName": facts.name,
        **resources.named(),
        **_totals("Total", facts.total),
        "TotalSlots": len(facts.slots),
        "DetectedCpus": facts.detected.cpus,
        "DetectedMemory": facts.detected.memory,
        "WithinResourceLimits": Expr(_limits(facts)),
        "Start": Expr(facts.start),
        "Rank": 0.0,
        "CurrentRank": 0.0,
        "HasFileTransfer": True,
        "DaemonStartTime": facts.started,
        "MyCurrentTime": int(now),
        **facts.attributes,
    }
    return ad


def _weighed(facts: Facts, resources: Resources, ad: Ad) -> Ad:
    """
    With its weight, which may depend on anything that it says.
    """
    weight: float | None = resources.cpus
    if facts.weight.strip().lower() != "cpus":
        weight = weight_of(parse(facts.weight), ClassAd.from_wire(ad))
    ad["SlotWeight"] = resources.cpus if weight is None else weight
    return ad


def _limits(facts: Facts) -> str:
    """
    What a slot demands beside START: the job must fit into it.
    """
    clauses: list[str] = []
    for name in facts.total.named():
        modify = facts.carving.modify.get(name) if facts.carving.must else None
        asked = (turned(modify) if modify is not None else None) or f"TARGET.Request{name}"
        clauses.append(f"({asked} ?: {STANDARD.get(name, 0)}) <= MY.{name}")
    return " && ".join(clauses)


def _devices(
    facts: Facts, assigned: Mapping[str, Sequence[str]], available: Mapping[str, Sequence[str]]
) -> Ad:
    """
    The devices of a slot: those that it has, and of them those that a job could get.
    """
    ad: Ad = {}
    for tag, ids in assigned.items():
        devices = [known for each in ids if (known := facts.devices.get(tag, {}).get(each)) is not None]
        ad[f"Assigned{tag}"] = ",".join(ids)
        ad[f"Available{tag}"] = _pieces(tag, available.get(tag, ()))
        ad |= {attribute_of(tag, each.id): each.nested for each in devices}
        said = Counter((key, value) for each in devices for key, value in each.properties.items())
        ad |= {f"{tag}_{key}": value for (key, value), count in said.items() if count == len(devices)}
    return ad


def _pieces(tag: str, ids: Sequence[str]) -> Expr:
    return _list(attribute_of(tag, each) for each in ids)


def _children(facts: Facts, claims: Sequence[Claim]) -> Ad:
    """
    The dynamic slots rolled up, so that one ad tells about the whole machine.
    """
    texts = {
        "ChildName": [facts.name_of(claim) for claim in claims],
        "ChildState": [_state(claim) for claim in claims],
        "ChildActivity": [_activity(claim) for claim in claims],
        "ChildRemoteUser": [claim.submitter for claim in claims],
    }
    have = [claim.resources.named() for claim in claims]
    amounts = {f"Child{name}": [str(each.get(name, 0)) for each in have] for name in facts.total.named()}
    quoted = {name: [_quoted(value) for value in values] for name, values in texts.items()}
    return {name: _list(values) for name, values in {**quoted, **amounts}.items()}


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return unparse(text)  # the same few names again and again, in every ad


def _list(items: Iterable[str]) -> Expr:
    inside = ", ".join(items)
    return Expr(f"{{ {inside} }}" if inside else "{ }")
