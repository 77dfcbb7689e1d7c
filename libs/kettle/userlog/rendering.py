"""
Log events to text, byte for byte as HTCondor writes them.

Pure but for the zone: a time is shown as the clocks of `zone` show it, by default those of this machine.
"""

from datetime import tzinfo
from functools import lru_cache

from kettle.userlog.event_to_ad import attributes
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
from kettle.userlog.formats import CLASSIC, Form, Format
from kettle.userlog.resource_table import render_table
from kettle.userlog.xml_and_json import document, long_lines, one_line
from kettle_wire.attempts import ExitRecord

TERMINATOR = "..."
FILE_TRANSFERS = (
    "Entered queue to transfer input files",
    "Started transferring input files",
    "Finished transferring input files",
    "Entered queue to transfer output files",
    "Started transferring output files",
    "Finished transferring output files",
)
"""The first lines of event 040, by its kinds from 1 on."""

COMPLETIONS = ("Incomplete", "Complete", "Paused")
"""What event 036 says of how far a cluster came, by its code."""


def render(event: LogEvent, zone: tzinfo | None = None, written: Format = CLASSIC) -> str:
    """
    The text of one event, to its last line.

    Line breaks inside a value become blanks: a reader would take what follows for another line of the event.
    """
    if written.form is not Form.CLASSIC:
        return document(attributes(event, written, zone), written.form)
    first, *rest = body(event)
    if isinstance(event, Other):
        head = f"{event.kind:03d} ({event.ids})"
    else:
        head = f"{event.number:03d} ({event.job.cluster:03d}.{event.job.proc:03d}.000)"
    lines = [f"{head} {written.shown(event.at, zone)} {first}", *rest, TERMINATOR]
    together = "".join(lines)
    if together.splitlines() != [together]:
        lines = [one_line(line) for line in lines]
    return "\n".join(lines) + "\n"


def body(event: LogEvent) -> list[str]:
    """The lines of an event, without the head of the first."""
    match event:
        case Submitted():
            return [f"Job submitted from host: {event.host}", *_noted(event.notes)]
        case Executing():
            slot = [f"\tSlotName: {event.slot}"] if event.slot else []
            attributes = (f"\t{name} = {value}" for name, value in event.attributes)
            return [f"Job executing on host: {event.host}", *slot, *attributes]
        case Evicted() | Terminated() | ImageSize():
            return _measured(event)
        case Aborted() | Suspended() | Unsuspended() | Held() | Released() | Generic():
            return _waiting(event)
        case Checkpointed() | Disconnected() | Reconnected() | ReconnectFailed() | FileTransfer():
            return _meanwhile(event)
        case ClusterSubmit() | ClusterRemove() | FactoryPaused() | FactoryResumed():
            return _of_cluster(event)
        case JobAdInformation():
            return ["Job ad information event triggered.", *long_lines(event.attributes)]
        case Other():
            return event.lines
        case _:
            raise TypeError(f"{type(event).__name__} is not a log event that can be written")


def _measured(event: Evicted | Terminated | ImageSize) -> list[str]:
    match event:
        case Evicted():
            return _evicted(event)
        case Terminated():
            return _terminated(event)
        case ImageSize():
            return _image_size(event)


def _of_cluster(event: ClusterSubmit | ClusterRemove | FactoryPaused | FactoryResumed) -> list[str]:
    match event:
        case ClusterSubmit():
            return [f"Cluster submitted from host: {event.host}", *_noted(event.notes)]
        case ClusterRemove():
            how = (
                COMPLETIONS[event.completion]
                if 0 <= event.completion < len(COMPLETIONS)
                else f"Error {event.completion}"
            )
            made = f"\tMaterialized {event.jobs} jobs from {event.items} items.\t{how}"
            return ["Cluster removed", made, *_indented(event.reason)]
        case FactoryPaused():
            codes = [f"\tPauseCode {event.code}", f"\tHoldCode {event.hold_code}"]
            return ["Job Materialization Paused", f"\t{event.reason}", *codes]
        case FactoryResumed():
            return ["Job Materialization Resumed", *_indented(event.reason)]


def _noted(notes: list[str]) -> list[str]:
    return _deeper([note for note in notes if note])


def _waiting(event: Aborted | Suspended | Unsuspended | Held | Released | Generic) -> list[str]:
    match event:
        case Aborted():
            return ["Job was aborted.", *_indented(event.reason)]
        case Suspended(processes=processes):
            return ["Job was suspended.", f"\tNumber of processes actually suspended: {processes}"]
        case Unsuspended():
            return ["Job was unsuspended."]
        case Held():
            reason = event.reason or "Reason unspecified"
            return ["Job was held.", f"\t{reason}", f"\tCode {event.code} Subcode {event.subcode}"]
        case Released():
            return ["Job was released.", *_indented(event.reason)]
        case Generic():
            return [event.info]


