"""
What is written for HTCondor, and what its commands say: those of HTCondor itself, and those of another Kettle pool.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle.classad.printing import quoted_string
from kettle_services.ce.domain.batch.listed import BrokenAnswerError, ListedJob
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState, EndCause
from kettle_wire.codes import HoldCode, JobStatus

NAME: Final = "KettleIntent"
"""The attribute by which our jobs are known there."""
SHOWN: Final = (
    "ClusterId",
    "JobStatus",
    "LastJobStatus",
    NAME,
    "RemoteHost",
    "LastRemoteHost",
    "HoldReasonCode",
    "HoldReason",
    "LastHoldReasonCode",
    "LastHoldReason",
    "RemoveReason",
    "ExitBySignal",
    "ExitCode",
    "ExitSignal",
    "JobStartDate",
    "CompletionDate",
    "EnteredCurrentStatus",
    "RemoteUserCpu",
    "RemoteSysCpu",
    "ResidentSetSize",
)
_STATES: Final = {
    JobStatus.IDLE: BatchState.QUEUED,
    JobStatus.RUNNING: BatchState.RUNNING,
    JobStatus.TRANSFERRING_OUTPUT: BatchState.RUNNING,
    JobStatus.SUSPENDED: BatchState.SUSPENDED,
    JobStatus.HELD: BatchState.HELD,
    JobStatus.REMOVED: BatchState.ENDED,
    JobStatus.COMPLETED: BatchState.ENDED,
}
_HELD: Final = {
    HoldCode.JobOutOfResources: EndCause.MEMORY,
    HoldCode.JobDurationExceeded: EndCause.TIME,
    HoldCode.JobExecuteExceeded: EndCause.TIME,
}
"""Why HTCondor holds a job that has used too much; our description has it removed then."""
_BY_HAND: Final = HoldCode.UserRequest
_BY_ITSELF: Final = re.compile(r"PeriodicRemove", re.IGNORECASE)


class UnwritableError(ValueError):
    """A request that HTCondor cannot be told; the message is a sentence."""


def description(intent: str, directory: str, request: BatchRequest, more: Sequence[str]) -> str:
    """
    What `condor_submit` reads: the program is the script `.kettle/batch.sh` of the sandbox, which machine and we share.

    A job that HTCondor itself holds leaves the queue, so that it is over; one that somebody holds there waits.  `more`: lines of the site.

    Raises:
        UnwritableError: it cannot be said.
    """
    if request.nodes > 1:
        raise UnwritableError("HTCondor gives one job one machine: MachineCount is 1 there")
    over = [f"(JobStatus == 5 && HoldReasonCode =!= {int(_BY_HAND)})"]
    if request.wall:
        over.append(f"(JobStatus == 2 && time() - EnteredCurrentStatus > {request.wall})")
    lines = [
        "universe = vanilla",
        "executable = /bin/sh",
        "transfer_executable = false",
        f"arguments = {directory}/.kettle/batch.sh",
        f"initialdir = {directory}",
        "should_transfer_files = NO",
        f"output = {directory}/.kettle/batch.log",
        f"error = {directory}/.kettle/batch.log",
        'environment = "KETTLE_BATCH_ID=$(ClusterId)"',
        f"batch_name = {intent}",
        f"My.{NAME} = {quoted_string(intent)}",
        f"request_cpus = {'TotalSlotCpus' if request.whole_node else request.cpus}",
        f"periodic_remove = {' || '.join(over)}",
    ]
    if request.whole_node:
        lines.append("request_memory = TotalSlotMemory")
    elif request.memory:
        lines.append(f"request_memory = {request.memory}")
    if request.gpus:
        lines.append(f"request_gpus = {request.gpus}")
    if request.account:
        lines.append(f"accounting_group = {request.account}")
    if request.queue:
        lines.append(f"My.BatchQueue = {quoted_string(request.queue)}")
    return "\n".join([*lines, *more, "queue", ""])


def submitted(output: str) -> str | None:
    """The cluster that `condor_submit -terse` printed; None: there is none."""
    for line in reversed(output.splitlines()):
        if found := re.fullmatch(r"(\d+)\.0 - \1\.0", line.strip()):
            return found[1]
    return None


def of_us(intents: Sequence[str]) -> str:
    """A constraint: jobs of these names."""
    return f'stringListMember({NAME} ?: "", {quoted_string(",".join(intents))})'


def one(number: str, intent: str) -> str:
    """A constraint: this job, if its number is not another's by now."""
    return f"ClusterId == {number} && {NAME} =?= {quoted_string(intent)}"


