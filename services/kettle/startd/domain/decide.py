"""
The startd's answers: each a function of the machine, a command and the time, that says what to reply and what changes.

Law of the startd: it looks at the machine, at the jobs that run and at the job that asks; at nothing else.
"""

import hmac

import msgspec

from kettle.classad import ClassAd, evaluate_attribute, is_true, matches
from kettle.startd.domain.ads import dynamic_ad, partitionable_ad
from kettle.startd.domain.claim import (
    Attempt,
    Begun,
    Change,
    Claim,
    Claimed,
    Closing,
    Gone,
    Over,
    Renewed,
    Stop,
    Stopped,
)
from kettle.startd.domain.machine import Machine
from kettle.startd.domain.resources import carve, requested
from kettle.wire.commands.startd import (
    Activation,
    ActivationResult,
    Alive,
    AliveReply,
    ClaimKey,
    ClaimsDecided,
    Deactivation,
    GrantedClaim,
    RequestClaims,
)
from kettle.wire.work import Exited, Failed, Report

BAD_REQUEST, NO_MATCH, STILL_CLEANING, NOT_IDLE, NOT_FOUND = 1026, 1027, 1028, 1032, 1034
RECONNECT_FAILED, SHUTDOWN, RELEASED = 1008, 1013, 1017
STRIDE = 1 << 32
"""How far beyond the last known report the startd numbers one that it writes for a starter that is gone."""


class Now(msgspec.Struct, frozen=True):
    """
    The moment of a decision, on both clocks.
    """

    clock: float
    """Seconds since boot: leases."""
    time: float
    """Seconds since the epoch: what people read."""


# -- claims ----------------------------------------------------------------------------------------------------------


def request_claims(machine: Machine, command: RequestClaims, now: Now) -> tuple[ClaimsDecided, list[Change]]:
    """
    Carve a dynamic slot for each claim that the machine accepts.  A claim that exists is granted again as it is.
    """
    granted: list[GrantedClaim] = []
    changes: list[Change] = []
    reason = ""
    left = machine.copy()
    for key in command.claims:
        claim = _grant(left, command, key, now)
        if isinstance(claim, str):
            reason = claim
            continue
        if key.claim not in left.claims:
            changes.append(Claimed(claim))
            left.apply(changes[-1])  # the next one is carved out of what is left
        slot = machine.facts.dynamic_slot(claim.slot)
        ad = dynamic_ad(machine.facts, claim, now=now.time)
        granted.append(GrantedClaim(claim=key.claim, slot=slot, ad=ad))
    return ClaimsDecided(granted=granted, clock=now.clock, reason=reason), changes


def _grant(machine: Machine, command: RequestClaims, key: ClaimKey, now: Now) -> Claim | str:
    """
    The claim as it is or as it would be, or why there is none.
    """
    known = machine.claims.get(key.claim)
    if known is None:
        return _carve(machine, command, key, now)
    return known if _proves(known, key) and not known.ending else "the claim is not yours, or is ending"


def _carve(machine: Machine, command: RequestClaims, key: ClaimKey, now: Now) -> Claim | str:
    """
    The new claim, or why there is none.
    """
    facts = machine.facts
    if command.slot != facts.slot or not hmac.compare_digest(
        command.capability.encode(), machine.capability.encode()
    ):
        return "the match is out of date"
    if machine.draining:
        return "the machine is draining"
    job = ClassAd.from_wire(command.job)
    whole = ClassAd.from_wire(partitionable_ad(machine, now=now.time))
    request = requested(job, whole)
    if request is None:
        return "the job requests what is no amount"
    size = carve(request, machine.free)
    if size is None:
        return "the machine has not enough left"
    claim = Claim(
        key=key,
        schedd=command.schedd,
        submitter=command.submitter,
        slot=machine.free_number(),
        resources=size,
        lease=command.lease,
        deadline=now.clock + command.lease,
        made=now.time,
        changed=now.time,
    )
    if not matches(ClassAd.from_wire(dynamic_ad(facts, claim, now=now.time)), job):
        return "START of the machine or Requirements of the job is not true for the slot that would be carved"
    return claim


def alive(machine: Machine, command: Alive, now: Now) -> tuple[AliveReply, list[Change]]:
    """
    Renew leases.  A claim that is ending exists until nothing of it is left, but its lease is not renewed.
    """
    ours = [claim for key in command.claims if (claim := _find(machine, key)) is not None]
    named = {key.claim for key in command.claims}
    found = {claim.key.claim for claim in ours}
    changes: list[Change] = []
    if command.deadline is not None:
        # Nobody can ask for more than the lease from now on, however wrong his idea of this clock is.
        for lease in {claim.lease for claim in ours}:
            deadline = min(command.deadline, now.clock + lease)
            renewed = [
                claim.key.claim
                for claim in ours
                if claim.lease == lease and not claim.ending and deadline > claim.deadline
            ]
            if renewed:
                changes.append(Renewed(renewed, deadline))
    reply = AliveReply(
        clock=now.clock,
        unknown=[key.claim for key in command.claims if key.claim not in found],
        extra=[
            claim.key.claim
            for claim in machine.of_schedd(command.schedd)
            if claim.key.claim not in named and not claim.ending
        ],
    )
    return reply, changes


def end_claim(claim: Claim, stop: Stop) -> list[Change]:
    """
    End a claim: at once if it is idle, else when its attempt is over.
    """
    if claim.attempt is None:
        return [Gone(claim.key.claim)]
    changes: list[Change] = [] if claim.ending else [Closing(claim.key.claim, stop.reason)]
    return [*changes, *_stop(claim, stop)]


