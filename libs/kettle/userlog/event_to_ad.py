"""What the events of a job log are as attributes, under HTCondor's names."""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final

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
    Resource,
    Submitted,
    Suspended,
    Terminated,
    Unsuspended,
)
from kettle.userlog.formats import CLASSIC, Format
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.attempts import ExitRecord

HEAD: Final = frozenset(
    {"MyType", "TargetType", "EventTypeNumber", "EventTime", "Cluster", "Proc", "Subproc", "CurrentTime"}
)
"""What the ads of all events have."""
UNKNOWN_SIGNAL: Final = -1
"""What HTCondor writes for the signal of a job that did not end normally, and of which no more is known."""
_NODE: Final = "DAG Node: "
_NOTES: Final = ("LogNotes", "UserNotes", "Warnings")


def attributes(event: LogEvent, written: Format = CLASSIC, zone: tzinfo | None = None) -> Ad:
    """The attributes of an event: those that all have, and its own; times as they are to be `written`."""
    number = number_of(event)
    own = _other(event) if isinstance(event, Other) else _OWN[type(event)](event)
    head: Ad = {
        "MyType": own.pop("MyType", "") or TYPES.get(number, "FutureEvent"),
        "EventTypeNumber": number,
        "Cluster": event.job.cluster,
        "Proc": event.job.proc,
        "Subproc": 0,
        "EventTime": written.stamp(event.at, zone),
    }
    return head | own


def number_of(event: LogEvent) -> int:
    """Which kind of event it is, by its number."""
    return event.kind if isinstance(event, Other) else event.number


TYPES: Final[Mapping[int, str]] = {
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
    14: "NodeExecuteEvent",
    15: "NodeTerminatedEvent",
    16: "PostScriptTerminatedEvent",
    21: "RemoteErrorEvent",
    22: "JobDisconnectedEvent",
    23: "JobReconnectedEvent",
    24: "JobReconnectFailedEvent",
    25: "GridResourceUpEvent",
    26: "GridResourceDownEvent",
    27: "GridSubmitEvent",
    28: "JobAdInformationEvent",
    33: "AttributeUpdateEvent",
    35: "ClusterSubmitEvent",
    36: "ClusterRemoveEvent",
    37: "FactoryPausedEvent",
    38: "FactoryResumedEvent",
    40: "FileTransferEvent",
    41: "ReserveSpaceEvent",
    42: "ReleaseSpaceEvent",
    43: "FileCompleteEvent",
    44: "FileUsedEvent",
    45: "FileRemovedEvent",
    46: "DataflowJobSkippedEvent",
}
"""MyType, by number."""

TRIGGERS: Final[Mapping[int, str]] = {
    0: "ULOG_SUBMIT",
    1: "ULOG_EXECUTE",
    3: "ULOG_CHECKPOINTED",
    4: "ULOG_JOB_EVICTED",
    5: "ULOG_JOB_TERMINATED",
    6: "ULOG_IMAGE_SIZE",
    8: "ULOG_GENERIC",
    9: "ULOG_JOB_ABORTED",
    10: "ULOG_JOB_SUSPENDED",
    11: "ULOG_JOB_UNSUSPENDED",
    12: "ULOG_JOB_HELD",
    13: "ULOG_JOB_RELEASED",
    14: "ULOG_NODE_EXECUTE",
    15: "ULOG_NODE_TERMINATED",
    22: "ULOG_JOB_DISCONNECTED",
    23: "ULOG_JOB_RECONNECTED",
    24: "ULOG_JOB_RECONNECT_FAILED",
    40: "ULOG_FILE_TRANSFER",
}
"""TriggerEventTypeName of event 028, by the number of the other event."""


def _submitted(event: Submitted) -> Ad:
    own: Ad = {"SubmitHost": event.host}
    own |= {name: note for name, note in zip(_NOTES, event.notes, strict=False) if note}
    if event.notes and event.notes[0].startswith(_NODE):
        own["StructuredNotes"] = nested([("DAGNodeName", quoted(event.notes[0].removeprefix(_NODE)))])
    elif event.notes and _is_ad(event.notes[0]):
        own["StructuredNotes"] = Expr(event.notes[0])
    return own


def _is_ad(note: str) -> bool:
    """Whether a note is an ad, as that of `submit_event_notes_attrs`."""
    if not (note.startswith("[") and note.endswith("]")):
        return False
    from kettle.classad import ClassAdParseError, parse
    from kettle.classad.nodes import AdLiteral

    try:
        return isinstance(parse(note), AdLiteral)
    except ClassAdParseError:
        return False


def _cluster_submit(event: ClusterSubmit) -> Ad:
    own: Ad = {"SubmitHost": event.host}
    return own | {name: note for name, note in zip(_NOTES, event.notes, strict=False) if note}


def _cluster_remove(event: ClusterRemove) -> Ad:
    own: Ad = {"NextProcId": event.jobs, "NextRow": event.items, "Completion": event.completion}
    return own | ({"Notes": event.reason} if event.reason else {})


