"""
The startd's answers about claims: each a function of the machine, a command and the time, that says what to reply and
what changes.

Law of the startd: it looks at the machine, at the jobs that run and at the job that asks; at nothing else.
"""

from typing import Final

import msgspec

from kettle.classad import ClassAd, EvaluationFailed, evaluate_attribute, is_true, rank
from kettle_services.startd.domain.ads import claim_ad, slot_ad
from kettle_services.startd.domain.claims import preemption
from kettle_services.startd.domain.claims.activation import stop_attempt
from kettle_services.startd.domain.claims.suitability import suitable, suits
from kettle_services.startd.domain.slots.resources import Resources, requested, sizes
from kettle_services.startd.domain.slots.slot import LOCAL, Slot
from kettle_services.startd.domain.state.changes import Change, ClaimClosing, Claimed, ClaimRemoved, Renewed
from kettle_services.startd.domain.state.claim import Claim, Now, StopOrder
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.policy_expressions import DEFAULTS
from kettle_wire.attempts import Ending
from kettle_wire.codes import VacateCode
from kettle_wire.commands.startd import (
    Alive,
    AliveReply,
    ClaimKey,
    ClaimsDecided,
    GrantedClaim,
    RequestClaims,
)

UNCONFIRMED_S: Final = 20.0
"""
How long a new claim waits for its first renewal or job: a schedd that dies between its request and the record of what it was
granted leaves claims behind that nobody knows of.  The schedd renews as soon as it has recorded them.
"""


def request_claims(machine: Machine, command: RequestClaims, now: Now) -> tuple[ClaimsDecided, list[Change]]:
    """
    Give each claim that the machine accepts its slot.  A claim that exists is granted again as it is.

    A claim for the slot of another waits until that has ended; a repeated request renews it.
    """
    granted: list[GrantedClaim] = []
    waiting: list[str] = []
    changes: list[Change] = []
    reason = ""
    left = machine.copy()
    for key in command.claims:
        more = _make_room(left, command, key, now)
        if isinstance(more, str):
            reason = more
            continue
        changes += more
        for change in more:
            left.apply(change)
        if left.waits(key) is not None:
            waiting.append(key.claim)
            continue
        claim = _grant(left, command, key, now)
        if isinstance(claim, str):
            reason = claim
            continue
        if key.claim not in left.claims:
            changes.append(Claimed(claim))
            left.apply(changes[-1])  # the next one is carved out of what is left
        ad = claim_ad(left, claim, now=now.time)
        granted.append(GrantedClaim(claim=key.claim, slot=machine.facts.name_of(claim), ad=ad))
    return ClaimsDecided(granted=granted, clock=now.clock, reason=reason, waiting=waiting), changes


def _make_room(machine: Machine, command: RequestClaims, key: ClaimKey, now: Now) -> list[Change] | str:
    """
    What follows for a claim that waits, or is to wait, for what others have, or why it cannot; nothing for all others.
    """
    if (known := machine.waits(key)) is not None:
        return [Renewed([key.claim], now.clock + known.lease)]
    if key.claim in machine.claims:
        return []
    if command.instead_of:
        return preemption.swap(machine, command, key, now)
    slot, current = machine.facts.slot(command.slot), preemption.occupant(machine, command.slot)
    if current is None or (slot is not None and machine.proves_match(slot, command.capability)):
        return []
    return preemption.outrank(machine, [current, *preemption.others(machine, command)], command, key, now)


def _grant(machine: Machine, command: RequestClaims, key: ClaimKey, now: Now) -> Claim | str:
    """The claim as it is or as it would be, or why there is none."""
    known = machine.claims.get(key.claim)
    if known is None:
        return _admit(machine, command, key, now)
    return known if known.proves(key) and not known.ending else "the claim is not yours, or is ending"


def _admit(machine: Machine, command: RequestClaims, key: ClaimKey, now: Now) -> Claim | str:
    """The new claim, or why there is none."""
    slot = machine.facts.slot(command.slot)
    if slot is None or not machine.proves_match(slot, command.capability):
        return "the match is out of date"
    if shut := machine.turns_away(slot.number, command.lease):
        return shut
    if not machine.open_to_claims(slot):
        return "the slot is claimed"
    job = ClassAd.from_wire(command.job)
    shares = _shares(machine, slot, job, now)
    if isinstance(shares, str):
        return shares
    lease = machine.lease(command.lease)
    for size, devices in shares:
        claim = Claim(
            key=key,
            schedd=command.schedd,
            submitter=command.submitter,
            slot=machine.free_number(),
            resources=size,
            lease=lease,
            deadline=now.clock + min(lease, UNCONFIRMED_S),
            until=now.clock + lease,
            made=now.time,
            changed=now.time,
            parent=slot.number,
            whole=not slot.partitionable,
            devices=devices,
        )
        its = ClassAd.from_wire(claim_ad(machine, claim, now=now.time))
        if suits(its, job, claim, now.context):
            return msgspec.structs.replace(claim, rank=rank(its, job, now.context))
    return "START of the machine or Requirements of the job is not true for the slot that it would have"


Share = tuple[Resources, dict[str, list[str]]]


