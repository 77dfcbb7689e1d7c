"""What is written for LSF, and what its commands say."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kettle_services.ce.domain.batch.listed import BrokenAnswerError, ListedJob
from kettle_services.ce.domain.batch.script import BATCH_LOG
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState, EndCause

STATES: Final = {
    **dict.fromkeys(("PEND", "WAIT"), BatchState.QUEUED),
    "PSUSP": BatchState.HELD,
    **dict.fromkeys(("RUN", "PROV"), BatchState.RUNNING),
    **dict.fromkeys(("USUSP", "SSUSP"), BatchState.SUSPENDED),
    **dict.fromkeys(("DONE", "EXIT"), BatchState.ENDED),
}
"""
All words but UNKWN and ZOMBI: the host of such a job does not answer, and what became of it is not known.
"""
_REASONS: Final = (
    (EndCause.TIME, r"TERM_(RUNLIMIT|DEADLINE|WINDOW|CPULIMIT)"),
    (EndCause.MEMORY, r"TERM_(MEMLIMIT|SWAP)"),
    (EndCause.PREEMPTED, r"TERM_(PREEMPT|LOAD|ORPHAN_SYSTEM)"),
    (EndCause.NODE, r"TERM_(ZOMBIE|REMOVE_HUNG_JOB|KUBE)"),
    (EndCause.NOT_STARTED, r"TERM_(PRE_EXEC_FAIL|CWD_NOTEXIST|RMS|SLURM|CSM_ALLOC)"),
    (
        EndCause.REMOVED,
        r"TERM_(OWNER|ADMIN|FORCE_OWNER|FORCE_ADMIN|BUCKET_KILL|EXTERNAL_SIGNAL|CHKPNT|REQUEUE\w*|PROCESSLIMIT|THREADLIMIT|MC_RECALL)",
    ),
)
COLUMNS: Final = (
    "jobid stat job_name first_host exit_code exit_reason start_time finish_time cpu_used max_mem"
)
"""Of `bjobs -json -o`."""
_SIGNALLED: Final = 128


def directives(intent: str, directory: str, request: BatchRequest, *, log: str = "") -> list[str]:
    """Arguments of `bsub`."""
    words = [
        f"-J {intent}",
        f"-n {request.cpus * request.nodes}",
        f'-R "span[{f"ptile={request.cpus}" if request.nodes > 1 else "hosts=1"}]"',
        "-rn",
        f"-cwd {directory}",
        f"-o {log or directory + BATCH_LOG}",
    ]
    if request.whole_node:
        words.append("-x")
    if request.memory:
        words += [f"-M {request.memory}MB", f'-R "rusage[mem={request.memory}MB]"']
    if request.wall:
        words.append(f"-W {math.ceil(request.wall / 60)}")
    if request.gpus:
        words.append(f'-gpu "num={request.gpus}"')
    named = {"-q": request.queue, "-P": request.account}
    return words + [f"{key} {value}" for key, value in named.items() if value]


def submitted(output: str) -> str | None:
    """The number that `bsub` printed; None: there is none."""
    found = re.search(r"^Job <(\d+)> is submitted", output, re.MULTILINE)
    return found[1] if found else None


class _Answer(msgspec.Struct):
    records: list[dict[str, str]] = msgspec.field(name="RECORDS", default_factory=list)


def jobs(output: str) -> Iterator[ListedJob]:
    """
    The jobs in an answer of `bjobs -json`; those that it says it has not are passed over.

    Raises:
        BrokenAnswerError: it is not whole.
    """
    start = output.find("{")
    if start < 0:
        raise BrokenAnswerError("bjobs wrote no JSON")
    try:
        answer = msgspec.json.decode(output[start:], type=_Answer)
    except msgspec.MsgspecError as error:
        raise BrokenAnswerError(f"bjobs wrote no whole list: {error}") from None
    for fields in answer.records:
        if "STAT" in fields:
            yield _job(fields)


def _job(fields: Mapping[str, str]) -> ListedJob:
    word = fields["STAT"]
    state = STATES.get(word)
    reason = fields.get("EXIT_REASON", "").strip("-")
    words = f"{word}: {reason}" if reason else word
    end = _end(word, reason, words, fields) if state is BatchState.ENDED else None
    host = fields.get("FIRST_HOST", "").strip("-")
    return ListedJob(
        id=fields.get("JOBID", ""),
        name=fields.get("JOB_NAME", ""),
        state=state,
        words=words,
        host=host,
        end=end,
    )


def _end(word: str, reason: str, words: str, fields: Mapping[str, str]) -> BatchEnd:
    cause = next((cause for cause, pattern in _REASONS if re.search(pattern, reason)), EndCause.EXITED)
    text = fields.get("EXIT_CODE", "").strip("-")
    status = 0 if word == "DONE" else int(text) if text.isdecimal() else None
    code = signal = None
    if cause is EndCause.EXITED and status is not None:
        killed = "by signal" in reason or "TERM_UNKNOWN" in reason
        code, signal = (None, status - _SIGNALLED) if killed and status > _SIGNALLED else (status, None)
    return BatchEnd(
        cause=cause,
        exit_code=code,
        signal=signal,
        words=words,
        cpu=_first(fields.get("CPU_USED", "")),
        memory_kib=_memory(fields.get("MAX_MEM", "")),
    )


def _first(text: str) -> float:
    found = re.match(r"\s*(\d+(?:\.\d+)?)", text)
    return float(found[1]) if found else 0.0


_UNITS: Final = {"K": 1, "M": 1024, "G": 1 << 20, "T": 1 << 30}


def _memory(text: str) -> int:
    found = re.match(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])", text)
    return math.ceil(float(found[1]) * _UNITS[found[2]]) if found else 0