def _paused(event: FactoryPaused) -> Ad:
    own: Ad = {"PauseCode": event.code, "HoldCode": event.hold_code}
    return own | ({"Reason": event.reason} if event.reason else {})


def _executing(event: Executing) -> Ad:
    own: Ad = {"ExecuteHost": event.host}
    if event.slot:
        own["SlotName"] = event.slot
    if event.attributes:
        own["ExecuteProps"] = nested(event.attributes)
    return own


def _checkpointed(event: Checkpointed) -> Ad:
    return {
        "RunRemoteUsage": _times(event.remote),
        "RunLocalUsage": _times(event.local),
        "SentBytes": float(event.sent),
    }


def _evicted(event: Evicted) -> Ad:
    own: Ad = {
        "Checkpointed": event.checkpointed,
        "RunRemoteUsage": _times(event.remote),
        "RunLocalUsage": _times(event.local),
        "SentBytes": float(event.sent),
        "ReceivedBytes": float(event.received),
        "TerminatedAndRequeued": event.requeued is not None,
        "TerminatedNormally": False,
    }
    if event.requeued is not None:
        own |= _exit(event.requeued)
    if event.code is not None:
        own["ReasonCode"] = int(event.code)
    if event.subcode:
        own["ReasonSubCode"] = int(event.subcode)
    if event.reason:
        own["Reason"] = event.reason
    return own | _resources(event.resources)


def _terminated(event: Terminated) -> Ad:
    return {
        **_exit(event.exit),
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


def _image_size(event: ImageSize) -> Ad:
    sizes = {
        "MemoryUsage": event.memory_mib,
        "ResidentSetSize": event.resident_kib,
        "ProportionalSetSize": event.proportional_kib,
    }
    own: Ad = {"Size": event.image_kib}
    return own | {name: size for name, size in sizes.items() if size is not None}


def _held(event: Held) -> Ad:
    own: Ad = {"HoldReasonCode": int(event.code), "HoldReasonSubCode": int(event.subcode)}
    return own | ({"HoldReason": event.reason} if event.reason else {})


def _reason(event: Aborted | Released | FactoryResumed) -> Ad:
    return {"Reason": event.reason} if event.reason else {}


def _disconnected(event: Disconnected) -> Ad:
    return {
        "StartdName": event.slot,
        "StartdAddr": event.host,
        "DisconnectReason": event.reason,
        "EventDescription": "Job disconnected, attempting to reconnect",
    }


def _reconnected(event: Reconnected) -> Ad:
    return {
        "StartdName": event.slot,
        "StartdAddr": event.host,
        "StarterAddr": event.host,
        "EventDescription": "Job reconnected",
    }


def _reconnect_failed(event: ReconnectFailed) -> Ad:
    return {
        "StartdName": event.slot,
        "Reason": event.reason,
        "EventDescription": "Job reconnect impossible: rescheduling job",
    }


def _file_transfer(event: FileTransfer) -> Ad:
    own: Ad = {"Type": event.kind}
    if event.queued is not None:
        own["QueueingDelay"] = event.queued
    return own | ({"Host": event.host} if event.host else {})


_OWN: Final[Mapping[type[LogEvent], Callable[[Any], Ad]]] = {
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
    Generic: lambda event: {"Info": event.info},
    JobAdInformation: lambda event: {
        name: value
        for name, value in event.attributes.items()
        if name not in HEAD or name == "CurrentTime"  # of the job's ad
    },
    ClusterSubmit: _cluster_submit,
    ClusterRemove: _cluster_remove,
    FactoryPaused: _paused,
    FactoryResumed: _reason,
}


def _other(event: Other) -> Ad:
    return dict(event.ad) if event.ad else {"MyType": "FutureEvent", "EventHead": event.lines[0]}


def _exit(ran: ExitRecord) -> Ad:
    if ran.signal is None:
        return {"TerminatedNormally": True, "ReturnValue": ran.code or 0}
    own: Ad = {"TerminatedNormally": False}
    if ran.signal != UNKNOWN_SIGNAL:
        own["TerminatedBySignal"] = ran.signal
    return own | ({"CoreFile": ran.core} if ran.core else {})


def _times(times: CpuTimes) -> str:
    return f"Usr {_clock(times.user)}, Sys {_clock(times.system)}"


def _clock(seconds: int) -> str:
    return f"{seconds // 86400} {seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _resources(table: Sequence[Resource]) -> Ad:
    own: Ad = {}
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


def _cell(text: str) -> Scalar:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text.strip().strip('"')


def nested(members: Sequence[tuple[str, str]]) -> Expr:
    """An ad within an ad, of names and expressions."""
    return Expr(f"[ {'; '.join(f'{name} = {value}' for name, value in members)} ]")


def quoted(text: str) -> str:
    """A text as an expression."""
    from kettle.classad.printing import quoted_string

    return quoted_string(text)
