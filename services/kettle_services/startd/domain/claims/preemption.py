"""
Claims that wait for slots of other claims: a job that RANK prefers, or one that its owner wants to run at once.

    Claimed/Busy --better job--> Claimed/Retiring --time over--> Preempting --gone--> Claimed/Idle of the waiting claim
                                      |
                                      +--the waiting claim goes away--> Claimed/Busy

    Claimed/Busy --swapped--> Preempting --all gone--> Claimed/Idle of the waiting claim, with all that they had

A match names the claim to be preempted: a match for the slot before that claim existed, or for the free slot, preempts
nothing. A swap is proved by the secrets of the preempted claims.
"""

import hmac
from collections.abc import Sequence
from functools import reduce
from hashlib import sha256

import msgspec

from kettle.classad import ClassAd, rank
from kettle_services.startd.domain.ads import claim_ad, question, slot_ad
from kettle_services.startd.domain.claims.activation import stop_attempt
from kettle_services.startd.domain.claims.suitability import misfit, suitable, suits
from kettle_services.startd.domain.slots.resources import Resources, requested, sizes
from kettle_services.startd.domain.state.changes import (
    Change,
    ClaimClosing,
    ClaimRemoved,
    ClaimWaiting,
    Reopened,
)
from kettle_services.startd.domain.state.claim import Claim, Now, StopOrder
from kettle_services.startd.domain.state.claim_fold import inherited
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.slot_transitions import retire
from kettle_wire.attempts import Ending
from kettle_wire.codes import VacateCode
from kettle_wire.commands.startd import ClaimKey, RequestClaims


def capability(machine: Machine, claim: Claim) -> str:
    """
    The secret of those who may have a claim make room for a better one; no other claim on the slot has the same.
    """
    return hmac.new(machine.capability.encode(), claim.key.claim.encode(), sha256).hexdigest()


def preemptible(machine: Machine) -> list[Claim]:
    """Claims that could make room: none, if RANK likes all jobs alike, and priorities do not count here."""
    if not (machine.facts.policy.ranks or machine.facts.user_preemption) or machine.shut:
        return []
    return [claim for claim in machine.shared if not claim.ending]


def occupant(machine: Machine, slot: str) -> Claim | None:
    """The claim that has the slot of this name."""
    return next((claim for claim in machine.shared if machine.facts.name_of(claim) == slot), None)


def others(machine: Machine, command: RequestClaims) -> list[Claim]:
    """
    The other claims that are to be preempted; the resources of those that have ended meanwhile are free.
    """
    found = [occupant(machine, each.slot) for each in command.also]
    return [claim for claim in found if claim is not None]


def outrank(
    machine: Machine, currents: list[Claim], command: RequestClaims, key: ClaimKey, now: Now
) -> list[Change] | str:
    """
    Have claims make room for one that the machine likes better, or say why not; their jobs have their retirement time.

    For one that it likes as much, where priorities count: the match says that the negotiator wants it so.
    """
    told = {each.slot: each.capability for each in command.also} | {command.slot: command.capability}
    for claim in currents:
        right = capability(machine, claim)
        if not hmac.compare_digest(told[machine.facts.name_of(claim)].encode(), right.encode()):
            return "the match is out of date"
    if why := _no_parts_of_one(currents):
        return why
    heir = _heir(machine, currents, command, key, now, with_free=True)
    if isinstance(heir, str):
        return heir
    changes: list[Change] = [ClaimWaiting(heir)]
    for claim in currents:
        by_user = machine.facts.user_preemption and heir.rank == claim.rank
        if heir.rank <= claim.rank and not by_user:
            return f"RANK of the machine is {heir.rank:g} for the job, and {claim.rank:g} for the one that has the slot"
        reason = f"RANK of the machine is {heir.rank:g} for another job, and {claim.rank:g} for this one"
        stop = StopOrder(Ending(code=VacateCode.StartdPreemptingClaimRank, reason=reason))
        if by_user:
            stop = StopOrder(
                Ending(
                    code=VacateCode.StartdPreemptingClaimUserPrio,
                    reason=f"{heir.submitter} has a better priority in the pool",
                )
            )
        changes += retire(claim, stop, question(machine, claim, now), now)
    return changes


def _no_parts_of_one(currents: list[Claim]) -> str:
    """Why what claims have cannot become one slot; empty: it can."""
    apart = len({claim.parent for claim in currents}) > 1 or len({id(claim) for claim in currents}) < len(
        currents
    )
    if apart or (len(currents) > 1 and currents[0].whole):
        return "the claims that are to make room are not parts of one partitionable slot"
    return ""


