"""Answers about the jobs of claims: what is begun, stopped and held."""

import base64
import hashlib
from typing import Final

from kettle_services.ce.domain.attempts.attempt import BatchClaim, Stage
from kettle_services.ce.domain.attempts.claims import Changes, Claims, proven, stop
from kettle_services.ce.domain.batch.requests import RequestError, request_of
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchRequest
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.commands.startd import NOT_KNOWN, Activation, ActivationResult, Deactivation, Suspension
from kettle_wire.events.batch import BatchActivated, BatchEnded, BatchHoldOrdered

_NAME_BYTES: Final = 9


def intent_of(pool: str, claim: str, activation: Activation) -> str:
    """The name of an attempt in the batch system: the same one whenever it is made, and nobody else's."""
    of = f"{pool} {claim} {activation.job} {activation.attempt}"
    digest = hashlib.sha256(of.encode()).digest()[:_NAME_BYTES]
    return "k" + base64.b32encode(digest).decode().lower()[:14]


def activate(
    claims: Claims, activation: Activation, now: float, *, pool: str, owner: str
) -> tuple[ActivationResult, Changes]:
    """
    Accept a job.  One that is or was here is accepted again, and changes nothing; a probe changes nothing ever.

    One that asks for what cannot be written for a batch system is over at once, and is held.
    """
    claim = proven(claims, activation.key)
    refusal = _not_known(claim, activation) if activation.probe else _refusal(claim, activation)
    code, reason = refusal or (0, "")
    result = ActivationResult(
        claim=activation.key.claim, job=activation.job, attempt=activation.attempt, code=code, reason=reason
    )
    if refusal is not None or claim is None or claim.run is not None:
        return result, []
    ad = {name.lower(): value for name, value in activation.ad.items()}
    try:
        request, trouble = request_of(ad), ""
    except RequestError as error:
        request, trouble = BatchRequest(), str(error)
    begun = BatchActivated(
        job=activation.job,
        attempt=activation.attempt,
        owner=owner,
        intent=intent_of(pool, claim.claim, activation),
        request=request,
        at=now,
        trace=activation.trace,
    )
    changes: Changes = [(claim.claim, begun)]
    if trouble:
        ending = Ending(code=HoldCode.GlobusGramError, reason=trouble)
        changes.append((claim.claim, BatchEnded(at=now, ending=ending)))
    return result, changes


def _knows(claim: BatchClaim, activation: Activation) -> bool:
    run = claim.run
    return run is not None and (run.job, run.attempt) == (activation.job, activation.attempt)


def _not_known(claim: BatchClaim | None, activation: Activation) -> tuple[int, str] | None:
    if claim is None:
        return NOT_KNOWN, f"there is no claim {activation.key.claim} here that you may use"
    if not _knows(claim, activation):
        return NOT_KNOWN, f"attempt {activation.attempt} of job {activation.job} never began on this claim"
    return None


def _refusal(claim: BatchClaim | None, activation: Activation) -> tuple[int, str] | None:
    if claim is None:
        return (
            VacateCode.ActivationRefusedClaimNotFound,
            f"there is no claim {activation.key.claim} here that you may use",
        )
    if _knows(claim, activation):
        return None
    if claim.run is not None:
        return VacateCode.ActivationRefusedNotIdle, f"the claim is for job {claim.run.job}"
    for file in activation.inputs:
        parts = file.name.split("/")
        if not file.name or "\0" in file.name or any(part in {"", ".", ".."} for part in parts):
            return (
                VacateCode.ActivationRefusedBadRequest,
                f"{file.name!r} is no name of a file inside a sandbox",
            )
    return None


def deactivate(claims: Claims, command: Deactivation, now: float) -> Changes:
    """End a job."""
    claim = proven(claims, command.key)
    run = claim.run if claim is not None else None
    if claim is None or run is None or (run.job, run.attempt) != (command.job, command.attempt):
        return []
    return stop(claim, command.ending, now)


def suspend(claims: Claims, order: Suspension) -> Changes:
    """Its owner wants it stopped, or to go on; the latest order counts, in whatever order they come."""
    claim = proven(claims, order.key)
    run = claim.run if claim is not None else None
    if claim is None or run is None or (run.job, run.attempt) != (order.job, order.attempt):
        return []
    if run.stop is not None or run.stage is Stage.ENDED or order.number <= run.orders:
        return []
    return [(claim.claim, BatchHoldOrdered(held=order.suspended, number=order.number))]


def owner_of(ad: Ad) -> str:
    """Whose job it is."""
    for name, value in ad.items():
        if name.lower() == "owner" and isinstance(value, str):
            return value
    return ""
