"""What is written for Grid Engine, and what its commands say."""

import calendar
import math
import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET

from kettle_services.ce.domain.batch.listed import BrokenAnswerError, ListedJob
from kettle_services.ce.domain.batch.script import BATCH_LOG
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState, EndCause

_KILLED: Final = frozenset({17, 100})
"""A signal has ended the job."""
_TIME_LIMIT: Final = 37
_RESCHEDULED: Final = frozenset({24, 25})
_AFTER_ITS_END: Final = frozenset({12, 13, 14, 15, 16})
"""What comes after the job has failed: the end of its parallel environment, the epilog, the release of its processors."""
_FIRST_RUN: Final = 100
"""Of `failed` what is below and not named above is about a job that had not begun."""


def directives(
    intent: str, directory: str, request: BatchRequest, *, environment: str, gpus: str, log: str = ""
) -> list[str]:
    """Arguments of `qsub`; `environment` is the parallel environment, `gpus` the resource of GPUs."""
    words = [
        f"-N {intent}",
        "-S /bin/sh",
        f"-wd {directory}",
        "-r n",
        f"-o {log or directory + BATCH_LOG}",
        "-j y",
    ]
    slots = request.cpus * request.nodes
    if slots > 1:
        words.append(f"-pe {environment} {slots}")
    if request.whole_node:
        words.append("-l exclusive=true")
    if request.memory:
        words.append(f"-l h_vmem={math.ceil(request.memory / request.cpus)}M")  # of each slot
    if request.wall:
        words.append(f"-l h_rt={request.wall}")
    if request.gpus:
        words.append(f"-l {gpus}={request.gpus}")
    if request.queue:
        words.append(f"-q {request.queue}")
    if request.account:
        words.append(f"-P {request.account}")
    return words


def submitted(output: str) -> str | None:
    """The number that `qsub -terse` printed; None: there is none."""
    for line in reversed(output.splitlines()):
        if found := re.fullmatch(r"(\d+)(\.\d+-\d+:\d+)?", line.strip()):
            return found[1]
    return None


def jobs(output: str) -> Iterator[ListedJob]:
    """
    The jobs in an answer of `qstat -xml`; of several parts that one which is farthest from its end.

    Raises:
        BrokenAnswerError: it is not whole.
    """
    start = output.find("<?xml")
    try:
        root = ET.fromstring(output[start:] if start >= 0 else output)  # noqa: S314 - of our own batch system, and small entities only
    except ET.ParseError as error:
        raise BrokenAnswerError(f"qstat wrote no whole list: {error}") from None
    if root.tag.rpartition("}")[2] != "job_info":
        raise BrokenAnswerError(f"qstat wrote {root.tag}, and no list of jobs")
    found: dict[str, ListedJob] = {}
    for each in root.iter("job_list"):
        number, name = _text(each, "JB_job_number"), _text(each, "JB_name")
        letters = _text(each, "state")
        host = _text(each, "queue_name").partition("@")[2]
        job = ListedJob(id=number, name=name, state=state_of(letters), words=letters, host=host)
        before = found.get(number)
        if before is None or _rank(job) < _rank(before):
            found[number] = job
    yield from found.values()


def _text(element: ET.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


_ORDER: Final = (None, BatchState.RUNNING, BatchState.SUSPENDED, BatchState.HELD, BatchState.QUEUED)


def _rank(job: ListedJob) -> int:
    return _ORDER.index(job.state)


def state_of(letters: str) -> BatchState | None:
    """What the letters of a state mean.  A job in the state of an error waits for somebody to clear it."""
    if not letters or set(letters) - set("qwhrtRsSTdEPN"):
        return None
    if "E" in letters or "h" in letters:
        return BatchState.HELD if "r" not in letters and "t" not in letters else BatchState.RUNNING
    if set(letters) & set("sSTPN"):
        return BatchState.SUSPENDED
    if set(letters) & set("rt"):
        return BatchState.RUNNING
    return BatchState.QUEUED


def accounted(output: str) -> dict[str, tuple[str, BatchEnd]]:
    """Names and ends of the jobs that `qacct -j` lists, by number; of several parts a bad one."""
    found: dict[str, tuple[str, BatchEnd]] = {}
    for block in re.split(r"^=+$", output, flags=re.MULTILINE):
        fields: dict[str, str] = {}
        for line in block.splitlines():
            name, _, value = line.partition(" ")
            fields[name] = value.strip()
        number = fields.get("jobnumber", "")
        if not number.isdecimal() or (end := _ended(fields)) is None:
            continue
        if number not in found or not _is_good(end):
            found[number] = fields.get("jobname", ""), end
    return found


def _is_good(end: BatchEnd) -> bool:
    return end.cause is EndCause.EXITED and end.exit_code == 0


def _ended(fields: dict[str, str]) -> BatchEnd | None:
    failed = _number(fields.get("failed", ""))
    status = _number(fields.get("exit_status", ""))
    if failed in _RESCHEDULED:
        return None
    wall, limit = _amount(fields.get("ru_wallclock", "")), _asked(fields, "h_rt")
    peak = _amount(fields.get("maxvmem", ""))
    memory, cause = _asked(fields, "h_vmem"), EndCause.EXITED
    if failed == _TIME_LIMIT or (failed in _KILLED and limit and wall >= limit):
        cause = EndCause.TIME
    elif failed in _KILLED and memory and peak >= memory:
        cause = EndCause.MEMORY
    elif failed in _KILLED:
        cause = EndCause.REMOVED
    elif 0 < failed < _FIRST_RUN and failed not in _AFTER_ITS_END:
        cause = EndCause.NOT_STARTED
    words = "" if not failed else f"failed {fields['failed']}"
    return BatchEnd(
        cause=cause,
        exit_code=status if cause is EndCause.EXITED else None,
        words=words,
        began=_time(fields.get("start_time", "")),
        ended=_time(fields.get("end_time", "")),
        cpu=_amount(fields.get("cpu", "")),
        memory_kib=math.ceil(peak / 1024),
    )


def _number(text: str) -> int:
    found = re.match(r"\s*(\d+)", text)
    return int(found[1]) if found else 0


_UNITS: Final = {"": 1.0, "K": 1024.0, "M": 1024.0**2, "G": 1024.0**3, "T": 1024.0**4}


def _amount(text: str) -> float:
    """Of `21s`, `3.293MB`, `1G`."""
    found = re.match(r"([\d.]+)\s*([KMGT]?)", text.strip())
    return float(found[1]) * _UNITS[found[2]] if found else 0.0


def _asked(fields: dict[str, str], name: str) -> float:
    found = re.search(rf"\b{name}=([^\s,]+)", fields.get("category", ""))
    return _amount(found[1]) if found else 0.0


_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _time(text: str) -> float:
    """
    Of `Thu Nov 26 11:43:00 2026`, or of `11/26/2026 11:43:00.123`; UTC, as `qacct` was asked to write it.
    """
    if found := re.fullmatch(r"\w{3} (\w{3}) +(\d+) (\d+):(\d+):(\d+) (\d{4})", text.strip()):
        month, *rest = found.groups()
        day, hour, minute, second, year = map(int, rest)
        if month in _MONTHS:
            return float(calendar.timegm((year, _MONTHS.index(month) + 1, day, hour, minute, second)))
    if found := re.match(r"(\d+)/(\d+)/(\d{4}) (\d+):(\d+):(\d+)", text.strip()):
        number, day, year, hour, minute, second = map(int, found.groups())
        return float(calendar.timegm((year, number, day, hour, minute, second)))
    return 0.0