def jobs(output: str) -> Iterator[ListedJob]:
    """
    The jobs in an answer of `condor_q` or `condor_history` in JSON; nothing at all is an answer without any.

    Raises:
        BrokenAnswerError: it is not whole.
    """
    start = output.find("[")
    if start < 0:
        if output.strip():
            raise BrokenAnswerError("condor_q wrote no JSON")
        return
    try:
        ads = msgspec.json.decode(output[start:], type=list[dict[str, object]])
    except msgspec.MsgspecError as error:
        raise BrokenAnswerError(f"condor_q wrote no whole list: {error}") from None
    yield from listed(ads)


def listed(ads: Iterable[Mapping[str, object]]) -> Iterator[ListedJob]:
    """Our jobs among ads."""
    for ad in ads:
        if isinstance(ad.get(NAME), str) and isinstance(ad.get("ClusterId"), int):
            yield _job(ad)


def _job(ad: Mapping[str, object]) -> ListedJob:
    status = ad.get("JobStatus")
    known = JobStatus(status) if isinstance(status, int) and status in set(JobStatus) else None
    state = _STATES.get(known) if known is not None else None
    reason = _text(ad, "HoldReason") if known is JobStatus.HELD else _text(ad, "RemoveReason")
    word = known.name if known is not None else f"JobStatus {status}"
    words = f"{word}: {reason}"[:1000] if reason else word
    return ListedJob(
        id=str(ad["ClusterId"]),
        name=_text(ad, NAME),
        state=state,
        words=words,
        host=(_text(ad, "RemoteHost") or _text(ad, "LastRemoteHost")).rpartition("@")[2],
        end=_end(ad, words) if state is BatchState.ENDED else None,
    )


def _end(ad: Mapping[str, object], words: str) -> BatchEnd:
    cause = _cause(ad)
    code = signal = None
    if cause is EndCause.EXITED:
        if ad.get("ExitBySignal") is True:
            signal = _number(ad, "ExitSignal")
        else:
            code = _number(ad, "ExitCode")
    return BatchEnd(
        cause=cause,
        exit_code=code,
        signal=signal,
        words=words,
        began=float(_number(ad, "JobStartDate") or 0),
        ended=float(_number(ad, "CompletionDate") or _number(ad, "EnteredCurrentStatus") or 0),
        cpu=_amount(ad, "RemoteUserCpu") + _amount(ad, "RemoteSysCpu"),
        memory_kib=math.ceil(_amount(ad, "ResidentSetSize")),
    )


def _cause(ad: Mapping[str, object]) -> EndCause:
    """
    A job that our description has removed was held then, or ran too long.  For what it was held earlier, and was released, does not count,
    and one that is held by hand is not removed.
    """
    if ad.get("JobStatus") == JobStatus.COMPLETED:
        return EndCause.EXITED
    if not _BY_ITSELF.search(_text(ad, "RemoveReason")):
        return EndCause.REMOVED
    code = _number(ad, "HoldReasonCode")
    if code is None and ad.get("LastJobStatus") == JobStatus.HELD:
        code = _number(ad, "LastHoldReasonCode")
    if code is None or code == _BY_HAND:
        return EndCause.TIME
    return _HELD.get(HoldCode(code), EndCause.NOT_STARTED) if code in set(HoldCode) else EndCause.NOT_STARTED


def _text(ad: Mapping[str, object], name: str) -> str:
    value = ad.get(name)
    return " ".join(value.split()) if isinstance(value, str) else ""


def _number(ad: Mapping[str, object], name: str) -> int | None:
    value = ad.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _amount(ad: Mapping[str, object], name: str) -> float:
    value = ad.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
