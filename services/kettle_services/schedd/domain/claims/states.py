"""What a claim is to its schedd: its phases, what can happen to it, and what is to be done then."""

from enum import StrEnum
from typing import NamedTuple


class ClaimPhase(StrEnum):
    """How far a claim is, as its schedd knows."""

    OVER = "over"
    """Nothing is known of it: it was never asked for, or it has ended. A startd that has it is to end it."""
    ASKED = "asked"
    """A startd is asked for it, and has not decided."""
    WAITING = "waiting"
    """The startd has agreed, and the jobs of other claims have to make room first."""
    IDLE = "idle"
    """It is on record without a job: the claims of the other nodes are awaited, or it is kept for the next job."""
    RUNNING = "running"
    """It is on record with a job, whose attempt may live on it."""
    SILENT = "silent"
    """As before, and its startd does not answer: the job counts as disconnected."""
    LOST = "lost"
    """It is certainly dead, and other claims of its job may live: it is on record until they are dead too."""
    RETURNING = "returning"
    """It is over here, and its startd has not confirmed that yet."""


ASKING = (ClaimPhase.ASKED, ClaimPhase.WAITING)
"""Nobody knows yet whether the claim is granted."""
WITH_JOB = (ClaimPhase.RUNNING, ClaimPhase.SILENT, ClaimPhase.LOST)
ON_RECORD = (ClaimPhase.IDLE, *WITH_JOB)


class ClaimState(NamedTuple):
    """All that is decided by."""

    phase: ClaimPhase
    doubted: bool = False
    """Its startd has said once that it does not have it: its last report about it may still be under way."""


class ClaimStimulus(StrEnum):
    """What can happen to a claim."""

    # Of the request for it.
    REQUESTED = "requested"
    """Its startd is asked for it."""
    DEFERRED = "deferred"
    """The startd says that others have to make room for it first."""
    ASSIGNED = "assigned"
    """There is a job for it: it was just granted, or its last job has left it."""
    GRANTED = "granted"
    """The startd has granted it, and its job needs other claims as well."""
    NOT_NEEDED = "not needed"
    """It was granted, or has waited long enough, and no job wants it any more."""
    REFUSED = "refused"
    """The startd has not granted it."""
    NOT_DELIVERED = "not delivered"
    """The request certainly reached nobody, or was not carried out."""
    NOT_ANSWERED = "not answered"
    """What the startd was asked or told of it has no answer: it may have been carried out."""
    # Of its job, on record.
    JOB_ENDED = "job ended"
    """The attempt of its job is over, by the worker's word."""
    JOB_HEARD = "job heard of"
    """A worker whose machine does not answer has reported something."""
    # Of the startd, at any time.
    RENEWED = "renewed"
    """The startd answers, and has the claim."""
    SILENCE = "silence"
    """The startd has left several questions unanswered, and the job can be shown as disconnected."""
    NOT_FOUND = "not found"
    """The startd answers, and does not have the claim."""
    LEASE_OVER = "lease over"
    """The startd has certainly ended it by now."""
    LISTED = "listed"
    """The startd has it, and it was not among those that were named to it."""
    ENDED_THERE = "ended there"
    """The machine has ended the claim with its job."""
    CONFIRMED = "confirmed"
    """The startd knows that it is over."""
    # Of the schedd.
    GIVEN_BACK = "given back"
    """It is given back, whatever it is used for."""
    ALL_LOST = "all lost"
    """The last claim of its job is lost too, and the attempt has ended with it."""


class ClaimInstruction(StrEnum):
    """What is to be done, in the order in which it is given."""

    RECORD_GRANT = "record grant"
    """Record that the startd has granted it."""
    RECORD_ASSIGNMENT = "record assignment"
    """Record that an attempt of the job begins on it, in the same frame; a shadow is told after the commit."""
    RENEW_SOON = "renew soon"
    """Renew it at once: a startd does not keep for long what nobody renews."""
    RECORD_DISCONNECTION = "record disconnection"
    """Record of the job that its machine does not answer."""
    RECORD_RECONNECTION = "record reconnection"
    """Record of the job that its machine answers again, if it counts as disconnected."""
    END_ATTEMPT = "end attempt"
    """Record the end of the attempt if all claims of its job are dead; else have ended what is left of it."""
    RECORD_END = "record end"
    """Record that it is over."""
    RELEASE = "release"
    """Tell the startd, after the commit of what was recorded."""
    RELEASE_LATER = "release later"
    """Tell the startd as long as it may have it: now it does not answer."""
