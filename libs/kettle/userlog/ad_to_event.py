"""
From the ad of an event to the event: what stands in a log in XML or JSON.

Ads of other numbers, and those without what the event must have, are kept as they are.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kettle.userlog.event_to_ad import HEAD
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
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

_TIMES: Final = re.compile(r"Usr (\d+) (\d+):(\d+):(\d+), Sys (\d+) (\d+):(\d+):(\d+)")
_UNITS: Final = {
    "Disk": "Disk (KB)",
    "Memory": "Memory (MB)",
    "Gpus": "Gpus (Average)",
    "GpusMemory": "GpusMemory (MB)",
    "TimeExecute": "TimeExecute (s)",
    "TimeSlotBusy": "TimeSlotBusy (s)",
}
_RUSAGE: Final = frozenset({"RunRemote", "RunLocal", "TotalRemote", "TotalLocal"})


def from_ad(ad: Ad, at: float) -> LogEvent:
    """
    The event of an ad, which happened at `at`; raises KeyError or TypeError if it does not say of which job it is.
    """
    job, number = JobId(_whole(ad["Cluster"]), _whole(ad["Proc"])), _whole(ad["EventTypeNumber"])
    known: dict[str, Any] = {"job": job, "at": at}
    reader = _READERS.get(number)
    if reader is not None:
        try:
            return reader(known, ad)
        except (KeyError, TypeError):
            pass  # it lacks what such an event has: it is shown as it is
    ids = f"{job.cluster:03d}.{job.proc:03d}.{_whole(ad.get('Subproc', 0)):03d}"
    return Other(**known, kind=number, ids=ids, lines=[_text(ad.get("EventHead", ""))], ad=_own(ad))


def _own(ad: Ad) -> Ad:
    kept = {name: value for name, value in ad.items() if name not in HEAD}
    return kept | {"MyType": ad["MyType"]} if "MyType" in ad else kept


def _submitted(known: Mapping[str, Any], ad: Ad) -> LogEvent:
    return Submitted(**known, host=_text(ad.get("SubmitHost", "")), notes=_notes(ad))


def _notes(ad: Ad) -> list[str]:
    notes = [_text(ad.get(name, "")) for name in ("LogNotes", "UserNotes", "Warnings")]
    while notes and not notes[-1]:
        notes.pop()
    return notes


def _executing(known: Mapping[str, Any], ad: Ad) -> LogEvent:
    from kettle.classad import ClassAd
    from kettle.classad.long_form import long_text

    properties = ad.get("ExecuteProps")
    members = ClassAd.parse(properties.expr) if isinstance(properties, Expr) else ClassAd()
    return Executing(
        **known,
        host=_text(ad.get("ExecuteHost", "")),
        slot=_text(ad.get("SlotName", "")),
        attributes=[(name, long_text(members, name)) for name in members],
    )


def _checkpointed(known: Mapping[str, Any], ad: Ad) -> LogEvent:
    sent = _whole(ad.get("SentBytes", 0))
    return Checkpointed(
        **known, remote=_times(ad, "RunRemoteUsage"), local=_times(ad, "RunLocalUsage"), sent=sent
    )


def _evicted(known: Mapping[str, Any], ad: Ad) -> LogEvent:
    code = ad.get("ReasonCode")
    return Evicted(
        **known,
        code=None if code is None else _whole(code),
        subcode=_whole(ad.get("ReasonSubCode", 0)),
        checkpointed=ad.get("Checkpointed") is True,
        requeued=_exit(ad) if ad.get("TerminatedAndRequeued") is True else None,
        remote=_times(ad, "RunRemoteUsage"),
        local=_times(ad, "RunLocalUsage"),
        sent=_whole(ad.get("SentBytes", 0)),
        received=_whole(ad.get("ReceivedBytes", 0)),
        reason=_text(ad.get("Reason", "")),
        resources=_resources(ad),
    )


def _terminated(known: Mapping[str, Any], ad: Ad) -> LogEvent:
    return Terminated(
        **known,
        exit=_exit(ad),
        run_remote=_times(ad, "RunRemoteUsage"),
        run_local=_times(ad, "RunLocalUsage"),
        total_remote=_times(ad, "TotalRemoteUsage"),
        total_local=_times(ad, "TotalLocalUsage"),
        sent=_whole(ad.get("SentBytes", 0)),
        received=_whole(ad.get("ReceivedBytes", 0)),
        total_sent=_whole(ad.get("TotalSentBytes", 0)),
        total_received=_whole(ad.get("TotalReceivedBytes", 0)),
        resources=_resources(ad),
    )


def _image_size(known: Mapping[str, Any], ad: Ad) -> LogEvent:
    names = {
        "memory_mib": "MemoryUsage",
        "resident_kib": "ResidentSetSize",
        "proportional_kib": "ProportionalSetSize",
    }
    sizes: dict[str, Any] = {field: _whole(ad[name]) for field, name in names.items() if name in ad}
    return ImageSize(**known, image_kib=_whole(ad["Size"]), **sizes)


def _held(known: Mapping[str, Any], ad: Ad) -> LogEvent:
    return Held(
        **known,
        reason=_text(ad.get("HoldReason", "")),
        code=_whole(ad.get("HoldReasonCode", 0)),
        subcode=_whole(ad.get("HoldReasonSubCode", 0)),
    )


def _cluster_remove(known: Mapping[str, Any], ad: Ad) -> LogEvent:
    return ClusterRemove(
        **known,
        jobs=_whole(ad["NextProcId"]),
        items=_whole(ad["NextRow"]),
        completion=_whole(ad.get("Completion", 1)),
        reason=_text(ad.get("Notes", "")),
    )


def _file_transfer(known: Mapping[str, Any], ad: Ad) -> LogEvent:
    queued = ad.get("QueueingDelay")
    return FileTransfer(
        **known,
        kind=_whole(ad["Type"]),
        queued=None if queued is None else _whole(queued),
        host=_text(ad.get("Host", "")),
    )


def _reason(ad: Ad) -> str:
    return _text(ad.get("Reason", ""))


_READERS: Final[Mapping[int, Callable[[Mapping[str, Any], Ad], LogEvent]]] = {
    0: _submitted,
    1: _executing,
    3: _checkpointed,
    4: _evicted,
    5: _terminated,
    6: _image_size,
    8: lambda known, ad: Generic(**known, info=_text(ad["Info"])),
    9: lambda known, ad: Aborted(**known, reason=_reason(ad)),
    10: lambda known, ad: Suspended(**known, processes=_whole(ad.get("NumberOfPIDs", 0))),
    11: lambda known, _: Unsuspended(**known),
    12: _held,
    13: lambda known, ad: Released(**known, reason=_reason(ad)),
    22: lambda known, ad: Disconnected(
        **known,
        slot=_text(ad["StartdName"]),
        host=_text(ad["StartdAddr"]),
        reason=_text(ad.get("DisconnectReason", "")),
    ),
    23: lambda known, ad: Reconnected(**known, slot=_text(ad["StartdName"]), host=_text(ad["StartdAddr"])),
    24: lambda known, ad: ReconnectFailed(**known, slot=_text(ad["StartdName"]), reason=_reason(ad)),
    28: lambda known, ad: JobAdInformation(
        **known, attributes=dict(sorted(ad.items(), key=lambda member: member[0].lower()))
    ),
    35: lambda known, ad: ClusterSubmit(**known, host=_text(ad.get("SubmitHost", "")), notes=_notes(ad)),
    36: _cluster_remove,
    37: lambda known, ad: FactoryPaused(
        **known,
        reason=_reason(ad),
        code=_whole(ad.get("PauseCode", 0)),
        hold_code=_whole(ad.get("HoldCode", 0)),
    ),
    38: lambda known, ad: FactoryResumed(**known, reason=_reason(ad)),
    40: _file_transfer,
}


def _exit(ad: Ad) -> ExitRecord:
    if ad.get("TerminatedNormally") is True:
        return ExitRecord(code=_whole(ad["ReturnValue"]))
    return ExitRecord(signal=_whole(ad["TerminatedBySignal"]), core=_text(ad.get("CoreFile", "")))


def _times(ad: Ad, name: str) -> CpuTimes:
    found = _TIMES.fullmatch(_text(ad[name]))
    if found is None:
        raise TypeError(name)
    numbers = [int(number) for number in found.groups()]
    user, system = (((d * 24 + h) * 60 + m) * 60 + s for d, h, m, s in (numbers[:4], numbers[4:]))
    return CpuTimes(user, system)


def _resources(ad: Ad) -> list[Resource]:
    """The table: what has a usage or a request is a resource."""
    used = {name.removesuffix("Usage") for name in ad if name.endswith("Usage")} - _RUSAGE
    names = used | {name.removeprefix("Request") for name in ad if name.startswith("Request")}
    order = sorted(names, key=lambda name: (name.startswith("Time"), name))
    devices = any(f"Assigned{name}" in ad for name in names)
    return [
        Resource(
            label=_UNITS.get(name, name),
            usage=_cell(ad.get(f"{name}Usage")),
            request=_cell(ad.get(f"Request{name}")),
            allocated=_cell(ad.get(name)),
            assigned=_devices(ad.get(f"Assigned{name}")) if devices else None,
        )
        for name in order
    ]


def _cell(value: Scalar | None) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.2f}"
        case _:
            return str(value)


def _devices(value: Scalar | None) -> str:
    return f'"{value}"' if isinstance(value, str) else ""


def _whole(value: Scalar) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return int(value)


def _text(value: Scalar) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