def swap(machine: Machine, command: RequestClaims, key: ClaimKey, now: Now) -> list[Change] | str:
    """Have claims of the same schedd make room together, at once, or say why not."""
    currents = [claim for each in command.instead_of if (claim := machine.proven(each)) is not None]
    if len(currents) < len(command.instead_of):
        return "a claim that is to make room is not there any more"
    if any(claim.local for claim in currents):
        return "what runs where it was submitted has no slot that another job could have"
    if why := _no_parts_of_one(currents):
        return why
    heir = _heir(machine, currents, command, key, now)
    if isinstance(heir, str):
        return heir
    changes: list[Change] = [ClaimWaiting(heir)]
    stop = StopOrder(
        Ending(code=VacateCode.StartdCoalesce, reason="its owner has another job run in its place")
    )
    for claim in currents:
        if claim.attempt is None:
            changes.append(ClaimRemoved(claim.key.claim))
        else:
            changes += [
                ClaimClosing(claim.key.claim, stop.ending.reason, at=now.time),
                *stop_attempt(claim, stop, now),
            ]
    return changes


def _heir(
    machine: Machine,
    currents: list[Claim],
    command: RequestClaims,
    key: ClaimKey,
    now: Now,
    *,
    with_free: bool = False,
) -> Claim | str:
    """
    The claim that will inherit the resources of these claims when they end, or why there is none.

    `with_free`: it gets at once what it still lacks, from the free part of their slot.
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
        lease=machine.lease(command.lease),
        deadline=now.clock + machine.lease(command.lease),
        made=now.time,
        changed=now.time,
        parent=first.parent,
        whole=first.whole,
        after=[claim.key.claim for claim in currents],
    )
    job = ClassAd.from_wire(command.job)
    given = reduce(inherited, currents, heir)
    ad = claim_ad(machine, given, now=now.time)
    too_small = misfit(given, machine.facts.carving, command.job, lambda: ad, now.context)
    if too_small and with_free and not first.whole:
        heir = _with_more(machine, heir, given, job, now)
        given = reduce(inherited, currents, heir)
        ad = claim_ad(machine, given, now=now.time)
    if why := misfit(given, machine.facts.carving, command.job, lambda: ad, now.context):
        return why
    slot = ClassAd.from_wire(ad)
    if not suits(slot, job, given, now.context):
        return "START of the machine or Requirements of the job is not true for the slot"
    return msgspec.structs.replace(heir, rank=rank(slot, job, now.context))


def _with_more(machine: Machine, heir: Claim, given: Claim, job: ClassAd, now: Now) -> Claim:
    """
    The waiting claim, with what is free of the slot and lacks in what it will be given; as it was, if that is not enough.
    """
    slot = next((slot for slot in machine.facts.slots if slot.number == heir.parent), None)
    if slot is None:
        return heir
    ad = ClassAd.from_wire(slot_ad(machine, slot, now=now.time))
    request = requested(job, ad, slot.total.custom, now.context)
    if request is None:
        return heir
    free, fitting = machine.free(slot), suitable(machine, slot, job, ad, now.context)
    room = msgspec.structs.replace(free, custom={tag: len(ids) for tag, ids in fitting.items()})
    for size in sizes(request, job, ad, machine.facts.carving, now.context):
        lacking = (size - given.resources).within(size)
        if lacking.fits(room):
            devices = {tag: ids[: lacking.custom.get(tag, 0)] for tag, ids in fitting.items()}
            return msgspec.structs.replace(
                heir, resources=lacking, devices={tag: ids for tag, ids in devices.items() if ids}
            )
    return heir


def withdraw(machine: Machine, heir: Claim, now: Now, *, ended: Sequence[Claim] = ()) -> list[Change]:
    """
    A waiting claim is given up: the job for which it waits continues, unless it was told to end, or has `ended` at the
    same time.
    """
    gone = {claim.key.claim for claim in ended}
    currents = [
        claim for name in heir.after if name not in gone and (claim := machine.claims.get(name)) is not None
    ]
    return [
        ClaimRemoved(heir.key.claim),
        *(
            Reopened(claim.key.claim, now.time)
            for claim in currents
            if not claim.preempting
            and claim.then is not None
            and claim.then.ending.code
            in {VacateCode.StartdPreemptingClaimRank, VacateCode.StartdPreemptingClaimUserPrio}
        ),
    ]
