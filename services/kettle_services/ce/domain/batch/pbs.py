"""What is written for OpenPBS and Torque, and what their commands say."""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree import ElementTree as ET

import msgspec

from kettle_services.ce.domain.batch.listed import BrokenAnswerError, ListedJob
from kettle_services.ce.domain.batch.script import BATCH_LOG
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState, EndCause

STATES: Final = {
    **dict.fromkeys("QWT", BatchState.QUEUED),
    "H": BatchState.HELD,
    **dict.fromkeys("REB", BatchState.RUNNING),
    **dict.fromkeys("SU", BatchState.SUSPENDED),
    **dict.fromkeys("FCX", BatchState.ENDED),
}
"""All letters but M: such a job is at another server, and what it does there is not known."""
_LIMITS: Final = {
    **dict.fromkeys((-29, -28), EndCause.TIME),
    **dict.fromkeys((-27, -26), EndCause.MEMORY),
    **dict.fromkeys((-25, -24), EndCause.REMOVED),  # for more processors than it had asked for
    -20: EndCause.NODE,
}
"""Exit statuses by which OpenPBS says that it ended a job."""
_TORQUE_LIMITS: Final = {**dict.fromkeys((-11, -12), EndCause.TIME), -10: EndCause.MEMORY}
_BY_SIGNAL: Final = 256
_TERMINATED: Final = 271
_ID: Final = re.compile(r"(\d+(?:\[\])?)(?:\.[\w.-]+)?")


def directives(
    intent: str, directory: str, request: BatchRequest, *, torque: bool, gpus: str, log: str = ""
) -> list[str]:
    """Arguments of `qsub`; `gpus` is the resource of GPUs."""
    words = [f"-N {intent}", "-S /bin/sh", "-r n", "-j oe", f"-o {log or directory + BATCH_LOG}"]
    if torque:
        chunk = f"nodes={request.nodes}:ppn={request.cpus}"
        words.append(f"-l {chunk}" + (f":{gpus}={request.gpus}" if request.gpus else ""))
        words += [f"-l mem={request.memory * request.nodes}mb"] if request.memory else []
        words += ["-n"] if request.whole_node else []
    else:
        chunk = f"select={request.nodes}:ncpus={request.cpus}"
        chunk += f":mem={request.memory}mb" if request.memory else ""
        words.append(f"-l {chunk}" + (f":{gpus}={request.gpus}" if request.gpus else ""))
        place = ["scatter"] * (request.nodes > 1 or request.whole_node) + ["exclhost"] * request.whole_node
        words += [f"-l place={':'.join(place)}"] if place else []
    if request.wall:
        words.append(f"-l walltime={request.wall}")
    named = {"-q": request.queue, "-A": request.account}
    return words + [f"{key} {value}" for key, value in named.items() if value]


def submitted(output: str) -> str | None:
    """The id that `qsub` printed; None: there is none."""
    ids = listed_ids(output)
    return ids[-1] if ids else None


def listed_ids(output: str) -> list[str]:
    """The ids that stand each in a line of its own; what is none is passed over."""
    return [line.strip() for line in output.splitlines() if _ID.fullmatch(line.strip())]


def jobs(output: str) -> Iterator[ListedJob]:
    """
    The jobs in an answer of `qstat`: JSON of OpenPBS, or XML of Torque.

    Raises:
        BrokenAnswerError: it is not whole.
    """
    begin = re.search(r"^\s*(\{|<Data>)", output, re.MULTILINE)
    if begin is None:
        if output.strip():
            raise BrokenAnswerError("qstat wrote neither JSON nor XML")
        return
    text = output[begin.start(1) :]
    if begin[1] == "{":
        yield from _of_json(text)
    else:
        yield from _of_xml(text)


class _Answer(msgspec.Struct):
    jobs: dict[str, dict[str, object]] = msgspec.field(name="Jobs", default_factory=dict)


def _of_json(text: str) -> Iterator[ListedJob]:
    try:
        answer = msgspec.json.decode(text, type=_Answer)
    except msgspec.MsgspecError as error:
        raise BrokenAnswerError(f"qstat wrote no whole list: {error}") from None
    for id_, fields in answer.jobs.items():
        more = {f"used.{key}": value for key, value in _used(fields.get("resources_used")).items()}
        yield _job(id_, {key: str(value) for key, value in {**fields, **more}.items()}, _LIMITS)


def _used(value: object) -> dict[str, object]:
    try:
        return msgspec.convert(value or {}, dict[str, object])
    except msgspec.ValidationError:  # it is not said
        return {}


def _of_xml(text: str) -> Iterator[ListedJob]:
    try:
        root = ET.fromstring(text)  # noqa: S314 - of our own batch system
    except ET.ParseError as error:
        raise BrokenAnswerError(f"qstat wrote no whole list: {error}") from None
    for each in root.iter("Job"):
        fields = {field.tag: (field.text or "").strip() for field in each}
        used = each.find("resources_used")
        for field in used if used is not None else ():
            fields[f"used.{field.tag}"] = (field.text or "").strip()
        yield _job(fields.get("Job_Id", ""), fields, _TORQUE_LIMITS)


def _job(id_: str, fields: Mapping[str, str], limits: Mapping[int, EndCause]) -> ListedJob:
    letter, comment = fields.get("job_state", ""), fields.get("comment", "")
    state = STATES.get(letter)
    words = f"{letter}: {comment}" if comment else letter
    end = _end(fields, words, limits) if state is BatchState.ENDED else None
    host = fields.get("exec_host", "").partition("/")[0]
    return ListedJob(id=id_, name=fields.get("Job_Name", ""), state=state, words=words, host=host, end=end)


def _end(fields: Mapping[str, str], words: str, limits: Mapping[int, EndCause]) -> BatchEnd:
    text = fields.get("Exit_status", fields.get("exit_status", ""))
    try:
        status = int(text)
    except ValueError:
        # One that ended before it began has no status: it was deleted while it waited.
        began = "stime" in fields or "start_time" in fields
        return BatchEnd(cause=EndCause.UNKNOWN if began else EndCause.REMOVED, words=words)
    cause, code, signal = EndCause.EXITED, None, None
    if "walltime" in words and "exceeded" in words:
        cause = EndCause.TIME
    elif "mem" in words and "exceeded" in words:
        cause = EndCause.MEMORY
    elif status in limits:
        cause = limits[status]
    elif status < 0:
        cause = EndCause.NOT_STARTED
    elif status == _TERMINATED:
        cause = EndCause.REMOVED
    elif status >= _BY_SIGNAL:
        signal = status - _BY_SIGNAL
    else:
        code = status
    return BatchEnd(
        cause=cause,
        exit_code=code,
        signal=signal,
        words=words,
        cpu=_seconds(fields.get("used.cput", "")),
        memory_kib=_kib(fields.get("used.mem", "")),
    )


def _seconds(text: str) -> float:
    parts = text.split(":")
    if not all(part.isdecimal() for part in parts):
        return 0.0
    return float(sum(int(part) * 60**at for at, part in enumerate(reversed(parts))))


_UNITS: Final = {"b": 1 / 1024, "kb": 1, "mb": 1024, "gb": 1 << 20}


def _kib(text: str) -> int:
    found = re.fullmatch(r"(\d+)(b|kb|mb|gb)", text.lower())
    return int(int(found[1]) * _UNITS[found[2]]) if found else 0
