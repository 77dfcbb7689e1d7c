"""What follows for a job from what its batch system answers, or does not answer."""

from typing import Final

import msgspec

from kettle_services.ce.domain.attempts.attempt import Run, Stage
from kettle_services.ce.domain.attempts.endings import ending_of
from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchEnd, BatchState, EndCause
from kettle_wire.codes import HoldCode
from kettle_wire.events.batch import (
    BatchDeferred,
    BatchEnded,
    BatchEvent,
    BatchInDoubt,
    BatchSeen,
    BatchSubmitted,
    BatchSubmitting,
)

_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 300.0


def submitting(run: Run, now: float) -> list[BatchEvent]:
    """Its files are there, or it is asked again: the batch system is about to be asked."""
    if run.stop is not None or run.stage not in {Stage.STAGING, Stage.DEFERRED}:
        return []
    return [BatchSubmitting(number=run.asked + 1, at=now)]


def not_staged(run: Run, ending: Ending, now: float) -> list[BatchEvent]:
    """Its files cannot be had."""
    return [BatchEnded(at=now, ending=run.stop or ending)] if run.stage is Stage.STAGING else []


def taken(run: Run, id_: str, now: float) -> list[BatchEvent]:
    """The batch system has taken it."""
    if run.stage not in {Stage.SUBMITTING, Stage.IN_DOUBT}:
        return []
    return [BatchSubmitted(id=id_, at=now, found=run.stage is Stage.IN_DOUBT)]


def not_taken(run: Run, words: str, now: float, *, passes: bool) -> list[BatchEvent]:
    """
    The batch system has not taken it: it is asked again after a while, or if that is of no use the job is held.
    """
    if run.stage is not Stage.SUBMITTING:
        return []
    if run.stop is not None:
        return [BatchEnded(at=now, ending=run.stop)]
    if not passes:
        reason = f"the batch system does not take the job: {words}"
        return [BatchEnded(at=now, ending=Ending(code=HoldCode.GlobusGramError, reason=reason))]
    pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(run.asked - 1, 10))
    return [BatchDeferred(words=words, again=now + pause)]


def in_doubt(run: Run, words: str, now: float) -> list[BatchEvent]:
    """Nobody knows whether the batch system has taken it."""
    return [BatchInDoubt(words=words, at=now)] if run.stage is Stage.SUBMITTING else []


def not_found(run: Run, now: float, *, settling: float) -> list[BatchEvent]:
    """
    The batch system answered that it has no such job.  That means something only when so much time has passed that it can not
    come any more; then it is asked again, or if the job is to end it never was there.
    """
    if run.stage is not Stage.IN_DOUBT or now - run.since < settling:
        return []
    if run.stop is not None:
        return [BatchEnded(at=now, ending=run.stop)]
    return [BatchSubmitting(number=run.asked + 1, at=now)]


def seen(run: Run, state: BatchState, now: float, *, words: str = "", host: str = "") -> list[BatchEvent]:
    """It is there, and goes on; what is the same as before is not recorded."""
    if run.stage is not Stage.SUBMITTED or state is BatchState.ENDED:
        return []
    if (run.state, run.words) == (state, words) and host in {"", run.host}:
        return []
    return [BatchSeen(state=state, at=now, words=words, host=host)]


def ended(run: Run, end: BatchEnd, now: float) -> list[BatchEvent]:
    """It is over there."""
    if run.stage is not Stage.SUBMITTED:
        return []
    return [BatchEnded(at=end.ended or now, end=end, ending=ending_of(run, end))]


def ended_as_second(
    run: Run, end: BatchEnd, by: str | None, now: float, *, settling: float
) -> list[BatchEvent]:
    """
    It ended with the status of a job that finds another one at work for it, and left no word of its own.  `by`: the number of the job that
    has begun, by the word of that one; empty: that cannot be told yet, None: none has begun.

    The job that has begun is the one that counts, and is followed from now on; that it was submitted twice is no end.
    """
    ours, at, cluster = run.id.partition(";")
    if run.stage is Stage.SUBMITTED and by and by != ours:
        return [BatchSubmitted(id=f"{by}{at}{cluster}", at=now, found=True)]
    if by == "" and now - end.ended < settling:
        return []
    return ended(run, end, now)


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A job that the batch system does not name any more."""

    polls: int
    """So many answers in a row."""
    since: float


_POLLS: Final = 2
"""In one answer it may be missing by accident: it moves from one list to another."""


def is_looked_into(absence: Absence) -> bool:
    """Whether its books and its sandbox are asked how it ended."""
    return absence.polls >= _POLLS


def patience_with(run: Run, lost_after: float, *, settling: float) -> float:
    """
    Seconds after which a job that is in no answer is given up: sooner if it was to be removed, which is why it is not there.
    """
    return lost_after if run.stop is None else min(lost_after, settling)


def judged(
    absence: Absence, accounted: BatchEnd | None, left: BatchEnd | None, now: float, *, patience: float
) -> BatchEnd | None:
    """
    How a job that is absent ended: as the books say, else as it has left word itself, else, when it has been absent for so long
    that nobody will know any more, unknown.  None: it may come back.
    """
    if accounted is not None:
        return completed(accounted, left)
    if left is not None:
        return left
    if now - absence.since >= patience:
        return BatchEnd(cause=EndCause.UNKNOWN, words="it is in no answer any more")
    return None


def completed(end: BatchEnd, left: BatchEnd | None) -> BatchEnd:
    """
    What the batch system says of an end, with what the job has left word of itself, which knows a signal from an exit code.

    A job that has left word of its end had begun, whatever failed there besides: it does not run again.
    """
    if left is None:
        return end
    exited = end.cause in {EndCause.EXITED, EndCause.NOT_STARTED}
    return msgspec.structs.replace(
        end,
        cause=EndCause.EXITED if exited else end.cause,
        exit_code=left.exit_code if exited else end.exit_code,
        signal=left.signal if exited else end.signal,
        began=left.began or end.began,
        ended=left.ended or end.ended,
        cpu=end.cpu or left.cpu,
        memory_kib=end.memory_kib or left.memory_kib,
    )
