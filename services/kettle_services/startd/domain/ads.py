"""The ads of a machine, with HTCondor's attribute names."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from kettle.classad import NOTHING, ClassAd, EvaluationFailed, Node, evaluate, parse, unparse
from kettle_services.startd.domain.expression_rewriting import rewritten
from kettle_services.startd.domain.slots.resources import STANDARD, Resources
from kettle_services.startd.domain.slots.slot import Slot, attribute_of
from kettle_services.startd.domain.state.claim import Claim, Now, RunningAttempt
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.domain.state.policy_expressions import JobEvaluation
from kettle_services.startd.domain.state.slot_transitions import Activity, State, state_of
from kettle_wire.ads import Ad, Expr
from kettle_wire.machine_abilities import ALWAYS

_LOCALS: Final = "TARGET.JobUniverse == 12 || TARGET.JobUniverse == 7"
"""START of the local slot: the local and the scheduler universe."""


def slot_ads(machine: Machine, *, now: float) -> list[Ad]:
    """All slots of the machine, those that claims have before those that may be claimed."""
    claimed = [claim_ad(machine, claim, now=now) for claim in machine.shared]
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
    shut = machine.shut or slot.number in machine.owned or not machine.open_to_claims(slot)
    state, activity = unclaimed_state(machine, slot)
    ad: Ad = {
        **_common(machine, name, left, now=now),
        **_devices(facts, slot.devices, machine.free_devices(slot)),
        "SlotType": "Partitionable" if slot.partitionable else "Static",
        "PartitionableSlot": slot.partitionable,
        "DynamicSlot": False,
        "SlotID": slot.number,
        "SlotTypeID": slot.type,
        "State": state,
        "Activity": activity,
        "EnteredCurrentState": int(machine.changed),
        "EnteredCurrentActivity": int(
            backfill.since if (backfill := machine.backfill.get(slot.number)) is not None else machine.changed
        ),
        "CurrentRank": 0.0,
        **_totals("TotalSlot", slot.total),
        **{f"TotalSlotAvailable{tag}": _pieces(tag, ids) for tag, ids in slot.devices.items()},
        "Requirements": False if shut else Expr("START && WithinResourceLimits"),
        **({"Trouble": machine.why_closed} if machine.why_closed else {}),
        **({"NumDynamicSlots": len(claims), **_children(facts, claims)} if slot.partitionable else {}),
    }
    return _weighed(facts, left, ad)


def unclaimed_state(machine: Machine, slot: Slot) -> tuple[State, Activity]:
    """
    Where a slot is that no claim has, or has as a whole.

    One that takes jobs while the machine is being emptied has to be found by who looks for one.
    """
    if machine.draining and machine.shut:
        return "Drained", "Retiring" if machine.shared else "Idle"
    if (backfill := machine.backfill.get(slot.number)) is not None:
        return "Backfill", backfill.activity
    return "Owner" if slot.number in machine.owned else "Unclaimed", "Idle"


def claim_ad(machine: Machine, claim: Claim, *, now: float) -> Ad:
    """The slot of one claim."""
    facts = machine.facts
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
    if claim.local:
        kind["SlotType"] = "Local"
    state, activity = state_of(claim)
    ad: Ad = {
        **_common(machine, facts.name_of(claim), claim.resources, now=now),
        **_devices(facts, claim.devices, claim.devices),
        **kind,
        "PartitionableSlot": False,
        "SlotID": claim.parent,
        **({"SlotTypeID": parent.type} if parent is not None else {}),
        "State": state,
        "Activity": activity,
        "EnteredCurrentState": int(claim.entered or claim.made),
        "EnteredCurrentActivity": int(claim.changed),
        "CurrentRank": claim.rank,
        **_totals("TotalSlot", claim.resources),
        **(_local(facts) if claim.local else {}),
        "Requirements": False if claim.ending else Expr("START && WithinResourceLimits"),
        "PublicClaimId": claim.key.claim,
        "RemoteOwner": claim.submitter,
        "RemoteUser": claim.submitter,
        "AccountingGroup": claim.submitter,
        "RemoteScheddName": claim.schedd,
        "ClientMachine": claim.schedd,
        **(_running(attempt) if attempt is not None else {}),
        **_preempted(machine.waits_for(claim)),
        **({"UserPreemption": True} if facts.user_preemption and not claim.local else {}),
    }
    return _weighed(facts, claim.resources, ad)


def _local(facts: Facts) -> Ad:
    account: Ad = {"JobAccount": Expr(facts.local_account)} if facts.local_account else {}
    return {"Start": Expr(_LOCALS), "Rank": 0.0, **account}


def _preempted(heir: Claim | None) -> Ad:
    if heir is None:
        return {}
    return {
        "PreemptingUser": heir.submitter,
        "PreemptingOwner": heir.submitter,
        "PreemptingAccountingGroup": heir.submitter,
        "PreemptingRank": heir.rank,
    }


def _running(attempt: RunningAttempt) -> Ad:
    ad: Ad = {
        "JobId": str(attempt.job),
        "GlobalJobId": attempt.global_job_id,
        "JobStart": int(attempt.began),
    }
    return ad | {"TotalJobSuspendTime": int(attempt.suspension)} if attempt.suspension else ad


def question(machine: Machine, claim: Claim, now: Now) -> JobEvaluation:
    """The machine's policy, to be asked about a claimed slot and what runs on it."""
    job = claim.attempt.ad if claim.attempt is not None else None
    policy = machine.policy_of(claim)
    return JobEvaluation(policy, lambda: claim_ad(machine, claim, now=now.time), job, now.context)


