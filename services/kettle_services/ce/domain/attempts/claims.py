"""Answers about claims at batch systems: each a function of what there is, a command and the time."""

import hashlib
import hmac
from collections.abc import Collection, Mapping
from typing import Final

from kettle.terminal.nearest_names import did_you_mean
from kettle_services.ce.domain.attempts.attempt import BatchClaim, Stage
from kettle_wire.ads import Ad
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
from kettle_wire.events.batch import (
    BatchClaimed,
    BatchEnded,
    BatchEvent,
    BatchReleased,
    BatchRenewed,
    BatchStopOrdered,
)
from kettle_wire.worker_reports import ReportKey

STREAM: Final = "batch/"
UNCONFIRMED_S: Final = 60.0
"""How long a new claim waits for its first renewal or its job."""

Claims = Mapping[str, BatchClaim]
"""All of them, by their public ids."""
Changes = list[tuple[str, BatchEvent]]
"""Events with the claims that they are of."""


def proof_of(secret: str) -> str:
    """What is kept of a claim's secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def proven(claims: Claims, key: ClaimKey) -> BatchClaim | None:
    """The claim that a key opens; None: there is none, or it is somebody else's."""
    claim = claims.get(key.claim)
    if claim is None or not hmac.compare_digest(claim.proof, proof_of(key.secret)):
        return None
    return claim


def request_claims(
    claims: Claims, command: RequestClaims, system: str, systems: Mapping[str, str], now: float
) -> tuple[ClaimsDecided, Changes]:
    """
    Grant as many as are asked for, while the batch system is well; one that exists is granted again as it is.

    `systems`: what is wrong with each, empty: nothing.
    """
    granted: list[GrantedClaim] = []
    changes: Changes = []
    reason = ""
    for key in command.claims:
        known = claims.get(key.claim)
        if known is not None:
            if proven(claims, key) is None or known.run is not None:
                reason = "the claim is not yours, or has its job already"
                continue
        elif why := _shut(system, systems):
            reason = why
            continue
        else:
            changes.append(
                (
                    key.claim,
                    BatchClaimed(
                        claim=key.claim,
                        proof=proof_of(key.secret),
                        system=system,
                        schedd=command.schedd,
                        submitter=command.submitter,
                        lease=command.lease,
                        until=now + min(command.lease, UNCONFIRMED_S),
                    ),
                )
            )
        granted.append(GrantedClaim(claim=key.claim, slot=command.slot, ad=_slot_ad(command, system)))
    return ClaimsDecided(granted=granted, clock=now, reason=reason), changes


def _shut(system: str, systems: Mapping[str, str]) -> str:
    if system not in systems:
        return f"there is no batch system {system} here{did_you_mean(system, systems)}"
    return systems[system]


def _slot_ad(command: RequestClaims, system: str) -> Ad:
    return {"MyType": "Machine", "Name": command.slot, "Machine": system, "SlotType": "Batch"}


def alive(claims: Claims, command: Alive, now: float) -> tuple[AliveReply, Changes]:
    """Renew leases, and compare lists; one that is over with its job is not renewed."""
    found = {key.claim: claim for key in command.claims if (claim := proven(claims, key)) is not None}
    changes: Changes = []
    if command.deadline is not None:
        for name, claim in found.items():
            wanted = command.deadline if command.at is None else command.at + claim.lease
            until = min(wanted, now + claim.lease)
            if until - claim.until >= min(claim.lease / 4, claim.lease - UNCONFIRMED_S):
                changes.append((name, BatchRenewed(until=until)))
    named = {key.claim for key in command.claims}
    return AliveReply(
        clock=now,
        unknown=[key.claim for key in command.claims if key.claim not in found],
        extra=[name for name, each in claims.items() if each.schedd == command.schedd and name not in named],
    ), changes


def release(claims: Claims, keys: Collection[ClaimKey], reason: str, now: float) -> Changes:
    """The schedd gives claims back."""
    ending = Ending(code=VacateCode.StartdReleaseCommand, reason=reason or "the schedd released the claim")
    found = [claim for key in keys if (claim := proven(claims, key)) is not None]
    return [change for claim in found for change in end_claim(claim, ending, now)]


def expire(claims: Claims, now: float) -> Changes:
    """End claims that were not renewed in time."""
    ending = Ending(
        code=VacateCode.ReconnectFailed, reason="the claim's lease ended: the schedd did not renew it in time"
    )
    late = [claim for claim in claims.values() if claim.until <= now]
    return [change for claim in late for change in end_claim(claim, ending, now)]


def end_claim(claim: BatchClaim, ending: Ending, now: float) -> Changes:
    """End a claim: at once if it has no job, else when that is over."""
    if claim.run is None:
        return [(claim.claim, BatchReleased(reason=ending.reason))]
    return stop(claim, ending, now)


def stop(claim: BatchClaim, ending: Ending, now: float) -> Changes:
    """
    End the job of a claim; the first reason counts. One that the batch system knows nothing of is over at once.
    """
    run = claim.run
    if run is None or run.stop is not None or run.stage is Stage.ENDED:
        return []
    ordered: Changes = [(claim.claim, BatchStopOrdered(ending=ending, at=now))]
    if run.stage in {Stage.STAGING, Stage.DEFERRED}:
        ordered.append((claim.claim, BatchEnded(at=now, ending=ending)))
    return ordered


def confirm(claims: Claims, keys: Collection[ReportKey]) -> Changes:
    """The reports are recorded: what there is of these claims may go."""
    changes: Changes = []
    for key in keys:
        claim = claims.get(key.claim)
        run = claim.run if claim is not None else None
        if run is not None and run.stage is Stage.ENDED and (run.job, run.attempt) == (key.job, key.attempt):
            changes.append((key.claim, BatchReleased(reason="the end of its job is recorded")))
    return changes
