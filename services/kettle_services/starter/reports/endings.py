"""Why an attempt ends without a result, in HTCondor's codes."""

import errno
import math
from typing import Final

from kettle.execution.containers.policy import ContainerError
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.processes.launch import LaunchError, Step
from kettle.execution.sandbox.output_files import TooManyResultsError
from kettle.jobs.durations import exceeded
from kettle.jobs.quoting import QuotingError
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode, HoldSubcode, VacateCode

_LAUNCH_CODES: Final[dict[Step, int]] = {
    "program": HoldCode.FailedToCreateProcess,
    "directory": HoldCode.IwdError,
    "input": HoldCode.UnableToOpenInput,
    "output": HoldCode.UnableToOpenOutput,
    "error": HoldCode.UnableToOpenOutput,
}
"""HoldReasonCode by the step that failed; the other steps are the machine's fault, not the job's."""

_BUSY: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.ETXTBSY})
"""Try elsewhere, do not bother the owner."""

_NAMES: Final = frozenset({errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})
"""What the names of input files lead to, on every machine."""

_REASON_CHARS: Final = 1000


def runs_again(ending: Ending) -> bool:
    """Whether somebody is there to whom a next run matters."""
    return not ending.holds and ending.code not in {VacateCode.JobRemoved, VacateCode.ReconnectFailed}


def after_starting(error: ContainerError | LaunchError | QuotingError | OSError) -> Ending:
    """The job has no main process, and why."""
    match error:
        case ContainerError():
            return after_container(error)
        case LaunchError():
            return after_launch(error)
        case QuotingError():
            return Ending(
                code=HoldCode.FailedToCreateProcess,
                subcode=errno.EINVAL,
                reason=f"cannot start the job: {error}",
            )
        case _:
            return after_preparing(error)


def after_launch(error: LaunchError) -> Ending:
    """The job could not be started."""
    code = _LAUNCH_CODES.get(error.step)
    if code is None or error.errno in _BUSY:
        return Ending(code=VacateCode.StarterError, reason=str(error))
    return Ending(code=code, subcode=error.errno, reason=str(error))


def after_container(error: ContainerError) -> Ending:
    """The job's container cannot be had: the image's fault, or the machine's."""
    return Ending(code=error.code, subcode=error.subcode, reason=_why(error))


def after_preparing(error: OSError) -> Ending:
    """
    The sandbox could not be made.  Mostly the machine's fault; but input files may have names that exclude each other.
    """
    reason = f"cannot prepare the sandbox: {_why(error)}"
    if error.errno in _NAMES:
        return Ending(code=HoldCode.TransferInputError, subcode=error.errno, reason=reason)
    return Ending(code=VacateCode.ScratchDirError, reason=reason)


def after_waiting(job: JobAd, now: float) -> Ending | None:
    """
    A job that starts at a time of its own is ready at `now`: too late, perhaps.  One of the calendar has another time.
    """
    at, window = job.number("DeferralTime"), max(0.0, job.number("DeferralWindow") or 0.0)
    if at is None:
        return Ending(
            code=HoldCode.MissedDeferredExecutionTime,
            reason="the job's DeferralTime is not a time, in seconds since 1970",
        )
    if now <= at + window:
        return None
    from kettle.jobs.crontab import FIELDS  # rarely needed, and each page costs memory

    reason = f"Job missed deferred execution time: it was ready {now - at:.0f} s after it, and may be {window:.0f} s late"
    if any(job.given(name) for name in FIELDS):
        return Ending(code=VacateCode.JobShouldRequeue, reason=reason)
    return Ending(code=HoldCode.MissedDeferredExecutionTime, reason=reason)


def after_mishap(error: Exception) -> Ending:
    """
    Something of the machine or of ourselves failed while the job ran.  Hold: tried again it would most likely fail again.
    """
    return Ending(
        code=HoldCode.StartdHeldJob,
        reason=f"the starter could not go on with the job: {_why(error)}",
    )


def after_collecting(error: Exception) -> Ending:
    """The job ended, and its results cannot be had."""
    number = error.errno or 0 if isinstance(error, OSError) else 0
    return Ending(
        code=HoldCode.TransferOutputError,
        subcode=number,
        reason=f"the job's results cannot be sent: {_why(error)}",
    )


def _why(error: Exception) -> str:
    """A sentence that can be sent on the wire: names of files on disk may be any bytes."""
    match error:
        case TooManyResultsError() | ContainerError():
            text = str(error)
        case OSError(strerror=str(why)):
            text = f"{why} ({error.filename})" if error.filename else why
        case _:
            text = f"{type(error).__name__}: {error}"
    return text[:_REASON_CHARS].encode(errors="backslashreplace").decode()


def vanished() -> Ending:
    """Nobody saw how the job's process ended."""
    return Ending(code=VacateCode.StarterError, reason="the job's process vanished")


def lost_lease() -> Ending:
    """Nobody renewed the claim's lease."""
    return Ending(
        code=VacateCode.ReconnectFailed,
        reason="the claim's lease ended: the submit side did not renew it in time",
    )


def out_of_memory(limit_mib: int, used_kib: int) -> Ending:
    """The job used more memory than its slot has."""
    used = f", it used {used_kib // 1024} MiB" if used_kib > limit_mib * 1024 else ""
    reason = f"the job ran out of memory: its slot has {limit_mib} MiB{used}"
    return Ending(code=HoldCode.JobOutOfResources, subcode=HoldSubcode.Memory, reason=reason)


def out_of_disk(limit_kib: int, used_kib: int) -> Ending:
    """The job used more disk space than its slot has."""
    reason = f"the job used {used_kib} KiB of disk space, its slot has {limit_kib} KiB"
    return Ending(code=HoldCode.JobOutOfResources, subcode=HoldSubcode.Disk, reason=reason)


def limits(job: JobAd, began: float, executing: float) -> list[tuple[float, Ending]]:
    """
    When the job has run for too long by its own word, and what follows; the first that is due counts.

    All of it counts from the activation, `began`; its execution from when its program was started.
    """
    found: list[tuple[float, Ending]] = []
    for name, since, code, what in (
        ("AllowedJobDuration", began, 46, "job"),
        ("AllowedExecuteDuration", executing, 47, "execute"),
    ):
        seconds = job.number(name)
        if seconds is not None and math.isfinite(seconds):
            reason = exceeded(what, int(seconds))
            found.append((since + seconds, Ending(code=code, reason=reason)))
    return found
