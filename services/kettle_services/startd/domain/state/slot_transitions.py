"""
The states of a slot and the transitions between them, as in HTCondor.

    Owner <-> Unclaimed --> Claimed: Idle --> Busy <-> Suspended
                                      ^        |          |
                                      |        v          v
                                      |      Retiring <-> Suspended
                                      |        |
                                   Cleaning    v
                                          Preempting: Vacating --> Killing --> gone
    Drained: Retiring --> Idle

The state of a claimed slot is not stored beside its claim: it follows from it.  A claim that ends with its attempt is
retiring until the attempt is told to stop.  There is no Matched state: a match is advice to a schedd, and no slot waits
for it. Backfill is not a state of a claim either (see `backfill`). A slot is also suspended while only the owner of its
job wants that: PREEMPT is evaluated, the policy may suspend the job as well, and its CONTINUE ends only its own
suspension. A Cleaning slot has a job that is being ended by its submit side, or has ended, and whose starter has not
finished.

Pure: `step` returns what changes now; the time and the policy are arguments.
"""

from typing import Final, Literal

import msgspec

from kettle_services.startd.domain.state.changes import (
    AttemptContinued,
    AttemptStopped,
    AttemptSuspended,
    Change,
    ClaimClosing,
    ClaimRemoved,
)
from kettle_services.startd.domain.state.claim import Claim, Now, StopOrder
from kettle_services.startd.domain.state.policy_expressions import SlotEvaluation
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode, VacateCode

State = Literal["Owner", "Unclaimed", "Claimed", "Preempting", "Drained", "Backfill"]
Activity = Literal["Idle", "Busy", "Suspended", "Retiring", "Cleaning", "Vacating", "Killing"]

_REASON_CHARS: Final = 1000


def state_of(claim: Claim) -> tuple[State, Activity]:
    """Where a claimed slot is."""
    attempt = claim.attempt
    if attempt is None:
        return ("Preempting", "Killing") if claim.ending else ("Claimed", "Idle")
    if attempt.stop is not None:
        if not claim.ending:
            return "Claimed", "Cleaning"
        return "Preempting", "Killing" if attempt.stop.hard else "Vacating"
    if attempt.suspended is not None:
        return "Claimed", "Suspended"
    if claim.ending:
        return "Claimed", "Retiring"
    return "Claimed", "Suspended" if attempt.still else "Busy"


def step(claim: Claim, asked: SlotEvaluation, now: Now) -> list[Change]:
    """What the policy does to a claimed slot now."""
    match state_of(claim):
        case "Claimed", "Idle":
            return [ClaimRemoved(claim.key.claim)] if asked.refuses("START") else []
        case "Claimed", "Busy":
            return _busy(claim, asked, now)
        case "Claimed", "Suspended":
            return _suspended(claim, asked, now)
        case "Claimed", "Retiring":
            return _retiring(claim, asked, now)
        case "Preempting", "Vacating":
            return _vacating(claim, asked, now)
        case _:
            return []


def _busy(claim: Claim, asked: SlotEvaluation, now: Now) -> list[Change]:
    if asked.holds("WANT_SUSPEND"):
        return _suspend(claim, asked, now)
    return retire(claim, _preempted(asked), asked, now) if asked.holds("PREEMPT") else []


def _suspended(claim: Claim, asked: SlotEvaluation, now: Now) -> list[Change]:
    if asked.holds("PREEMPT"):
        return retire(claim, _preempted(asked), asked, now)
    if claim.attempt is None or claim.attempt.suspended is None:  # it was the job's owner alone who wanted it
        return _suspend(claim, asked, now) if asked.holds("WANT_SUSPEND") else []
    return [AttemptContinued(claim.key.claim, now.clock, now.time)] if asked.holds("CONTINUE") else []


def _retiring(claim: Claim, asked: SlotEvaluation, now: Now) -> list[Change]:
    if claim.then is not None and _retired(claim, asked, now):
        return _preempt(claim, claim.then, asked, now)
    if asked.holds("WANT_SUSPEND"):
        return _suspend(claim, asked, now)
    if claim.then is None and asked.holds("PREEMPT"):  # a peaceful drain bounds no job, but its policy does
        return retire(claim, _preempted(asked), asked, now)
    return []


def _suspend(claim: Claim, asked: SlotEvaluation, now: Now) -> list[Change]:
    """An attempt without a starter has no process that could be stopped."""
    there = claim.attempt is not None and claim.attempt.pid
    return (
        [AttemptSuspended(claim.key.claim, now.clock, now.time)] if there and asked.holds("SUSPEND") else []
    )


def _vacating(claim: Claim, asked: SlotEvaluation, now: Now) -> list[Change]:
    stop = claim.attempt.stop if claim.attempt is not None else None
    if stop is None:
        return []
    late = now.clock - stop.at >= asked.seconds("MachineMaxVacateTime")
    if not late and not asked.holds("KILL"):
        return []
    hard = msgspec.structs.replace(stop, hard=True)
    return [AttemptStopped(claim.key.claim, hard, now.time)]


def retire(claim: Claim, stop: StopOrder, asked: SlotEvaluation, now: Now) -> list[Change]:
    """
    End a claim with its attempt, which has what is left of its retirement time and is then ended as `stop` says.

    One that is retiring goes on as it is, at once or when its time is over; one that is suspended runs again for it.
    One that is being ended by its submit side is the last of its claim.
    """
    name, attempt = claim.key.claim, claim.attempt
    if attempt is None:
        return [ClaimRemoved(name)]
    told = claim.ending and (claim.then is not None or attempt.stop is not None)
    changes: list[Change] = [] if told else [ClaimClosing(name, stop.ending.reason, stop, now.time)]
    if attempt.stop is not None:
        return changes
    if _retired(claim, asked, now):
        return [*changes, *_preempt(claim, claim.then or stop, asked, now)]
    if attempt.suspended is not None:
        changes.append(AttemptContinued(name, now.clock, now.time))
    return changes


def finish(claim: Claim, reason: str, now: Now) -> list[Change]:
    """End a claim with its attempt, which ends by itself; nothing for one that ends anyway."""
    if claim.attempt is None:
        return [ClaimRemoved(claim.key.claim)]
    return [] if claim.ending else [ClaimClosing(claim.key.claim, reason, at=now.time)]


def _preempt(claim: Claim, stop: StopOrder | None, asked: SlotEvaluation, now: Now) -> list[Change]:
    why = stop or StopOrder(Ending(code=VacateCode.StartdPreemptExpression, reason=claim.ending))
    hard = why.hard or not asked.holds("WANT_VACATE")
    order = StopOrder(why.ending, hard=hard, at=now.clock)
    return [AttemptStopped(claim.key.claim, order, now.time)]


def _retired(claim: Claim, asked: SlotEvaluation, now: Now) -> bool:
    attempt = claim.attempt
    return attempt is None or attempt.run_time(now.clock) >= asked.seconds("MaxJobRetirementTime")


def _preempted(asked: SlotEvaluation) -> StopOrder:
    """Why PREEMPT ends a job, and whether it is held for it."""
    reason = "PREEMPT of the machine became true"
    if not asked.holds("WANT_HOLD"):
        return StopOrder(Ending(code=VacateCode.StartdPreemptExpression, reason=reason))
    said, subcode = asked.hold_reason()
    return StopOrder(Ending(code=HoldCode.StartdHeldJob, reason=_text(said) or reason, subcode=subcode))


def _text(said: str) -> str:
    return said[:_REASON_CHARS].encode(errors="backslashreplace").decode().replace("\0", "\\0")
