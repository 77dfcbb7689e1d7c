"""A claim at a batch system and the job that it is for, as folded from its stream."""

from enum import StrEnum

import msgspec

from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState
from kettle_wire.events.batch import (
    BatchActivated,
    BatchClaimed,
    BatchDeferred,
    BatchEnded,
    BatchEvent,
    BatchHoldOrdered,
    BatchInDoubt,
    BatchReleased,
    BatchRenewed,
    BatchSeen,
    BatchStopOrdered,
    BatchSubmitted,
    BatchSubmitting,
)
from kettle_wire.jobs import JobId


class Stage(StrEnum):
    """How far a job is."""

    STAGING = "staging"
    """Its files are on their way into its sandbox. The batch system knows nothing of it."""
    SUBMITTING = "submitting"
    """The batch system is asked to take it."""
    IN_DOUBT = "in-doubt"
    """It was asked, and nobody knows the answer: the job is looked for, and not submitted again while it may come."""
    DEFERRED = "deferred"
    """The batch system does not take it now: it is asked again."""
    SUBMITTED = "submitted"
    """The batch system has it."""
    ENDED = "ended"
    """It is over, and its report waits to be recorded."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a claim."""

    job: JobId
    attempt: int
    owner: str
    intent: str
    request: BatchRequest
    trace: str = ""
    stage: Stage = Stage.STAGING
    since: float
    """When it came into this stage, seconds since the epoch."""
    asked: int = 0
    """How often the batch system was asked to take it."""
    words: str = ""
    """What the batch system said last."""
    again: float = 0.0
    """Of one that is deferred: when it is asked again."""
    id: str = ""
    """Its name there."""
    state: BatchState | None = None
    """As it was seen there last; None: not yet."""
    host: str = ""
    began: float = 0.0
    """When it was first seen running; 0: never."""
    stop: Ending | None = None
    """It is to be removed there, because of this."""
    held: bool = False
    """Its owner wants it stopped."""
    orders: int = 0
    """The number of the last such order."""
    end: BatchEnd | None = None
    ending: Ending | None = None


class BatchClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim."""

    claim: str
    proof: str
    system: str
    schedd: str
    submitter: str
    lease: float
    until: float
    """When it is over unless it is renewed, seconds since the epoch."""
    run: Run | None = None


def evolve(claim: BatchClaim | None, event: BatchEvent) -> BatchClaim | None:
    """What becomes of a claim; None: there is none, or none any more."""
    if isinstance(event, BatchClaimed):
        return BatchClaim(
            claim=event.claim,
            proof=event.proof,
            system=event.system,
            schedd=event.schedd,
            submitter=event.submitter,
            lease=event.lease,
            until=event.until,
        )
    if isinstance(event, BatchReleased):
        return None
    assert claim is not None, f"{event} of a claim that is not there"
    if isinstance(event, BatchRenewed):
        return msgspec.structs.replace(claim, until=event.until)
    run = _run(claim.run, event)
    if isinstance(event, BatchActivated):  # the schedd has recorded the claim, or it would begin no job
        return msgspec.structs.replace(claim, run=run, until=max(claim.until, event.at + claim.lease))
    return msgspec.structs.replace(claim, run=run)


_OfRun = (
    BatchActivated
    | BatchSubmitting
    | BatchInDoubt
    | BatchDeferred
    | BatchSubmitted
    | BatchSeen
    | BatchStopOrdered
    | BatchHoldOrdered
    | BatchEnded
)


def _run(run: Run | None, event: _OfRun) -> Run:
    if isinstance(event, BatchActivated):
        return Run(
            job=event.job,
            attempt=event.attempt,
            owner=event.owner,
            intent=event.intent,
            request=event.request,
            trace=event.trace,
            since=event.at,
        )
    assert run is not None, f"{event} of a claim without a job"
    change = msgspec.structs.replace
    match event:
        case BatchSubmitting(number=number, at=at):
            return change(run, stage=Stage.SUBMITTING, since=at, asked=number)
        case BatchInDoubt(words=words, at=at):
            return change(run, stage=Stage.IN_DOUBT, since=at, words=words)
        case BatchDeferred(words=words, again=again):
            return change(run, stage=Stage.DEFERRED, words=words, again=again)
        case BatchSubmitted(id=id_, at=at):
            return change(run, stage=Stage.SUBMITTED, since=at, id=id_, words="")
        case BatchSeen(state=state, at=at, words=words, host=host):
            began = run.began or (at if state is BatchState.RUNNING else 0.0)
            return change(run, state=state, words=words, host=host or run.host, began=began)
        case BatchStopOrdered(ending=ending):
            return change(run, stop=ending)
        case BatchHoldOrdered(held=held, number=number):
            return change(run, held=held, orders=number)
        case BatchEnded(at=at, end=end, ending=ending):
            return change(run, stage=Stage.ENDED, since=at, end=end, ending=ending)
