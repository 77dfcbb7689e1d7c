"""Jobs that no pool is asked for: those that a job event log tells of, or whose ads are in a file."""

import getpass
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.client.jobs.status import id_of
from kettle_services.condor.arguments.jobs import JobSelection
from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing.queued_jobs import QueuedJobs
from kettle_services.condor.printing.values import AdRow, source_of
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus
from kettle_wire.jobs import JobId

if TYPE_CHECKING:
    from kettle.userlog import LogEvent

_UNKNOWN: Final = "???"
"""The program of a job of which only a log tells: HTCondor writes it so."""


def jobs_in_file(chosen: JobSelection, limit: int, *, log: str = "", ads: str = "") -> QueuedJobs:
    """
    The jobs of a log, or of a file of ads, as a queue.

    Raises ToolError: it cannot be read.
    """
    from kettle_services.condor.printing.queue_table import counted

    every = jobs_of_log(log) if log else ads_of_file(ads)
    found = meant(every, chosen)
    found = found[:limit] if limit else found
    return QueuedJobs(
        head=f"\n\n-- {f'Userlog: {log}' if log else f'Jobads: {ads}'}\n",
        source=source_of(lambda _names: found),
        unmade=[],
        person=_reader(),
        everybody=lambda: counted(every),
    )


def jobs_of_log(path: str) -> list[Ad]:
    """
    The jobs whose submissions are in a log, as they are after its last event.

    Raises ToolError: it cannot be read.
    """
    from kettle.userlog import Submitted, UserLogFormatError, parse

    try:
        events = parse(_text(path))
    except UserLogFormatError as error:
        raise ToolError(f"{path} cannot be read: {error}") from error
    person = _reader()
    jobs: dict[JobId, Ad] = {}
    for event in events:
        if isinstance(event, Submitted):
            jobs[event.job] = _submitted(event, path, person)
        elif (ad := jobs.get(event.job)) is not None:
            _apply(ad, event)
    return list(jobs.values())


def _reader() -> str:
    """Whose jobs they are taken for: a log does not say it, and people read their own."""
    return getpass.getuser()


def ads_of_file(path: str) -> list[Ad]:
    """
    The ads of a file in any form, as `-long`, `-json` and `-xml` print them, or as a history file of HTCondor.

    Raises ToolError: it cannot be read.
    """
    from kettle.classad import ClassAdParseError, read_ads

    try:
        return [ad.to_wire() for ad in read_ads(_text(path))]
    except ClassAdParseError as error:
        raise ToolError(f"{path} cannot be read: {error}") from error


def meant(ads: Iterable[Ad], chosen: JobSelection) -> list[Ad]:
    """Those that were named and meet the condition, as a schedd would choose them."""
    named = bool(chosen.jobs or chosen.clusters or chosen.owners)
    return [
        ad
        for ad in ads
        if (not named or _is_named(ad, chosen))
        and (not chosen.constraint or AdRow(ad).meets(chosen.constraint))
    ]


def _is_named(ad: Ad, chosen: JobSelection) -> bool:
    job = id_of(ad)
    return job in chosen.jobs or job.cluster in chosen.clusters or ad.get("Owner") in chosen.owners


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ToolError(f"Can't open file of job ads: {path}: {error.strerror}") from error


def _submitted(event: "LogEvent", path: str, person: str) -> Ad:
    at, job = int(event.at), event.job
    return {
        "MyType": "Job",
        "ClusterId": job.cluster,
        "ProcId": job.proc,
        "Owner": person,
        "UserLog": path,
        "QDate": at,
        "EnteredCurrentStatus": at,
        "JobStatus": JobStatus.IDLE.value,
        "LastJobStatus": 0,
        "JobPrio": 0,
        "Cmd": _UNKNOWN,
        "ImageSize": 0,
        "CompletionDate": 0,
        "NumJobStarts": 0,
        "RemoteUserCpu": 0.0,
        "RemoteSysCpu": 0.0,
        "RemoteWallClockTime": 0.0,
    }


def _apply(ad: Ad, event: "LogEvent") -> None:
    """What has become of a job by one more event."""
    from kettle.userlog.events import (
        Aborted,
        Evicted,
        Executing,
        Held,
        ImageSize,
        ReconnectFailed,
        Released,
        Suspended,
        Terminated,
        Unsuspended,
    )

    match event:
        case Executing():
            _goes_to(ad, JobStatus.RUNNING, event)
            starts = ad["NumJobStarts"]
            ad["NumJobStarts"] = (starts if isinstance(starts, int) else 0) + 1
            ad["JobCurrentStartDate"] = int(event.at)
            ad["RemoteHost"] = event.slot or event.host
        case Terminated():
            _goes_to(ad, JobStatus.COMPLETED, event)
            ad["CompletionDate"] = int(event.at)
            code, signal = event.exit.code, event.exit.signal
            ad["ExitBySignal"] = code is None
            ad |= {"ExitSignal": signal} if signal is not None else {"ExitCode": code or 0}
            ad |= {
                "RemoteUserCpu": float(event.total_remote.user),
                "RemoteSysCpu": float(event.total_remote.system),
            }
        case Held():
            _goes_to(ad, JobStatus.HELD, event)
            ad |= {
                "HoldReason": event.reason,
                "HoldReasonCode": event.code,
                "HoldReasonSubCode": event.subcode,
            }
        case Aborted():
            _goes_to(ad, JobStatus.REMOVED, event)
            ad["RemoveReason"] = event.reason
        case Evicted() | ReconnectFailed() | Released():
            _goes_to(ad, JobStatus.IDLE, event)
        case Suspended():
            _goes_to(ad, JobStatus.SUSPENDED, event)
        case Unsuspended():
            _goes_to(ad, JobStatus.RUNNING, event)
        case ImageSize():
            ad["ImageSize"] = event.image_kib
            if event.memory_mib is not None:
                ad["MemoryUsage"] = event.memory_mib
        case _:
            pass


def _goes_to(ad: Ad, status: JobStatus, event: "LogEvent") -> None:
    """Another status; the time of a run that has ended counts, and its host is where the job was last."""
    began = ad.get("JobCurrentStartDate")
    if status not in {JobStatus.RUNNING, JobStatus.SUSPENDED} and "RemoteHost" in ad:
        ad["LastRemoteHost"] = ad.pop("RemoteHost")
        earlier = ad["RemoteWallClockTime"]
        if isinstance(began, int) and isinstance(earlier, float):
            ad["LastRemoteWallClockTime"] = event.at - began
            ad["RemoteWallClockTime"] = earlier + event.at - began
    ad["LastJobStatus"] = ad["JobStatus"]
    ad["JobStatus"] = status.value
    ad["EnteredCurrentStatus"] = int(event.at)