def release(machine: Machine, keys: list[ClaimKey], reason: str) -> list[Change]:
    """
    The schedd gives claims back.
    """
    found = [claim for key in keys if (claim := _find(machine, key)) is not None]
    stop = Stop(RELEASED, reason or "the schedd released the claim")
    return [change for claim in found for change in end_claim(claim, stop)]


def expire(machine: Machine, now: Now) -> list[Change]:
    """
    End what was not renewed in time.  Hard: the submit side counts on it that the job is gone shortly after.
    """
    late = [claim for claim in machine.claims.values() if not claim.ending and claim.deadline <= now.clock]
    stop = Stop(RECONNECT_FAILED, "the claim's lease ended: the schedd did not renew it in time", hard=True)
    return [change for claim in late for change in end_claim(claim, stop)]


def drain(machine: Machine) -> list[Change]:
    """
    End everything: the startd is being stopped.
    """
    stop = Stop(SHUTDOWN, "the startd is shutting down")
    return [change for claim in machine.claims.values() for change in end_claim(claim, stop)]


# -- attempts --------------------------------------------------------------------------------------------------------


def activate(machine: Machine, activation: Activation, now: Now) -> tuple[ActivationResult, list[Change]]:
    """
    Accept an attempt.  One that runs or ran here is accepted again, and changes nothing.
    """
    refusal = _refusal(machine, activation)
    code, reason = refusal if refusal is not None else (0, "")
    result = ActivationResult(
        claim=activation.key.claim, attempt=activation.attempt, code=code, reason=reason
    )
    claim = _find(machine, activation.key)
    if refusal is not None or claim is None:
        return result, []
    if machine.knows(claim.key.claim, activation.job, activation.attempt):
        return result, []
    name = activation.ad.get("GlobalJobId")
    attempt = Attempt(
        job=activation.job,
        attempt=activation.attempt,
        sequence=claim.sequence,
        global_job_id=name if isinstance(name, str) else f"{claim.schedd}#{activation.job}",
        trace=activation.trace,
        began=now.time,
    )
    return result, [Begun(claim.key.claim, attempt)]


def _refusal(machine: Machine, activation: Activation) -> tuple[int, str] | None:
    claim = _find(machine, activation.key)
    if claim is None:
        return NOT_FOUND, f"there is no claim {activation.key.claim} here that you may use"
    if machine.knows(claim.key.claim, activation.job, activation.attempt):
        return None
    if claim.ending:
        return NOT_FOUND, f"the claim is ending: {claim.ending}"
    if claim.attempt is not None:
        code = STILL_CLEANING if claim.attempt.stop else NOT_IDLE
        return code, f"job {claim.attempt.job} is not gone from the claim yet"
    for file in activation.inputs:
        parts = file.name.split("/")
        if not file.name or "\0" in file.name or any(part in {"", ".", ".."} for part in parts):
            return BAD_REQUEST, f"{file.name!r} is no name of a file inside a sandbox"
    if machine.facts.start.strip().lower() != "true" and not _starts(machine, claim, activation):
        return NO_MATCH, "START of the machine is not true for this job"
    return None


def _starts(machine: Machine, claim: Claim, activation: Activation) -> bool:
    slot = ClassAd.from_wire(dynamic_ad(machine.facts, claim, now=0.0))
    return is_true(evaluate_attribute("Start", slot, ClassAd.from_wire(activation.ad)))


def deactivate(machine: Machine, command: Deactivation) -> list[Change]:
    """
    End an attempt; the claim stays.
    """
    claim = _find(machine, command.key)
    if claim is None or claim.attempt is None or claim.attempt.attempt != command.attempt:
        return []
    return _stop(claim, Stop(command.code, command.reason, command.hard))


def _stop(claim: Claim, stop: Stop) -> list[Change]:
    """
    The first reason counts; a hard order hurries one that was given time.
    """
    attempt = claim.attempt
    if attempt is None or (attempt.stop is not None and (attempt.stop.hard or not stop.hard)):
        return []
    if attempt.stop is not None:
        stop = msgspec.structs.replace(attempt.stop, hard=True)
    return [Stopped(claim.key.claim, stop)]


def over(machine: Machine, report: Report, now: Now) -> list[Change]:
    """
    A final report is on disk: the claim is free for the next attempt, or over itself.
    """
    claim = machine.claims.get(report.claim)
    if claim is None or claim.attempt is None or not isinstance(report.body, Exited | Failed):
        return []
    if (claim.attempt.job, claim.attempt.attempt) != (report.job, report.attempt):
        return []
    ended = Over(report.claim, report.job, report.attempt, report.sequence, now.time)
    return [ended, Gone(report.claim)] if claim.ending else [ended]


def obituary(claim: Claim, attempt: Attempt, failed: Failed) -> Report:
    """
    The final report that the startd writes for an attempt whose starter cannot.
    """
    return Report(
        claim=claim.key.claim,
        attempt=attempt.attempt,
        sequence=attempt.sequence + STRIDE,
        job=attempt.job,
        body=failed,
        trace=attempt.trace,
    )


def _find(machine: Machine, key: ClaimKey) -> Claim | None:
    claim = machine.claims.get(key.claim)
    return claim if claim is not None and _proves(claim, key) else None


def _proves(claim: Claim, key: ClaimKey) -> bool:
    return hmac.compare_digest(claim.key.secret.encode(), key.secret.encode())
