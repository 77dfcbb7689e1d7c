"""
What the events of a job log are as attributes, under HTCondor's names.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kettle import classad
from kettle.userlog import (
    Aborted,
    Checkpointed,
    CpuTimes,
    Disconnected,
    Evicted,
    Executing,
    FileTransfer,
    Held,
    ImageSize,
    LogEvent,
    Other,
    Reconnected,
    ReconnectFailed,
    Released,
    Resource,
    Submitted,
    Suspended,
    Terminated,
    Termination,
    Unsuspended,
)

Attributes = dict[str, Any]

_COUNT: Final = re.compile(r"\t(\d+)  -  Run Bytes (Sent|Received) By .*")
_RETURNED: Final = re.compile(r"\t\(1\) Normal termination \(return value (-?\d+)\)")
_SIGNALLED: Final = re.compile(r"\t\(0\) Abnormal termination \(signal (\d+)\)")
_NODE: Final = "DAG Node: "


def attributes(event: LogEvent) -> Attributes:
    """
    The attributes of an event: those that all have, and its own.
    """
    number = event.kind if isinstance(event, Other) else event.number
    own = _other(event) if isinstance(event, Other) else _OWN[type(event)](event)
    return {
        "MyType": own.pop("MyType", None) or _TYPES.get(number, "FutureEvent"),
        "EventTypeNumber": number,
        "Cluster": event.job.cluster,
        "Proc": event.job.proc,
        "Subproc": 0,
        "EventTime": datetime.fromtimestamp(event.at).isoformat(),  # noqa: DTZ006 - local, as in the file
    } | own


_TYPES: Final[Mapping[int, str]] = {
    0: "SubmitEvent",
    1: "ExecuteEvent",
    2: "ExecutableErrorEvent",
    3: "CheckpointedEvent",
    4: "JobEvictedEvent",
    5: "JobTerminatedEvent",
    6: "JobImageSizeEvent",
    7: "ShadowExceptionEvent",
    8: "GenericEvent",
    9: "JobAbortedEvent",
    10: "JobSuspendedEvent",
    11: "JobUnsuspendedEvent",
    12: "JobHeldEvent",
    13: "JobReleaseEvent",
    16: "PostScriptTerminatedEvent",
    22: "JobDisconnectedEvent",
    23: "JobReconnectedEvent",
    24: "JobReconnectFailedEvent",
    28: "JobAdInformationEvent",
    40: "FileTransferEvent",
}


def _submitted(event: Submitted) -> Attributes:
    own: Attributes = {"SubmitHost": event.host}
    own |= dict(zip(("LogNotes", "UserNotes", "Warnings"), event.notes, strict=False))
    if event.notes and event.notes[0].startswith(_NODE):
        own["StructuredNotes"] = {"DAGNodeName": event.notes[0].removeprefix(_NODE)}
    return own


def _executing(event: Executing) -> Attributes:
    own: Attributes = {"ExecuteHost": event.host}
    if event.slot:
        own["SlotName"] = event.slot
    if event.attributes:
        own["ExecuteProps"] = classad.read_long("\n".join(f"{n} = {value}" for n, value in event.attributes))
    return own


def _checkpointed(event: Checkpointed) -> Attributes:
    return {
        "RunRemoteUsage": _times(event.remote),
        "RunLocalUsage": _times(event.local),
        "SentBytes": float(event.sent),
    }


def _evicted(event: Evicted) -> Attributes:
    own: Attributes = {
        "Checkpointed": event.checkpointed,
        "RunRemoteUsage": _times(event.remote),
        "RunLocalUsage": _times(event.local),
        "SentBytes": float(event.sent),
        "ReceivedBytes": float(event.received),
        "TerminatedAndRequeued": event.requeued is not None,
        "TerminatedNormally": False,
    }
    if event.requeued is not None:
        own |= _ending(event.requeued)
    if event.code is not None:
        own["ReasonCode"] = event.code
    if event.subcode:
        own["ReasonSubCode"] = event.subcode
    if event.reason:
        own["Reason"] = event.reason
    return own | _resources(event.resources)


def _terminated(event: Terminated) -> Attributes:
    return {
        **_ending(event.ending),
        "RunRemoteUsage": _times(event.run_remote),
        "RunLocalUsage": _times(event.run_local),
        "TotalRemoteUsage": _times(event.total_remote),
        "TotalLocalUsage": _times(event.total_local),
        "SentBytes": float(event.sent),
        "ReceivedBytes": float(event.received),
        "TotalSentBytes": float(event.total_sent),
        "TotalReceivedBytes": float(event.total_received),
        **_resources(event.resources),
    }


def _image_size(event: ImageSize) -> Attributes:
    sizes = {
        "MemoryUsage": event.memory_mib,
        "ResidentSetSize": event.resident_kib,
        "ProportionalSetSize": event.proportional_kib,
    }
    return {"Size": event.image_kib} | {name: size for name, size in sizes.items() if size is not None}


def _held(event: Held) -> Attributes:
    own: Attributes = {"HoldReasonCode": event.code, "HoldReasonSubCode": event.subcode}
    return own | ({"HoldReason": event.reason} if event.reason else {})


def _reason(event: Aborted | Released) -> Attributes:
    return {"Reason": event.reason} if event.reason else {}


def _disconnected(event: Disconnected) -> Attributes:
    return {
        "StartdName": event.slot,
        "StartdAddr": event.host,
        "DisconnectReason": event.reason,
        "EventDescription": "Job disconnected, attempting to reconnect",
    }


def _reconnected(event: Reconnected) -> Attributes:
    return {
        "StartdName": event.slot,
        "StartdAddr": event.host,
        "StarterAddr": event.host,
        "EventDescription": "Job reconnected",
    }


def _reconnect_failed(event: ReconnectFailed) -> Attributes:
    return {
        "StartdName": event.slot,
        "Reason": event.reason,
        "EventDescription": "Job reconnect impossible: rescheduling job",
    }


def _file_transfer(event: FileTransfer) -> Attributes:
    own: Attributes = {"Type": event.kind}
    if event.queued is not None:
        own["QueueingDelay"] = event.queued
    return own | ({"Host": event.host} if event.host else {})


_OWN: Final[Mapping[type[LogEvent], Callable[[Any], Attributes]]] = {
    Submitted: _submitted,
    Executing: _executing,
    Checkpointed: _checkpointed,
    Evicted: _evicted,
    Terminated: _terminated,
    ImageSize: _image_size,
    Aborted: _reason,
    Suspended: lambda event: {"NumberOfPIDs": event.processes},
    Unsuspended: lambda _: {},
    Held: _held,
    Released: _reason,
    Disconnected: _disconnected,
    Reconnected: _reconnected,
    ReconnectFailed: _reconnect_failed,
    FileTransfer: _file_transfer,
}


def _other(event: Other) -> Attributes:
    """What clients read of the kinds that Kettle itself does not write: DAGMan does."""
    match event.kind:
        case 7:
            return {"Message": "", **_shadow_exception(event.lines[1:])}
        case 8:
            return {"Info": event.lines[0]}
        case 16:
            return _post_script(event.lines[1:])
        case 28:
            inner = classad.read_long("\n".join(event.lines[1:]))
            return {name: inner[name] for name in inner}
        case _:
            return {"MyType": "FutureEvent", "EventHead": event.lines[0]}


def _shadow_exception(lines: Sequence[str]) -> Attributes:
    own: Attributes = {}
    for line in lines:
        if found := _COUNT.fullmatch(line):
            own[f"{found[2]}Bytes"] = float(found[1])
        else:
            own.setdefault("Message", line.strip())
    return own


def _post_script(lines: Sequence[str]) -> Attributes:
    own: Attributes = {"TerminatedNormally": False}
    for line in lines:
        if found := _RETURNED.fullmatch(line):
            own |= {"TerminatedNormally": True, "ReturnValue": int(found[1])}
        elif found := _SIGNALLED.fullmatch(line):
            own["TerminatedBySignal"] = int(found[1])
        elif line.strip().startswith(_NODE):
            own["DAGNodeName"] = line.strip().removeprefix(_NODE)
    return own


def _ending(ending: Termination) -> Attributes:
    if ending.signal is None:
        return {"TerminatedNormally": True, "ReturnValue": ending.exit_code}
    own: Attributes = {"TerminatedNormally": False, "TerminatedBySignal": ending.signal}
    return own | ({"CoreFile": ending.core} if ending.core else {})


def _times(times: CpuTimes) -> str:
    return f"Usr {_clock(times.user)}, Sys {_clock(times.system)}"


def _clock(seconds: int) -> str:
    return f"{seconds // 86400} {seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _resources(table: Sequence[Resource]) -> Attributes:
    own: Attributes = {}
    for line in table:
        name = line.label.partition("(")[0].strip()
        cells = {
            f"{name}Usage": line.usage,
            f"Request{name}": line.request,
            name: line.allocated,
            f"Assigned{name}": line.assigned or "",
        }
        own |= {attribute: _cell(cell) for attribute, cell in cells.items() if cell.strip()}
    return own


def _cell(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text.strip().strip('"')
