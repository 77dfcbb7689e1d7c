"""What the end of a job at a batch system is to its access point."""

from typing import Final

from kettle.routes.chain import UNKNOWN_END
from kettle_services.ce.domain.attempts.attempt import Run
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord, Usage
from kettle_wire.batch import BatchEnd, BatchState, EndCause
from kettle_wire.codes import HoldCode, HoldSubcode, VacateCode

_AGAIN: Final = {
    EndCause.NODE: (VacateCode.StartdException, "its machine failed"),
    EndCause.PREEMPTED: (VacateCode.StartdPreemptExpression, "another job took its machine"),
    EndCause.NOT_STARTED: (VacateCode.JobNotStarted, "it could not be started"),
}
"""Ends after which a job runs again."""
_STATUSES: Final = {EndCause.EXITED: "COMPLETED", EndCause.UNKNOWN: UNKNOWN_END}
"""GridJobStatus by how a job ended; after any other end REMOVED."""


def grid_status(run: Run) -> str:
    """GridJobStatus of a job that the batch system has or had; an end that is not known is no removal."""
    if run.end is not None:
        return _STATUSES.get(run.end.cause, "REMOVED")
    return (run.state or BatchState.QUEUED).upper()


def ending_of(run: Run, end: BatchEnd) -> Ending | None:
    """
    What ended it otherwise than by the end of its program; None: that, and how it ended is known.

    An exit code that nobody knows is not 0: the job is held, and somebody decides.
    """
    if run.stop is not None:
        return run.stop
    said = f" ({end.words})" if end.words else ""
    where = f"job {run.id} of the batch system"
    match end.cause:
        case EndCause.EXITED if (end.exit_code is None) != (end.signal is None):
            return None
        case EndCause.EXITED | EndCause.UNKNOWN:
            why = "is over" if end.cause is EndCause.EXITED else "is not there any more"
            return Ending(
                code=HoldCode.GlobusGramError, reason=f"{where} {why}, and nobody knows how it ended{said}"
            )
        case EndCause.REMOVED:
            return Ending(code=VacateCode.RemovedInBatchSystem, reason=f"{where} was removed there{said}")
        case EndCause.MEMORY:
            return Ending(
                code=HoldCode.JobOutOfResources,
                subcode=HoldSubcode.Memory,
                reason=f"{where} was ended there because it used more memory than it had asked for{said}",
            )
        case EndCause.TIME:
            return Ending(
                code=HoldCode.JobDurationExceeded,
                reason=f"{where} was ended there because it used more time than it had asked for{said}",
            )
        case _:
            code, why = _AGAIN[end.cause]
            return Ending(code=code, reason=f"{where}: {why}{said}")


def result_of(run: Run, ending: Ending | None, *, sent: int) -> AttemptResult:
    """The result of one that has ended, with what ended it otherwise than by the end of its program."""
    end = run.end or BatchEnd(cause=EndCause.UNKNOWN)
    began, ended = end.began or run.began, end.ended or run.since
    usage = Usage(
        wall=max(0.0, ended - began) if began else 0.0,
        user_cpu=end.cpu,
        memory_kib=end.memory_kib,
        sent=sent,
    )
    known = end.cause is EndCause.EXITED and (end.exit_code is None) != (end.signal is None)
    ran = ExitRecord(code=end.exit_code, signal=end.signal, at=ended) if known and run.stop is None else None
    return AttemptResult(exit=ran, ending=ending, usage=usage)