def _meanwhile(
    event: Checkpointed | Disconnected | Reconnected | ReconnectFailed | FileTransfer,
) -> list[str]:
    match event:
        case FileTransfer():
            return _file_transfer(event)
        case Checkpointed():
            return [
                "Job was checkpointed.",
                _times(event.remote, "Run Remote", tabs=1),
                _times(event.local, "Run Local", tabs=1),
                f"\t{event.sent}  -  Run Bytes Sent By Job For Checkpoint",
            ]
        case Disconnected(slot=slot, host=host):
            said = [event.reason, f"Trying to reconnect to {slot} {host}"]
            return ["Job disconnected, attempting to reconnect", *_deeper(said)]
        case Reconnected(slot=slot, host=host):
            return [
                f"Job reconnected to {slot}",
                *_deeper([f"startd address: {host}", f"starter address: {host}"]),
            ]
        case ReconnectFailed(slot=slot):
            said = [event.reason, f"Can not reconnect to {slot}, rescheduling job"]
            return ["Job reconnection failed", *_deeper(said)]


def _file_transfer(event: FileTransfer) -> list[str]:
    return [
        FILE_TRANSFERS[event.kind - 1],
        *([] if event.queued is None else [f"\tSeconds spent in queue: {event.queued}"]),
        *([f"\tTransferring to host: {event.host}"] if event.host else []),
    ]


def _deeper(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _evicted(event: Evicted) -> list[str]:
    if event.requeued is not None:
        how = "(0) Job terminated and was requeued"
    else:
        how = "(1) Job was checkpointed." if event.checkpointed else "(0) CPU times"
    code = "" if event.code is None else f" Code {event.code} Subcode {event.subcode}"
    reason = event.reason if event.requeued is not None or not event.reason else f"Reason: {event.reason}"
    if event.resources and not reason:
        reason = "Reason: unspecified"  # readers take the line before a table for the reason
    return [
        f"Job was evicted.{code}",
        f"\t{how}",
        _times(event.remote, "Run Remote"),
        _times(event.local, "Run Local"),
        f"\t{event.sent}  -  Run Bytes Sent By Job",
        f"\t{event.received}  -  Run Bytes Received By Job",
        *(_exit(event.requeued) if event.requeued is not None else ()),
        *_indented(reason),
        *render_table(event.resources),
    ]


def _terminated(event: Terminated) -> list[str]:
    return [
        "Job terminated.",
        *_exit(event.exit),
        _times(event.run_remote, "Run Remote"),
        _times(event.run_local, "Run Local"),
        _times(event.total_remote, "Total Remote"),
        _times(event.total_local, "Total Local"),
        f"\t{event.sent}  -  Run Bytes Sent By Job",
        f"\t{event.received}  -  Run Bytes Received By Job",
        f"\t{event.total_sent}  -  Total Bytes Sent By Job",
        f"\t{event.total_received}  -  Total Bytes Received By Job",
        *render_table(event.resources),
        *(("", f"\t{event.ticket}") if event.ticket else ()),
    ]


def _image_size(event: ImageSize) -> list[str]:
    known = (
        (event.memory_mib, "MemoryUsage of job (MB)"),
        (event.resident_kib, "ResidentSetSize of job (KB)"),
        (event.proportional_kib, "ProportionalSetSize of job (KB)"),
    )
    return [
        f"Image size of job updated: {event.image_kib}",
        *(f"\t{value}  -  {what}" for value, what in known if value is not None),
    ]


def _exit(ran: ExitRecord) -> list[str]:
    if ran.signal is None:
        return [f"\t(1) Normal termination (return value {ran.code})"]
    core = f"\t(1) Corefile in: {ran.core}" if ran.core else "\t(0) No core file"
    return [f"\t(0) Abnormal termination (signal {ran.signal})", core]


def _indented(text: str) -> list[str]:
    return [f"\t{text}"] if text else []


def _times(times: CpuTimes, what: str, *, tabs: int = 2) -> str:
    return "\t" * tabs + f"Usr {_clock(times.user)}, Sys {_clock(times.system)}  -  {what} Usage"


@lru_cache(maxsize=1024)
def _clock(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    return f"{day} {hour:02d}:{minute:02d}:{second:02d}"
