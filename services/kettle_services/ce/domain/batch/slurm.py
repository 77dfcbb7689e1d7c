"""What is written for Slurm, and what its commands say."""

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_services.ce.domain.batch.script import BATCH_LOG
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState, EndCause

_FIELDS: Final = {
    "JobArrayID": 64,
    "State": 32,
    "Reason": 200,
    "Name": 32,
    "NodeList": 500,
    "exit_code": 16,
    "StartTime": 24,
    "EndTime": 24,
}
FORMAT: Final = ",".join(f"{name}:{width}|" for name, width in _FIELDS.items())
"""Of `squeue`; what is longer is cut."""
STRANGER: Final = "Invalid user"
"""In what `squeue` writes that was asked for the jobs of an account which is not there (any more); it ends well."""
_NUMBER: Final = re.compile(r"(\d+)([_+]\S+)?")

_QUEUED: Final = (
    "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "RESV_DEL_HOLD", "POWER_UP_NODE",
)  # fmt: skip
_RUNNING: Final = ("RUNNING", "COMPLETING", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT")
_ENDS: Final = {
    "COMPLETED": EndCause.EXITED,
    "FAILED": EndCause.EXITED,
    "OUT_OF_MEMORY": EndCause.MEMORY,
    "TIMEOUT": EndCause.TIME,
    "DEADLINE": EndCause.TIME,
    "NODE_FAIL": EndCause.NODE,
    "PREEMPTED": EndCause.PREEMPTED,
    "BOOT_FAIL": EndCause.NOT_STARTED,
    "LAUNCH_FAILED": EndCause.NOT_STARTED,
    "CANCELLED": EndCause.REMOVED,
    "REVOKED": EndCause.REMOVED,
}
STATES: Final = {
    **dict.fromkeys(_QUEUED, BatchState.QUEUED),
    **dict.fromkeys(("REQUEUE_HOLD", "SPECIAL_EXIT"), BatchState.HELD),
    **dict.fromkeys(_RUNNING, BatchState.RUNNING),
    "SUSPENDED": BatchState.SUSPENDED,
    **dict.fromkeys(_ENDS, BatchState.ENDED),
}
"""All words of Slurm for the state of a job."""
_HELD: Final = re.compile(r"^(JobHeld|launch_failed_requeued_held|job_requeued_in_held_state)")
_ORDER: Final = (
    BatchState.RUNNING,
    BatchState.SUSPENDED,
    BatchState.HELD,
    BatchState.QUEUED,
    BatchState.ENDED,
)
"""Of a job of several parts: what the first of these is that one of its parts is."""


def directives(intent: str, directory: str, request: BatchRequest, *, log: str = "") -> list[str]:
    """Arguments of `sbatch`, as they may stand in a script as well."""
    words = [
        f"--job-name={intent}",
        f"--comment={intent}",
        "--no-requeue",
        "--open-mode=append",
        f"--output={log or directory + BATCH_LOG}",
        f"--chdir={directory}",
        f"--nodes={request.nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={request.cpus}",
    ]
    if request.whole_node:
        words += ["--exclusive", "--mem=0"]
    elif request.memory:
        words.append(f"--mem={request.memory}M")
    if request.wall:
        words.append(f"--time={math.ceil(request.wall / 60)}")
    if request.gpus:
        words.append(f"--gres=gpu:{request.gpus}")
    named = {"partition": request.queue, "account": request.account}
    return words + [f"--{key}={value}" for key, value in named.items() if value]


_CLUSTERS: Final = re.compile(r"(?:--clu[ster]*(?:=|$)|-[HkOQsvZ]*M=?)(.*)")
"""An option that says where a job goes: as a word of its own, cut short, or behind letters of options without a value."""


def _words(line: str) -> list[str]:
    """As sbatch reads them: what is in quotes is one word, and a comment is none."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quote that is none
        return line.split()


def clusters_in(directives: Sequence[str]) -> list[str]:
    """The clusters that directives of the site send a job to."""
    found: list[str] = []
    for line in directives:
        words = _words(line.removeprefix("#SBATCH"))
        for word, after in zip(words, [*words[1:], ""], strict=True):
            if said := _CLUSTERS.fullmatch(word):
                found += (said[1] or after).strip("'\"").split(",")
    return found


def submitted(output: str) -> str | None:
    """The number that `sbatch --parsable` printed, with its cluster if it names one; None: there is none."""
    for line in reversed(output.splitlines()):
        number, _, cluster = line.strip().partition(";")
        if number.isdecimal():
            return f"{number};{cluster}" if cluster else number
    return None


def jobs(output: str) -> Iterator[ListedJob]:
    """
    The jobs in an answer of `squeue` with our format, those of several parts as one; what is no line of a job is passed over.
    """
    parts: dict[str, list[ListedJob]] = {}
    for line in output.splitlines():
        fields = [each.strip() for each in line.split("|")]
        if len(fields) == len(_FIELDS) + 1 and (found := _NUMBER.fullmatch(fields[0])):
            parts.setdefault(found[1], []).append(_job(found[1], fields))
    for each in parts.values():
        yield _whole(each)


def _job(number: str, fields: list[str]) -> ListedJob:
    _, word, reason, name, host, status, began, ended, _ = fields
    state = state_of(word, reason)
    end = None
    if state is BatchState.ENDED:
        end = _end(word, reason, int(status) if status.isdecimal() else None, _time(began), _time(ended))
    words = word if reason in {"", "None"} else f"{word}: {reason}"
    return ListedJob(id=number, name=name, state=state, words=words, host=host, end=end)


def state_of(word: str, reason: str) -> BatchState | None:
    """What a word, and for one that waits its reason, means; None: it is not known."""
    first = _plain(word)
    state = STATES.get(first)
    return BatchState.HELD if state is BatchState.QUEUED and _HELD.match(reason) else state


def _plain(word: str) -> str:
    """`sacct` says `CANCELLED by 1000`, and `CANCELLED+` where its column is narrow."""
    return word.split(maxsplit=1)[0].rstrip("+") if word.strip() else ""


def _end(word: str, reason: str, status: int | None, began: float, ended: float) -> BatchEnd:
    """`status` as `wait` gives it."""
    cause = _ENDS[_plain(word)]
    code = signal = None
    if cause is EndCause.EXITED and status is not None:
        code, signal = (status >> 8, None) if not status & 0x7F else (None, status & 0x7F)
    words = word if reason in {"", "None"} else f"{word}: {reason}"
    return BatchEnd(cause=cause, exit_code=code, signal=signal, words=words, began=began, ended=ended)


def _whole(parts: list[ListedJob]) -> ListedJob:
    if len(parts) == 1:
        return parts[0]
    unknown = [each for each in parts if each.state is None]
    if unknown:
        return unknown[0]
    first = min(parts, key=lambda each: _ORDER.index(each.state or BatchState.ENDED))
    if first.state is not BatchState.ENDED:
        return first
    failed = [each for each in parts if each.end is not None and (each.end.exit_code or each.end.signal)]
    bad = [each for each in parts if each.end is not None and each.end.cause is not EndCause.EXITED]
    return (bad or failed or parts)[0]


def _time(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0


ACCOUNTED: Final = "JobID,JobName,State,ExitCode,Start,End,TotalCPU,MaxRSS"
"""Of `sacct --parsable2`."""
_ACCOUNTED_FIELDS: Final = 8


def accounted(output: str) -> dict[str, tuple[str, BatchEnd | None]]:
    """
    Names and ends of the jobs that `sacct` lists, by number; None: it has not ended, or a word is not known.
    """
    found: dict[str, tuple[str, BatchEnd | None]] = {}
    memory: dict[str, int] = {}
    for line in output.splitlines():
        fields = line.split("|")
        if len(fields) != _ACCOUNTED_FIELDS or not (number := re.match(r"\d+", fields[0])):
            continue
        id_, name, word, status, began, ended, cpu, peak = fields
        memory[number[0]] = max(memory.get(number[0], 0), _kib(peak))
        if "." in id_:  # a step
            continue
        end = None
        if state_of(word, "") is BatchState.ENDED:
            code, _, signal = status.partition(":")
            wait = (int(code) << 8) | int(signal or 0) if code.isdecimal() else None
            end = msgspec.structs.replace(_end(word, "", wait, _time(began), _time(ended)), cpu=_seconds(cpu))
        found[number[0]] = name, end
    return {
        number: (name, end and msgspec.structs.replace(end, memory_kib=memory[number]))
        for number, (name, end) in found.items()
    }


_UNITS: Final = {"": 1 / 1024, "K": 1, "M": 1024, "G": 1 << 20, "T": 1 << 30}


def _kib(text: str) -> int:
    found = re.fullmatch(r"([\d.]+)([KMGT]?)", text.strip())
    return math.ceil(float(found[1]) * _UNITS[found[2]]) if found else 0


def _seconds(text: str) -> float:
    """Of `[DD-[HH:]]MM:SS[.mmm]`."""
    days, dash, rest = text.strip().rpartition("-")
    parts = rest.split(":")
    try:
        seconds = sum(float(part) * float(60**at) for at, part in enumerate(reversed(parts)))
        return seconds + (86_400 * int(days) if dash else 0)
    except ValueError:
        return 0.0
