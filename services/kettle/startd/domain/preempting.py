"""
Claims that wait for slots which others have: a job that RANK likes better, or one that its owner wants to run at once.

    Claimed/Busy --better job--> Claimed/Retiring --time over--> Preempting --gone--> Claimed/Idle of the waiting claim
                                      |
                                      +--the waiting claim goes away--> Claimed/Busy

    Claimed/Busy --swapped--> Preempting --all gone--> Claimed/Idle of the waiting claim, with all that they had

A match names the claim that is to make room: whoever saw the slot before that claim was made, or free, preempts nobody.
A swap is proved by the secrets of the claims that make room.
"""

import hmac
from functools import reduce
from hashlib import sha256

import msgspec

from kettle.classad import ClassAd, rank
from kettle.startd.domain.ads import claim_ad, question
from kettle.startd.domain.assigning import misfit, suits
from kettle.startd.domain.attempts import stop_attempt
from kettle.startd.domain.changes import Change, Closing, Gone, Reopened, Waiting
from kettle.startd.domain.claim import Claim, Now, Stop
from kettle.startd.domain.folding import inherited
from kettle.startd.domain.machine import Machine
from kettle.startd.domain.resources import Resources
from kettle.startd.domain.states import retire
from kettle.wire.commands.startd import ClaimKey, RequestClaims

COALESCED, PREEMPTING_RANK = 1015, 1018
"""VacateReasonCode StartdCoalesce and StartdPreemptingClaimRank."""


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


def outrank(
    machine: Machine, current: Claim, command: RequestClaims, key: ClaimKey, now: Now
) -> list[Change] | str:
    """
    Have a claim make room for one that the machine likes better, or say why not; its job has its retirement time.
    """
    right = capability(machine, current)
    if not hmac.compare_digest(command.capability.encode(), right.encode()):
        return "the match is out of date"
    heir = _heir(machine, [current], command, key, now)
    if isinstance(heir, str):
        return heir
    if heir.rank <= current.rank:
        return f"RANK of the machine is {heir.rank:g} for the job, and {current.rank:g} for the one that has the slot"
    reason = f"RANK of the machine is {heir.rank:g} for another job, and {current.rank:g} for this one"
    stop = Stop(PREEMPTING_RANK, reason)
    return [Waiting(heir), *retire(current, stop, question(machine, current, now), now)]


def swap(machine: Machine, command: RequestClaims, key: ClaimKey, now: Now) -> list[Change] | str:
    """
    Have claims of the same schedd make room together, at once, or say why not.
    """
    currents = [claim for each in command.instead_of if (claim := machine.proven(each)) is not None]
    if len(currents) < len(command.instead_of):
        return "a claim that is to make room is not there any more"
    if any(claim.local for claim in currents):
        return "what runs where it was submitted has no slot that another job could have"
    if len({claim.parent for claim in currents}) > 1 or (len(currents) > 1 and currents[0].whole):
        return "the claims that are to make room are not parts of one partitionable slot"
    heir = _heir(machine, currents, command, key, now)
    if isinstance(heir, str):
        return heir
    changes: list[Change] = [Waiting(heir)]
    stop = Stop(COALESCED, "its owner has another job run in its place")
    for claim in currents:
        if claim.attempt is None:
            changes.append(Gone(claim.key.claim))
        else:
            changes += [
                Closing(claim.key.claim, stop.reason, at=now.time),
                *stop_attempt(claim, stop, now),
            ]
    return changes


def _heir(
    machine: Machine, currents: list[Claim], command: RequestClaims, key: ClaimKey, now: Now
) -> Claim | str:
    """
    The claim that will have what these claims have when they are gone, or why there is none.
    """
    if shut := machine.turns_away(currents[0].parent, command.lease):
        return shut
    if any(claim.ending or machine.waits_for(claim) for claim in currents):
        return "the claim on the slot is ending, or another waits for it already"
    first = currents[0]
    nothing = Resources(0, 0, 0, dict.fromkeys(first.resources.custom, 0))
    heir = Claim(
        key=key,
        schedd=command.schedd,
        submitter=command.submitter,
        slot=first.slot,
        resources=nothing,
        lease=command.lease,
        deadline=now.clock + command.lease,
        made=now.time,
        changed=now.time,
        parent=first.parent,
        whole=first.whole,
        after=[claim.key.claim for claim in currents],
    )
    given = reduce(inherited, currents, heir)
    ad = claim_ad(machine, given, now=now.time)
    if why := misfit(given, machine.facts.carving, command.job, lambda: ad, now.context):
        return why
    slot, job = ClassAd.from_wire(ad), ClassAd.from_wire(command.job)
    if not suits(slot, job, given, now.context):
        return "START of the machine or Requirements of the job is not true for the slot"
    return msgspec.structs.replace(heir, rank=rank(slot, job, now.context))


def withdraw(machine: Machine, heir: Claim, now: Now) -> list[Change]:
    """
    A waiting claim goes away: the job that it waits for goes on, unless it was told to end.
    """
    currents = [claim for name in heir.after if (claim := machine.claims.get(name)) is not None]
    return [
        Gone(heir.key.claim),
        *(
            Reopened(claim.key.claim, now.time)
            for claim in currents
            if not claim.preempting and claim.then is not None and claim.then.code == PREEMPTING_RANK
        ),
    ]
