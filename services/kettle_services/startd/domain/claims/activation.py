"""The startd's answers about attempts: what may start on a claim, what is to be ended, and what is over."""

import msgspec

from kettle.classad import ClassAd, EvaluationFailed, evaluate_attribute, is_true, rank
from kettle_services.startd.domain.ads import claim_ad, question
from kettle_services.startd.domain.claims.suitability import misfit
from kettle_services.startd.domain.state.changes import (
    AttemptAccepted,
    AttemptFinished,
    AttemptStopped,
    Change,
    ClaimRemoved,
    OwnerOrderChanged,
)
from kettle_services.startd.domain.state.claim import Claim, Now, RunningAttempt, StopOrder
from kettle_services.startd.domain.state.machine import Machine
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.codes import VacateCode
from kettle_wire.commands.startd import NOT_KNOWN, Activation, ActivationResult, Deactivation, Suspension
from kettle_wire.worker_reports import FinalReport, Report

STRIDE = 1 << 32
"""How far beyond the last known report the startd numbers one that it writes for a dead starter."""


def activate(machine: Machine, activation: Activation, now: Now) -> tuple[ActivationResult, list[Change]]:
    """
    Accept an attempt.  One that runs or ran here is accepted again, and changes nothing; a probe changes nothing ever.
    """
    refusal = _not_known(machine, activation) if activation.probe else _refusal(machine, activation, now)
    code, reason = refusal if refusal is not None else (0, "")
    result = ActivationResult(
        claim=activation.key.claim, job=activation.job, attempt=activation.attempt, code=code, reason=reason
    )
    claim = machine.proven(activation.key)
    if refusal is not None or claim is None:
        return result, []
    if machine.knows(claim.key.claim, activation.job, activation.attempt):
        return result, []
    name = activation.ad.get("GlobalJobId")
    attempt = RunningAttempt(
        job=activation.job,
        attempt=activation.attempt,
        sequence=claim.sequence,
        global_job_id=name if isinstance(name, str) else f"{claim.schedd}#{activation.job}",
        trace=activation.trace,
        began=now.time,
        clock=now.clock,
        ad=machine.policy_of(claim).keeps(activation.ad),
    )
    return result, [AttemptAccepted(claim.key.claim, attempt, _rank(machine, claim, activation.ad, now))]


def _rank(machine: Machine, claim: Claim, job: Ad, now: Now) -> float | None:
    """
    How much the machine likes a job on a claim: the next one is not liked as the first; None: it likes all alike.
    """
    if claim.local or not machine.facts.policy.ranks:
        return None
    return rank(
        ClassAd.from_wire(claim_ad(machine, claim, now=now.time)), ClassAd.from_wire(job), now.context
    )


def _not_known(machine: Machine, activation: Activation) -> tuple[int, str] | None:
    claim = machine.proven(activation.key)
    if claim is None:
        return NOT_KNOWN, f"there is no claim {activation.key.claim} here that you may use"
    if not machine.knows(claim.key.claim, activation.job, activation.attempt):
        return NOT_KNOWN, f"attempt {activation.attempt} of job {activation.job} never began on this claim"
    return None


def _refusal(machine: Machine, activation: Activation, now: Now) -> tuple[int, str] | None:
    claim = machine.proven(activation.key)
    if claim is None:
        return (
            VacateCode.ActivationRefusedClaimNotFound,
            f"there is no claim {activation.key.claim} here that you may use",
        )
    if machine.knows(claim.key.claim, activation.job, activation.attempt):
        return None
    if claim.ending:
        return VacateCode.ActivationRefusedClaimNotFound, f"the claim is ending: {claim.ending}"
    if shut := machine.shut_for(local=claim.local):
        return VacateCode.ActivationRefusedUnhealthy, shut
    if claim.attempt is not None:
        code = (
            VacateCode.ActivationRefusedStillCleaning
            if claim.attempt.stop
            else VacateCode.ActivationRefusedNotIdle
        )
        return code, f"job {claim.attempt.job} is not gone from the claim yet"
    for file in activation.inputs:
        parts = file.name.split("/")
        if not file.name or "\0" in file.name or any(part in {"", ".", ".."} for part in parts):
            return (
                VacateCode.ActivationRefusedBadRequest,
                f"{file.name!r} is no name of a file inside a sandbox",
            )
    if machine.used(claim.key.claim) and _served(machine, claim, now):
        return VacateCode.ActivationRefusedWorklifeExpired, "the claim has served its time (CLAIM_WORKLIFE)"
    if (claim.local or machine.start.strip().lower() != "true") and not _starts(
        machine, claim, activation, now
    ):
        return VacateCode.ActivationRefusedNoMatch, "START of the machine is not true for this job"
    return _misfit(machine, claim, activation, now)