def _shares(machine: Machine, slot: Slot, job: ClassAd, now: Now) -> list[Share] | str:
    """How much of a slot the job could get and which devices, the best first, or why nothing."""
    ad = ClassAd.from_wire(slot_ad(machine, slot, now=now.time))
    request = requested(job, ad, slot.total.custom, now.context)
    if request is None:
        return "the job requests of a resource what is no amount"
    if slot.partitionable and slot.number != LOCAL and not _opens(machine, ad, job, now):
        return "START of the machine is not true for what is left of the slot"
    fitting = suitable(machine, slot, job, ad, now.context)
    free = machine.free(slot)
    room = msgspec.structs.replace(
        free, custom={**free.custom, **{tag: len(ids) for tag, ids in fitting.items()}}
    )
    if not slot.partitionable:
        return (
            [(machine.offered(slot), _every(slot))]
            if request.fits(room)
            else "the slot is too small for the job"
        )
    fits = [size for size in sizes(request, job, ad, machine.facts.carving, now.context) if size.fits(room)]
    if not fits:
        if slot.number == LOCAL and request.fits(slot.total):
            return "the other local jobs leave not enough of the cores or the memory that they share (local_overcommit)"
        return "the machine has not enough left"
    return [
        (size, {tag: ids[: size.custom[tag]] for tag, ids in fitting.items() if size.custom[tag]})
        for size in fits
    ]


def _opens(machine: Machine, left: ClassAd, job: ClassAd, now: Now) -> bool:
    """
    Whether START is true of what is left of a partitionable slot, as the negotiator has asked it too: of that an owner can
    keep a reserve.
    """
    if machine.start.strip().lower() == DEFAULTS["START"]:
        return True
    try:
        return is_true(evaluate_attribute("Start", left, job, now.context))
    except EvaluationFailed:
        return False


def _every(slot: Slot) -> dict[str, list[str]]:
    return {tag: list(ids) for tag, ids in slot.devices.items() if ids}


def alive(machine: Machine, command: Alive, now: Now) -> tuple[AliveReply, list[Change]]:
    """
    Renew leases.  A claim that is being ended exists until nothing of it is left, but its lease is not renewed.
    """
    ours = [claim for key in command.claims if (claim := machine.proven(key)) is not None]
    named = {key.claim for key in command.claims}
    found = {claim.key.claim for claim in ours}
    changes: list[Change] = []
    if command.deadline is not None:
        # Nobody can ask for more than the lease from now on, however wrong his idea of this clock is.
        for lease in {claim.lease for claim in ours}:
            wanted = command.deadline if command.at is None else command.at + lease
            deadline = min(wanted, now.clock + lease)
            renewed = [
                claim.key.claim
                for claim in ours
                if claim.lease == lease and not claim.preempting and deadline > claim.deadline
            ]
            if renewed:
                changes.append(Renewed(renewed, deadline))
    reply = AliveReply(
        clock=now.clock,
        unknown=[key.claim for key in command.claims if key.claim not in found],
        extra=[
            claim.key.claim
            for claim in machine.of_schedd(command.schedd)
            if claim.key.claim not in named and not claim.preempting
        ],
    )
    return reply, changes


def end_claim(claim: Claim, stop: StopOrder, now: Now) -> list[Change]:
    """End a claim: at once if it is idle, else when its attempt is over."""
    if claim.attempt is None:
        return [ClaimRemoved(claim.key.claim)]
    changes: list[Change] = (
        [] if claim.ending else [ClaimClosing(claim.key.claim, stop.ending.reason, at=now.time)]
    )
    return [*changes, *stop_attempt(claim, stop, now)]


def release(machine: Machine, keys: list[ClaimKey], reason: str, now: Now) -> list[Change]:
    """The schedd gives claims back."""
    found = [claim for key in keys if (claim := machine.proven(key)) is not None]
    waiting = [claim for key in keys if (claim := machine.waits(key)) is not None]
    stop = StopOrder(
        Ending(code=VacateCode.StartdReleaseCommand, reason=reason or "the schedd released the claim")
    )
    withdrawn = [
        change for claim in waiting for change in preemption.withdraw(machine, claim, now, ended=found)
    ]
    return [*withdrawn, *(change for claim in found for change in end_claim(claim, stop, now))]


def expire(machine: Machine, now: Now) -> list[Change]:
    """
    End claims that were not renewed in time.  The end is hard, because the submit side relies on the job ending shortly
    after.
    """
    late = [
        claim for claim in machine.claims.values() if not claim.preempting and claim.deadline <= now.clock
    ]
    stop = StopOrder(
        Ending(
            code=VacateCode.ReconnectFailed,
            reason="the claim's lease ended: the schedd did not renew it in time",
        ),
        hard=True,
    )
    waiting = [claim for claim in machine.waiting.values() if claim.deadline <= now.clock]
    withdrawn = [
        change for claim in waiting for change in preemption.withdraw(machine, claim, now, ended=late)
    ]
    return [*withdrawn, *(change for claim in late for change in end_claim(claim, stop, now))]


def shut_down(machine: Machine, now: Now, *, hard: bool) -> list[Change]:
    """End everything: the startd is being stopped.  `hard`: jobs are not asked to end, they are ended."""
    stop = StopOrder(Ending(code=VacateCode.StartdShutdown, reason="the startd is shutting down"), hard=hard)
    waiting: list[Change] = [ClaimRemoved(claim.key.claim) for claim in machine.waiting.values()]
    return [
        *waiting,
        *(change for claim in machine.claims.values() for change in end_claim(claim, stop, now)),
    ]
