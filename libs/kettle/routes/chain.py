"""What each station of a compute entrypoint calls a job, and how far it is: read from its one ad."""

from enum import StrEnum
from typing import Final

import msgspec

from kettle.classad.printing import quoted_string
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus

CHAIN: Final = (
    "ClusterId",
    "ProcId",
    "GlobalJobId",
    "JobStatus",
    "AwaitsRoute",
    "UnroutedReason",
    "RouteName",
    "GridResource",
    "GridJobId",
    "GridJobStatus",
    "RemoteHost",
    "LastRemoteHost",
    "HoldReason",
    "RemoveReason",
    "ExitCode",
    "ExitBySignal",
    "ExitSignal",
    "QDate",
    "EnteredCurrentStatus",
)
"""The attributes of an ad that say it."""


class ChainState(StrEnum):
    """How far a job is."""

    RECEIVED = "received"
    """It has no route yet."""
    ROUTED = "routed"
    """It has a route, and is nowhere else yet."""
    QUEUED = "queued"
    """It waits in the batch system."""
    RUNNING = "running"
    STOPPED = "stopped"
    """It is held or suspended."""
    ENDED = "ended"
    LOST = "lost"
    """Its batch system has not said what became of it, and does not know it any more."""


class JobChain(msgspec.Struct, frozen=True, kw_only=True):
    """A job at all its stations."""

    id: str
    """As its access point calls it."""
    global_id: str = ""
    state: ChainState
    outcome: str = ""
    """Of one that has ended: `completed` or `removed`."""
    reason: str = ""
    """Why it has no route, is held or was removed."""
    exit_code: int | None = None
    """Of one that has ended; null: not known."""
    route: str = ""
    resource: str = ""
    """Where its route leads; empty: to this pool."""
    grid_id: str = ""
    """As HTCondor writes what the batch system calls it."""
    batch_id: str = ""
    """What the batch system calls it."""
    host: str = ""
    """Where it runs or ran."""
    submitted: int = 0
    """Seconds since the epoch."""
    since: int = 0
    """Since when it is in its status, seconds since the epoch."""


_STATES: Final = {
    JobStatus.RUNNING: ChainState.RUNNING,
    JobStatus.TRANSFERRING_OUTPUT: ChainState.RUNNING,
    JobStatus.REMOVED: ChainState.ENDED,
    JobStatus.COMPLETED: ChainState.ENDED,
    JobStatus.HELD: ChainState.STOPPED,
    JobStatus.SUSPENDED: ChainState.STOPPED,
}
UNKNOWN_END: Final = "UNKNOWN"
"""GridJobStatus of a job of which its batch system does not say how it ended."""
_AT_BATCH_SYSTEM: Final = {
    "QUEUED": ChainState.QUEUED,
    "HELD": ChainState.QUEUED,
    "RUNNING": ChainState.RUNNING,
    "SUSPENDED": ChainState.STOPPED,
}


def chain_of(ad: Ad) -> JobChain:
    """What the ad of a job says of its stations."""
    status = _number(ad, "JobStatus")
    grid_id = _text(ad, "GridJobId")
    ended = status in {JobStatus.REMOVED, JobStatus.COMPLETED}
    outcome = ("removed" if status == JobStatus.REMOVED else "completed") if ended else ""
    code = ad.get("ExitCode")
    return JobChain(
        id=f"{_number(ad, 'ClusterId')}.{_number(ad, 'ProcId')}",
        global_id=_text(ad, "GlobalJobId"),
        state=_state(ad, status),
        outcome=outcome,
        reason=_reason(ad, status),
        exit_code=code if ended and isinstance(code, int) and ad.get("ExitBySignal") is not True else None,
        route=_text(ad, "RouteName"),
        resource=_text(ad, "GridResource"),
        grid_id=grid_id,
        batch_id=grid_id.rpartition("/")[2],
        host=_text(ad, "RemoteHost") or _text(ad, "LastRemoteHost"),
        submitted=_number(ad, "QDate"),
        since=_number(ad, "EnteredCurrentStatus"),
    )


def chain_condition(text: str) -> str:
    """An expression that is true of the job that any of its stations calls so."""
    whole, ends = quoted_string(text), f'substr(GridJobId ?: "", -{len(text) + 1})'
    return (
        f"GlobalJobId == {whole} || GridJobId == {whole}"
        f" || {ends} == {quoted_string('/' + text)} || {ends} == {quoted_string(' ' + text)}"
    )


def _state(ad: Ad, status: int) -> ChainState:
    if status == JobStatus.HELD and _text(ad, "GridJobStatus") == UNKNOWN_END:
        return ChainState.LOST
    if (state := _STATES.get(JobStatus(status) if status in set(JobStatus) else JobStatus.IDLE)) is not None:
        return state
    if ad.get("AwaitsRoute") is True and not _text(ad, "RouteName"):
        return ChainState.RECEIVED
    return _AT_BATCH_SYSTEM.get(_text(ad, "GridJobStatus"), ChainState.ROUTED)


def _reason(ad: Ad, status: int) -> str:
    match status:
        case JobStatus.HELD:
            return _text(ad, "HoldReason")
        case JobStatus.REMOVED:
            return _text(ad, "RemoveReason")
        case JobStatus.IDLE:
            return _text(ad, "UnroutedReason")
        case _:
            return ""


def _text(ad: Ad, name: str) -> str:
    value = ad.get(name, "")
    return value if isinstance(value, str) else ""


def _number(ad: Ad, name: str) -> int:
    value = ad.get(name, 0)
    return value if isinstance(value, int) else 0
