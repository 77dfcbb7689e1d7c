"""
Text to log events.

Lenient where HTCondor's readers are: unknown numbers and unknown lines of a body are kept or passed over, an event
whose terminating line is still missing is not there yet.  Strict where a guess would be wrong: a line that should
begin an event and does not.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from kettle.userlog.ad_to_event import from_ad
from kettle.userlog.event_to_ad import HEAD, TYPES, attributes
from kettle.userlog.events import (
    Aborted,
    Checkpointed,
    ClusterRemove,
    ClusterSubmit,
    CpuTimes,
    Disconnected,
    Evicted,
    Executing,
    FactoryPaused,
    FactoryResumed,
    FileTransfer,
    Generic,
    Held,
    ImageSize,
    JobAdInformation,
    LogEvent,
    Other,
    Reconnected,
    ReconnectFailed,
    Released,
    Submitted,
    Suspended,
    Terminated,
    Unsuspended,
)
from kettle.userlog.foreign_events import foreign_attributes
from kettle.userlog.formats import Form
from kettle.userlog.framing import Block, UserLogFormatError, blocks
from kettle.userlog.rendering import COMPLETIONS, FILE_TRANSFERS
from kettle.userlog.resource_table import is_heading, parse_table
from kettle_wire.ads.types import Ad
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

_HEAD: Final = re.compile(
    r"\s*(?P<kind>\d{3}) \((?P<ids>(?P<cluster>-?\d+)\.(?P<proc>-?\d+)\.-?\d+)\) "
    r"(?P<date>\d{4}-\d\d-\d\d|\d\d/\d\d)[ T](?P<time>\d\d:\d\d:\d\d(?:\.\d{1,6})?)(?P<utc>Z?)(?:[+-]\d\d:?\d\d)? "
    r"(?P<first>.*)"
)
_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,6})?)(Z?)(?:[+-]\d\d:?\d\d)?")
_MADE: Final = re.compile(r"\tMaterialized (\d+) jobs from (\d+) items\.\t(.*)")
_TIMES: Final = re.compile(r"\t+Usr (\d+) (\d+):(\d+):(\d+), Sys (\d+) (\d+):(\d+):(\d+)  -  (.*) Usage")
_COUNT: Final = re.compile(r"\t(\d+)  -  (.*)")
_CODE: Final = re.compile(r"\tCode (\d+) Subcode (-?\d+)")
_EVICTED: Final = re.compile(r"Job was evicted\.(?: Code (\d+) Subcode (-?\d+))?")
_NORMAL: Final = re.compile(r"\t\(1\) Normal termination \(return value (-?\d+)\)")
_SIGNAL: Final = re.compile(r"\t\(0\) Abnormal termination \(signal (-?\d+)\)")
_SUSPENDED: Final = re.compile(r"\tNumber of processes actually suspended: (\d+)")
_NODE: Final = re.compile(r"Node (\d+) ")
_JOB_BITS: Final = 31
"""Numbers of jobs are below the power of two of them, as HTCondor's are; other numbers are below that of 63."""
_CORE: Final = re.compile(r"\t\(1\) Corefile in: (.*)")


def parse(text: str, zone: tzinfo | None = None) -> list[LogEvent]:
    """
    All complete events, in order.

    Raises UserLogFormatError at a line that should begin an event and does not, and for a log in several forms.
    """
    return [event_of(block, zone) for block in blocks(text)]


def event_of(block: Block, zone: tzinfo | None = None) -> LogEvent:
    """What one event says; raises UserLogFormatError."""
    if block.form is not Form.CLASSIC:
        return _of_document(block, zone)
    number, lines = block.line, block.lines
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None:
        raise UserLogFormatError(f"line {number}: expected the first line of an event")
    kind, body_lines = int(head["kind"]), [head["first"], *lines[1:]]
    try:
        at = _seconds_of(head["date"], head["time"], zone=UTC if head["utc"] else zone)
        job = JobId(_whole(head["cluster"], _JOB_BITS), _whole(head["proc"], _JOB_BITS))
        known: dict[str, Any] = {"job": job, "at": at}
        reader = _READERS.get(kind)
        if reader is None:
            return Other(
                **known, kind=kind, ids=head["ids"], lines=body_lines, ad=_foreign(known, kind, body_lines)
            )
        return reader(known, body_lines)
    except ValueError as error:
        raise UserLogFormatError(f"line {number}: event {head['kind']}: {error}") from error
    except (AttributeError, KeyError, IndexError) as error:
        raise UserLogFormatError(
            f"line {number}: event {head['kind']} lacks lines that it must have"
        ) from error


def _foreign(known: Mapping[str, Any], kind: int, lines: Sequence[str]) -> Ad:
    """The attributes of an event that Kettle does not write; nodes of a job are like jobs."""
    if kind not in {14, 15}:
        return foreign_attributes(kind, lines)
    node = _need(_NODE.match(lines[0]))
    lines = [line.replace(" By Node", " By Job") for line in lines]
    of_job = attributes(_executing(known, lines) if kind == 14 else _terminated(known, lines))
    own: Ad = {name: value for name, value in of_job.items() if name not in HEAD}
    head: Ad = {"MyType": TYPES[kind], "Node": _whole(node[1], _JOB_BITS)}
    return head | ({"ReturnValue": -1, "TerminatedBySignal": -1} if kind == 15 else {}) | own


