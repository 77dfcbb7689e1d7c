"""What a change makes of the claim that it happens to.  Total: what was recorded has happened."""

from typing import assert_never

import msgspec

from kettle_services.startd.domain.state.changes import (
    AttemptAccepted,
    AttemptContinued,
    AttemptFinished,
    AttemptStopped,
    AttemptSuspended,
    ClaimClosing,
    OwnerOrderChanged,
    Reopened,
    StarterConnected,
)
from kettle_services.startd.domain.state.claim import Claim, RunningAttempt

OfClaim = (
    AttemptAccepted
    | StarterConnected
    | AttemptSuspended
    | AttemptContinued
    | OwnerOrderChanged
    | AttemptStopped
    | AttemptFinished
    | ClaimClosing
    | Reopened
)
"""Changes of one claim that leave it a claim."""

_replace = msgspec.structs.replace


def after(claim: Claim, change: OfClaim) -> Claim:
    """The claim after a change of its own."""
    match change:
        case AttemptAccepted(attempt=attempt, rank=rank):
            liked = claim.rank if rank is None else rank
            until = max(claim.deadline, claim.until)  # its schedd has recorded it
            return _replace(claim, attempt=attempt, changed=attempt.began, rank=liked, deadline=until)
        case AttemptFinished():
            return _replace(
                claim, attempt=None, changed=change.at, sequence=max(change.sequence, claim.sequence)
            )
        case ClaimClosing(reason=reason, then=then, at=at):
            return _moved(_replace(claim, ending=reason, then=then), at)
        case Reopened(at=at):
            return _moved(_replace(claim, ending="", then=None), at)
        case (
            StarterConnected()
            | AttemptSuspended()
            | AttemptContinued()
            | OwnerOrderChanged()
            | AttemptStopped()
        ):
            return _attempt(claim, change)
        case _:
            assert_never(change)


def _attempt(
    claim: Claim,
    change: StarterConnected | AttemptSuspended | AttemptContinued | OwnerOrderChanged | AttemptStopped,
) -> Claim:
    attempt = claim.attempt
    if attempt is None:
        return claim
    match change:
        case StarterConnected(pid=pid, start_time=start_time):
            return _replace(claim, attempt=_replace(attempt, pid=pid, start_time=start_time))
        case AttemptSuspended(clock=clock, at=at):
            return _moved(_replace(claim, attempt=_replace(attempt, suspended=clock)), at)
        case AttemptContinued(clock=clock, at=at):
            return _moved(_replace(claim, attempt=_running(attempt, clock)), at)
        case OwnerOrderChanged(still=still, number=number, at=at):
            changed = _replace(claim, attempt=_replace(attempt, still=still, ordered=number))
            return _moved(changed, at) if attempt.suspended is None else changed
        case AttemptStopped(stop=stop, at=at):
            stopped = _replace(claim, attempt=_replace(_running(attempt, stop.at), stop=stop, still=False))
            first = attempt.stop is None and bool(claim.ending)
            return _moved(_replace(stopped, entered=at) if first and at else stopped, at)
        case _:
            assert_never(change)


def _running(attempt: RunningAttempt, clock: float) -> RunningAttempt:
    """The attempt without its suspension, which ends when the job continues, and when it is told to end."""
    if attempt.suspended is None:
        return attempt
    spent = max(0.0, clock - attempt.suspended)
    return _replace(attempt, suspended=None, suspension=attempt.suspension + spent)


def _moved(claim: Claim, at: float) -> Claim:
    """With the time of the change, if it is known."""
    return _replace(claim, changed=at) if at else claim


def inherited(heir: Claim, gone: Claim) -> Claim:
    """A waiting claim with what one had for which it waits."""
    tags = {**heir.devices, **gone.devices}
    return _replace(
        heir,
        resources=heir.resources + gone.resources,
        devices={tag: [*heir.devices.get(tag, []), *gone.devices.get(tag, [])] for tag in tags},
        after=[name for name in heir.after if name != gone.key.claim],
    )
