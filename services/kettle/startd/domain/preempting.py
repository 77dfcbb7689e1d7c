"""
Two claims on a slot: the one that has it, and one that waits for it because the machine's RANK likes its job better.

    Claimed/Busy --better job--> Claimed/Retiring --time over--> Preempting --gone--> Claimed/Idle of the waiting claim
                                      |
                                      +--the waiting claim goes away--> Claimed/Busy

The match names the claim that is to make room: whoever saw the slot before that claim was made, or free, preempts nobody.
"""

import hmac
from hashlib import sha256

import msgspec

from kettle.classad import ClassAd, rank
from kettle.startd.domain.ads import claim_ad, question
from kettle.startd.domain.assigning import misfit, suits
from kettle.startd.domain.changes import Change, Gone, Reopened, Waiting
from kettle.startd.domain.claim import Claim, Now, Stop
from kettle.startd.domain.machine import Machine
from kettle.startd.domain.states import retire
from kettle.wire.commands.startd import ClaimKey, RequestClaims

PREEMPTING_RANK = 1018
"""VacateReasonCode StartdPreemptingClaimRank."""


def capability(machine: Machine, claim: Claim) -> str:
    """
    The secret of those who may have a claim make room for a better one; no other claim on the slot has the same.
    """
    return hmac.new(machine.capability.encode(), claim.key.claim.encode(), sha256).hexdigest()


def preemptible(machine: Machine) -> list[Claim]:
    """
    Claims that could make room: none, if RANK likes all jobs alike.
    """
    if not machine.facts.policy.ranks or machine.shut:
        return []
    return [claim for claim in machine.shared if not claim.ending]


def occupant(machine: Machine, slot: str) -> Claim | None:
    """
    The claim that has the slot of this name.
    """
    return next((claim for claim in machine.shared if machine.facts.name_of(claim) == slot), None)


def wait(machine: Machine, current: Claim, command: RequestClaims, key: ClaimKey, now: Now) -> Claim | str:
    """
    The claim that will have the slot when `current` is gone, or why there is none.
    """
    right = capability(machine, current)
    if not hmac.compare_digest(command.capability.encode(), right.encode()):
        return "the match is out of date"
    if shut := machine.shut_for(local=False):
        return shut
    if current.ending:
        return "the claim on the slot is ending, or another waits for it already"
    heir = Claim(
        key=key,
        schedd=command.schedd,
        submitter=command.submitter,
        slot=current.slot,
        resources=current.resources,
        lease=command.lease,
        deadline=now.clock + command.lease,
        made=now.time,
        changed=now.time,
        parent=current.parent,
        whole=current.whole,
        devices=current.devices,
    )
    ad = claim_ad(machine, msgspec.structs.replace(current, attempt=None), now=now.time)
    if why := misfit(current, machine.facts.carving, command.job, lambda: ad, now.context):
        return why
    slot, job = ClassAd.from_wire(ad), ClassAd.from_wire(command.job)
    if not suits(slot, job, current, now.context):
        return "START of the machine or Requirements of the job is not true for the slot"
    liking = rank(slot, job, now.context)
    if liking <= current.rank:
        return f"RANK of the machine is {liking:g} for the job, and {current.rank:g} for the one that has the slot"
    return msgspec.structs.replace(heir, rank=liking)


def make_room(machine: Machine, current: Claim, heir: Claim, now: Now) -> list[Change]:
    """
    End a claim for the one that waits; its job has its retirement time.
    """
    reason = f"RANK of the machine is {heir.rank:g} for another job, and {current.rank:g} for this one"
    stop = Stop(PREEMPTING_RANK, reason)
    return [Waiting(current.key.claim, heir), *retire(current, stop, question(machine, current, now), now)]


def withdraw(machine: Machine, heir: Claim, now: Now) -> list[Change]:
    """
    A waiting claim goes away: the job that it waits for goes on, unless it was told to end.
    """
    changes: list[Change] = [Gone(heir.key.claim)]
    for name, waiting in machine.waiting.items():
        current = machine.claims.get(name)
        if waiting.key.claim != heir.key.claim or current is None or current.preempting:
            continue
        if current.then is not None and current.then.code == PREEMPTING_RANK:
            changes.append(Reopened(name, now.time))
    return changes