def _of_document(block: Block, zone: tzinfo | None) -> LogEvent:
    from kettle.classad import ClassAdParseError, read_json
    from kettle.classad.xml_reader import read_xml_ads

    text = "\n".join(block.lines)
    try:
        ad = (read_json(text) if block.form is Form.JSON else next(read_xml_ads(text))).to_wire()
        stamp = _need(_STAMP.fullmatch(str(ad["EventTime"])))
        return from_ad(ad, _seconds_of(stamp[1], stamp[2], zone=UTC if stamp[3] else zone))
    except (ClassAdParseError, KeyError, TypeError, ValueError, StopIteration) as error:
        raise UserLogFormatError(
            f"line {block.line}: this is no event in {block.form}: {type(error).__name__}: {error}"
        ) from error


def _seconds_of(date: str, time: str, *, zone: tzinfo | None) -> float:
    """Since the epoch. A date without its year is of this one, as HTCondor's readers take it."""
    if "/" in date:
        date = f"{datetime.now(zone).year}-{date.replace('/', '-')}"
    whole, dot, fraction = time.partition(".")
    at = datetime.fromisoformat(f"{date} {whole}").replace(tzinfo=zone).timestamp()
    return at + float(f"0.{fraction}") if dot else int(at)


def _submitted(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    return Submitted(**known, host=_after(lines[0]), notes=[line.removeprefix("    ") for line in lines[1:]])


def _executing(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    slot = ""
    attributes: list[tuple[str, str]] = []
    for line in lines[1:]:
        name, equals, value = line.strip().partition(" = ")
        if line.startswith("\tSlotName: "):
            slot = _after(line)
        elif equals:
            attributes.append((name, value))
    return Executing(**known, host=_after(lines[0]), slot=slot, attributes=attributes)


def _evicted(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    code = _need(_EVICTED.fullmatch(lines[0]))
    times, counts, others, table = _usage(lines[1:])
    requeued = _exit(others[1:]) if others[0] == "\t(0) Job terminated and was requeued" else None
    reasons = [line for line in others[1:] if not line.startswith("\t(")]
    reason = reasons[0].removeprefix("\t") if reasons else ""
    return Evicted(
        **known,
        code=None if code[1] is None else _whole(code[1]),
        subcode=_whole(code[2] or "0"),
        checkpointed=others[0] == "\t(1) Job was checkpointed.",
        requeued=requeued,
        remote=times["Run Remote"],
        local=times["Run Local"],
        sent=counts.get("Run Bytes Sent By Job", 0),
        received=counts.get("Run Bytes Received By Job", 0),
        reason=reason.removeprefix("Reason: "),
        resources=parse_table(table) if table else [],
    )


def _terminated(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    times, counts, others, table = _usage(lines[1:])
    said = [line for line in others if line and not line.startswith("\t(")]
    return Terminated(
        **known,
        exit=_exit(others),
        run_remote=times["Run Remote"],
        run_local=times["Run Local"],
        total_remote=times["Total Remote"],
        total_local=times["Total Local"],
        sent=counts.get("Run Bytes Sent By Job", 0),
        received=counts.get("Run Bytes Received By Job", 0),
        total_sent=counts.get("Total Bytes Sent By Job", 0),
        total_received=counts.get("Total Bytes Received By Job", 0),
        resources=parse_table(table) if table else [],
        ticket=said[-1].removeprefix("\t") if said else "",
    )


def _file_transfer(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    said = dict(line.strip().split(": ", 1) for line in lines[1:] if ": " in line)
    queued = said.get("Seconds spent in queue")
    return FileTransfer(
        **known,
        kind=FILE_TRANSFERS.index(lines[0]) + 1,
        queued=None if queued is None else _whole(queued),
        host=said.get("Transferring to host", ""),
    )


def _image_size(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    counts = _usage(lines[1:])[1]
    return ImageSize(
        **known,
        image_kib=_whole(_after(lines[0])),
        memory_mib=counts.get("MemoryUsage of job (MB)"),
        resident_kib=counts.get("ResidentSetSize of job (KB)"),
        proportional_kib=counts.get("ProportionalSetSize of job (KB)"),
    )


def _aborted(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    return Aborted(**known, reason=_reason(lines))


def _suspended(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    count = _SUSPENDED.fullmatch(lines[1]) if len(lines) > 1 else None
    return Suspended(**known, processes=_whole(count[1]) if count else 0)


def _unsuspended(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    del lines  # it says no more than that
    return Unsuspended(**known)


def _held(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    # A reader takes the second line for the codes, wherever they stand: so a reason may have one line only.
    code = _CODE.fullmatch(lines[2]) if len(lines) > 2 else None
    reason = _reason(lines)
    return Held(
        **known,
        reason="" if reason == "Reason unspecified" else reason,
        code=_whole(code[1]) if code else 0,
        subcode=_whole(code[2]) if code else 0,
    )


def _released(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    return Released(**known, reason=_reason(lines))


def _checkpointed(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    times, counts, _, _ = _usage([f"\t{line}" if "Usage" in line else line for line in lines[1:]])
    sent = counts.get("Run Bytes Sent By Job For Checkpoint", 0)
    return Checkpointed(**known, remote=times["Run Remote"], local=times["Run Local"], sent=sent)


def _disconnected(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    slot, _, host = lines[2].strip().removeprefix("Trying to reconnect to ").rpartition(" ")
    return Disconnected(**known, slot=slot, host=host, reason=lines[1].strip())


def _reconnected(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    return Reconnected(**known, slot=lines[0].removeprefix("Job reconnected to "), host=_after(lines[1]))


def _generic(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    return Generic(**known, info=lines[0])


def _job_ad_information(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    from kettle.classad import read_long

    return JobAdInformation(**known, attributes=read_long("\n".join(lines[1:])).to_wire())


def _cluster_submit(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    notes = [line.removeprefix("    ") for line in lines[1:]]
    return ClusterSubmit(**known, host=_after(lines[0]), notes=notes)


def _cluster_remove(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    made = _need(_MADE.fullmatch(lines[1]))
    reason = lines[2].removeprefix("\t") if len(lines) > 2 else ""
    completion = (
        _whole(made[3].removeprefix("Error ")) if made[3] not in COMPLETIONS else COMPLETIONS.index(made[3])
    )
    return ClusterRemove(
        **known, jobs=_whole(made[1]), items=_whole(made[2]), completion=completion, reason=reason
    )


def _factory_paused(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    codes = dict(line.strip().split(" ", 1) for line in lines[2:] if " " in line.strip())
    return FactoryPaused(
        **known,
        reason=_reason(lines),
        code=_whole(codes.get("PauseCode", "0")),
        hold_code=_whole(codes.get("HoldCode", "0")),
    )


def _factory_resumed(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    return FactoryResumed(**known, reason=_reason(lines))


def _reconnect_failed(known: Mapping[str, Any], lines: Sequence[str]) -> LogEvent:
    slot = lines[2].strip().removeprefix("Can not reconnect to ").removesuffix(", rescheduling job")
    return ReconnectFailed(**known, slot=slot, reason=lines[1].strip())


_READERS: Final = {
    0: _submitted,
    1: _executing,
    3: _checkpointed,
    4: _evicted,
    5: _terminated,
    6: _image_size,
    8: _generic,
    9: _aborted,
    10: _suspended,
    11: _unsuspended,
    12: _held,
    13: _released,
    22: _disconnected,
    23: _reconnected,
    24: _reconnect_failed,
    28: _job_ad_information,
    35: _cluster_submit,
    36: _cluster_remove,
    37: _factory_paused,
    38: _factory_resumed,
    40: _file_transfer,
}


def _usage(lines: Sequence[str]) -> tuple[dict[str, CpuTimes], dict[str, int], list[str], list[str]]:
    """Sort the lines of a body: processor times and counts by what they are, other lines, the table."""
    times: dict[str, CpuTimes] = {}
    counts: dict[str, int] = {}
    others: list[str] = []
    table: list[str] = []
    for line in lines:
        if match := _TIMES.fullmatch(line):
            times[match[9]] = CpuTimes(_seconds(match.groups()[:4]), _seconds(match.groups()[4:8]))
        elif match := _COUNT.fullmatch(line):
            counts[match[2]] = _whole(match[1])
        elif is_heading(line) or (table and " : " in line):
            table.append(line)
        else:
            others.append(line)
    return times, counts, others, table


def _exit(lines: Sequence[str]) -> ExitRecord:
    for index, line in enumerate(lines):
        if match := _NORMAL.fullmatch(line):
            return ExitRecord(code=_whole(match[1]))
        if match := _SIGNAL.fullmatch(line):
            core = _CORE.fullmatch(lines[index + 1]) if len(lines) > index + 1 else None
            return ExitRecord(signal=_whole(match[1]), core=core[1] if core else "")
    raise ValueError("no line says how it ended")


def _seconds(clock: Sequence[str]) -> int:
    day, hour, minute, second = map(_whole, clock)
    return ((day * 24 + hour) * 60 + minute) * 60 + second


def _after(line: str) -> str:
    return line.partition(": ")[2]


def _reason(lines: Sequence[str]) -> str:
    return lines[1].removeprefix("\t") if len(lines) > 1 else ""


def _need(match: re.Match[str] | None) -> re.Match[str]:
    if match is None:
        raise ValueError("a line that must be there is not")
    return match


def _whole(text: str, bits: int = 63) -> int:
    if len(text) > 20 or abs(number := int(text)) >> bits:
        raise ValueError(f"the number {text[:20]}{'...' if len(text) > 20 else ''} is too large")
    return number