def startd_ad(machine: Machine, *, now: float, version: str) -> Ad:
    """The startd itself."""
    facts = machine.facts
    return {
        "MyType": "StartD",
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
        "NumDynamicSlots": sum(not claim.whole for claim in machine.shared),
        "Draining": machine.draining,
    }


def weight_of(expression: Node, slot: ClassAd) -> float | None:
    """What a slot counts for by a SLOT_WEIGHT expression; None if that is no number."""
    try:
        value = evaluate(expression, slot, None, NOTHING)
    except EvaluationFailed:
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _totals(prefix: str, resources: Resources) -> Ad:
    return {f"{prefix}{name}": amount for name, amount in resources.named().items()}


def _common(machine: Machine, name: str, resources: Resources, *, now: float) -> Ad:
    facts, drain = machine.facts, machine.drain
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
        "Start": Expr(machine.start),
        "Rank": Expr(facts.policy.texts["RANK"]) if facts.policy.ranks else 0.0,
        "Draining": machine.draining,
        **({"DrainingRequestId": drain.id, "DrainReason": drain.reason} if drain is not None else {}),
        **machine.conditions,
        **ALWAYS,
        "DaemonStartTime": facts.started,
        "MyCurrentTime": int(now),
        **machine.tried,
        **facts.attributes,
        **machine.probed,
        **machine.kept_outputs,
    }
    return ad


def _weighed(facts: Facts, resources: Resources, ad: Ad) -> Ad:
    """With its weight, which may depend on anything that it says."""
    weight: float | None = resources.cpus
    if facts.weight.strip().lower() != "cpus":
        weight = weight_of(parse(facts.weight), ClassAd.from_wire(ad))
    ad["SlotWeight"] = resources.cpus if weight is None else weight
    return ad


def _limits(facts: Facts) -> str:
    """What a slot demands beside START: the job must fit into it."""
    clauses: list[str] = []
    for name in facts.total.named():
        modify = facts.carving.modify.get(name) if facts.carving.must else None
        asked = (rewritten(modify) if modify is not None else None) or f"TARGET.Request{name}"
        clauses.append(f"({asked} ?: {STANDARD.get(name, 0)}) <= MY.{name}")
    return " && ".join(clauses)


def _devices(
    facts: Facts, assigned: Mapping[str, Sequence[str]], available: Mapping[str, Sequence[str]]
) -> Ad:
    """The devices of a slot: those that it has, and of them those that a job could get."""
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
    """The dynamic slots rolled up, so that one ad describes the whole machine."""
    texts: dict[str, list[str]] = {
        "ChildName": [facts.name_of(claim) for claim in claims],
        "ChildState": [state_of(claim)[0] for claim in claims],
        "ChildActivity": [state_of(claim)[1] for claim in claims],
        "ChildRemoteUser": [claim.submitter for claim in claims],
    }
    have = [claim.resources.named() for claim in claims]
    amounts = {f"Child{name}": [str(each.get(name, 0)) for each in have] for name in facts.total.named()}
    quoted = {name: [_quoted(value) for value in values] for name, values in texts.items()}
    return {name: _list(values) for name, values in {**quoted, **amounts}.items()}


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return unparse(text)  # the same few names repeat in every ad


def _list(items: Iterable[str]) -> Expr:
    inside = ", ".join(items)
    return Expr(f"{{ {inside} }}" if inside else "{ }")