def _misfit(machine: Machine, claim: Claim, activation: Activation, now: Now) -> tuple[int, str] | None:
    def slot() -> Ad:
        return claim_ad(machine, claim, now=now.time)

    why = misfit(claim, machine.facts.carving, activation.ad, slot, now.context)
    return (VacateCode.ActivationRefusedNoMatch, why) if why else None


def _starts(machine: Machine, claim: Claim, activation: Activation, now: Now) -> bool:
    slot = ClassAd.from_wire(claim_ad(machine, claim, now=now.time))
    try:
        return is_true(evaluate_attribute("Start", slot, ClassAd.from_wire(activation.ad), now.context))
    except EvaluationFailed:
        return False


def _served(machine: Machine, claim: Claim, now: Now) -> bool:
    worklife = question(machine, claim, now).seconds("CLAIM_WORKLIFE")
    return 0 <= worklife <= now.time - claim.made


def deactivate(machine: Machine, command: Deactivation, now: Now) -> list[Change]:
    """End an attempt; the claim stays."""
    claim = machine.proven(command.key)
    running = claim.attempt if claim is not None else None
    if claim is None or running is None or (running.job, running.attempt) != (command.job, command.attempt):
        return []
    stop = StopOrder(command.ending, hard=command.hard)
    return stop_attempt(claim, stop, now)


def suspend(machine: Machine, order: Suspension, now: Now) -> list[Change]:
    """
    What the owner of a job wants of its processes; the latest order counts, in whatever order they come.
    """
    claim = machine.proven(order.key)
    running = claim.attempt if claim is not None else None
    if claim is None or running is None or (running.job, running.attempt) != (order.job, order.attempt):
        return []
    if running.stop is not None or order.number <= running.ordered:
        return []
    return [OwnerOrderChanged(claim.key.claim, order.suspended, order.number, now.time)]


def stop_attempt(claim: Claim, stop: StopOrder, now: Now) -> list[Change]:
    """The first reason counts; a hard order hurries one that was given time."""
    attempt = claim.attempt
    if attempt is None or (attempt.stop is not None and (attempt.stop.hard or not stop.hard)):
        return []
    if attempt.stop is not None:
        stop = msgspec.structs.replace(attempt.stop, hard=True)
    else:
        stop = msgspec.structs.replace(stop, at=now.clock)
    return [AttemptStopped(claim.key.claim, stop, now.time)]


def over(machine: Machine, report: Report, now: Now) -> list[Change]:
    """A final report is on disk: the claim is free for the next attempt, or over itself."""
    claim = machine.claims.get(report.claim)
    if claim is None or claim.attempt is None or not isinstance(report.body, FinalReport):
        return []
    if (claim.attempt.job, claim.attempt.attempt) != (report.job, report.attempt):
        return []
    ended = AttemptFinished(report.claim, report.job, report.attempt, report.sequence, now.time)
    return [ended, ClaimRemoved(report.claim)] if claim.ending or _served(machine, claim, now) else [ended]


def lost_report(claim: Claim, attempt: RunningAttempt, ending: Ending) -> Report:
    """The final report that the startd writes for an attempt whose starter cannot."""
    return Report(
        claim=claim.key.claim,
        attempt=attempt.attempt,
        sequence=attempt.sequence + STRIDE,
        job=attempt.job,
        body=FinalReport(result=AttemptResult(ending=ending)),
        trace=attempt.trace,
    )
