"""
The ads of a machine, with HTCondor's attribute names.
"""

from collections.abc import Sequence

from kettle.startd.domain.claim import Claim
from kettle.startd.domain.machine import Facts, Machine
from kettle.startd.domain.resources import Resources
from kettle.wire.ads import Ad, Expr

WITHIN_LIMITS = (
    "(TARGET.RequestCpus ?: 1) <= MY.Cpus && (TARGET.RequestMemory ?: 128) <= MY.Memory"
    " && (TARGET.RequestDisk ?: 1024) <= MY.Disk"
)
"""What a partitionable slot demands beside START: the job must fit into what is left."""


def partitionable_ad(machine: Machine, *, now: float) -> Ad:
    """
    The slot out of which claims are carved; its resources are those that are left.
    """
    facts = machine.facts
    return {
        **_common(facts, facts.slot, machine.free, now=now),
        "SlotType": "Partitionable",
        "PartitionableSlot": True,
        "DynamicSlot": False,
        "SlotID": 1,
        "State": "Drained" if machine.draining else "Unclaimed",
        "Activity": "Retiring" if machine.draining and machine.claims else "Idle",
        "EnteredCurrentState": facts.started,
        "EnteredCurrentActivity": facts.started,
        "Draining": machine.draining,
        "TotalSlotCpus": facts.total.cpus,
        "TotalSlotMemory": facts.total.memory,
        "TotalSlotDisk": facts.total.disk,
        "WithinResourceLimits": Expr(WITHIN_LIMITS),
        "Requirements": False
        if machine.draining or machine.trouble
        else Expr("START && WithinResourceLimits"),
        **({"Trouble": machine.trouble} if machine.trouble else {}),
        "NumDynamicSlots": len(machine.claims),
        **_children(facts, list(machine.claims.values())),
    }


def dynamic_ad(facts: Facts, claim: Claim, *, now: float) -> Ad:
    """
    The slot of one claim.
    """
    attempt = claim.attempt
    return {
        **_common(facts, facts.dynamic_slot(claim.slot), claim.resources, now=now),
        "SlotType": "Dynamic",
        "PartitionableSlot": False,
        "DynamicSlot": True,
        "SlotID": 1,
        "DSlotId": claim.slot,
        "ParentSlotId": 1,
        "State": "Preempting" if claim.ending else "Claimed",
        "Activity": _activity(claim),
        "EnteredCurrentState": int(claim.made),
        "EnteredCurrentActivity": int(claim.changed),
        "TotalSlotCpus": claim.resources.cpus,
        "TotalSlotMemory": claim.resources.memory,
        "TotalSlotDisk": claim.resources.disk,
        "Requirements": Expr("START"),
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
        "TotalCpus": facts.total.cpus,
        "TotalMemory": facts.total.memory,
        "TotalDisk": facts.total.disk,
        "NumDynamicSlots": len(machine.claims),
        "Draining": machine.draining,
    }


def _activity(claim: Claim) -> str:
    if claim.attempt is None:
        return "Idle"
    return "Vacating" if claim.ending or claim.attempt.stop else "Busy"


def _common(facts: Facts, name: str, resources: Resources, *, now: float) -> Ad:
    return {
        "MyType": "Machine",
        "TargetType": "Job",
        "Name": name,
        "Machine": facts.name,
        "StartdName": facts.name,
        "Cpus": resources.cpus,
        "Memory": resources.memory,
        "Disk": resources.disk,
        "TotalCpus": facts.total.cpus,
        "TotalMemory": facts.total.memory,
        "TotalDisk": facts.total.disk,
        "DetectedCpus": facts.detected.cpus,
        "DetectedMemory": facts.detected.memory,
        "SlotWeight": Expr("Cpus"),
        "Start": Expr(facts.start),
        "Rank": 0.0,
        "CurrentRank": 0.0,
        "HasFileTransfer": True,
        "DaemonStartTime": facts.started,
        "MyCurrentTime": int(now),
        **facts.attributes,
    }


def _children(facts: Facts, claims: Sequence[Claim]) -> Ad:
    """
    The dynamic slots rolled up, so that one ad tells about the whole machine.
    """
    lists = {
        "ChildName": [f'"{facts.dynamic_slot(claim.slot)}"' for claim in claims],
        "ChildCpus": [str(claim.resources.cpus) for claim in claims],
        "ChildMemory": [str(claim.resources.memory) for claim in claims],
        "ChildDisk": [str(claim.resources.disk) for claim in claims],
        "ChildActivity": [f'"{_activity(claim)}"' for claim in claims],
    }
    return {
        name: Expr("{ " + ", ".join(values) + " }" if values else "{ }") for name, values in lists.items()
    }
