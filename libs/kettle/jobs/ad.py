"""
The job ad: changed by each event of the job.  `kettle.jobs.submitted_ad` makes it.

Pure.  Times in ads are whole seconds since the epoch, as HTCondor's tools expect them; durations are reals.
An ad made by `job_ad` spells the attributes that `apply` knows in one way, so `apply` finds them without folding case.
"""

import math
from collections.abc import Mapping
from typing import Final, assert_never, cast, get_args

import msgspec

from kettle.jobs.reason_codes import counted
from kettle.jobs.transfer_statistics import transfer_statistics
from kettle.jobs.usage_attributes import measures
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.attempts import ExitRecord, Usage
from kettle_wire.codes import HoldCode, JobStatus, Universe, VacateCode
from kettle_wire.events.job import (
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDeferred,
    JobDisconnected,
    JobEdited,
    JobEvent,
    JobHeld,
    JobKept,
    JobLeft,
    JobNodeEnded,
    JobNodeStarted,
    JobOrdered,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobRouted,
    JobServed,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobTold,
    JobUnrouted,
    JobVacated,
)
from kettle_wire.flocking import pool_of
from kettle_wire.tasks import STEPS_ATTRIBUTE

ALWAYS: Final[Mapping[str, Scalar]] = {
    "MyType": "Job",
    "CommittedSlotTime": 0,
    "CommittedSuspensionTime": 0,
    "CommittedTime": 0,
    "CompletionDate": 0,
    "CumulativeRemoteSysCpu": 0.0,
    "CumulativeRemoteUserCpu": 0.0,
    "CumulativeSlotTime": 0.0,
    "CumulativeSuspensionTime": 0,
    "CurrentHosts": 0,
    "ExitStatus": 0,
    "JobStatus": int(JobStatus.IDLE),
    "LastSuspensionTime": 0,
    "NumCkpts": 0,
    "NumHolds": 0,
    "NumJobCompletions": 0,
    "NumJobMatches": 0,
    "NumJobStarts": 0,
    "NumShadowStarts": 0,
    "NumSystemHolds": 0,
    "NumVacates": 0,
    "RemoteSysCpu": 0.0,
    "RemoteUserCpu": 0.0,
    "RemoteWallClockTime": 0.0,
    "TotalSuspensions": 0,
}
"""Only what is recorded later may change these: what a submitter says about them does not count."""

UNLESS_SAID: Final[Mapping[str, Scalar]] = {
    "JobPrio": 0,
    "JobUniverse": int(Universe.VANILLA),
    "MaxHosts": 1,
    "MinHosts": 1,
    "RequestCpus": 1,
}

_RUN: Final = ("RemoteHost", "PublicClaimId", "RemotePool", "RemoteHosts")
_RAN: Final = ("LastRemoteHost", "LastPublicClaimId", "LastRemotePool", "LastRemoteHosts")
_NOT_ALWAYS: Final = ("LastRemotePool", "LastRemoteHosts")
"""A run in the own pool has no other pool, and most have one node."""
_SILENT: Final = ("JobDisconnectedDate", "JobCurrentReconnectAttempt")
_ROUTED: Final = ("RouteName", "RoutedFromJobId", "RoutedToJobId", "UnroutedReason")
_UNDEFINED: Final = Expr("undefined")
_OWN_ID: Final = Expr('strcat(ClusterId, ".", ProcId)')
"""The id of the job whose ad it stands in: the same text for all jobs, so that they are recorded together."""
_HOLD: Final = ("HoldReason", "HoldReasonCode", "HoldReasonSubCode")
_SET_LATER: Final = frozenset({
    *_RUN, *_HOLD, *_SILENT, "BytesRecvd", "BytesSent", "CheckpointNumber", "CpusUsage", "EnteredCurrentStatus",
    "CoreFile", "ExitBySignal", "ExitCode", "ExitSignal", "JobCoolDownExpiration", "JobCoreDumped", "JobCurrentStartDate",
    "JobCurrentStartExecutingDate", "JobLastStartDate", "JobPid", "JobStartDate", "KeptInQueue", "KettleSteps", "LastCkptTime", "LastHoldReason", "LastHoldReasonCode", "LastHoldReasonSubCode", "LastJobLeaseRenewal", "LastJobStatus",
    "LastMatchTime", "LastPublicClaimId", "LastRemoteHost", "LastRemoteHosts", "LastRemotePool", "LastRemoteWallClockTime", "LastVacateTime",
    "NumHoldsByReason", "NumChirpUpdates", "NumEdits", "NumJobCoolDowns", "NumJobReconnects", "NumRouted", "NumVacatesByReason", "ReleaseReason", "RemoveReason", "RouteName", "RoutedFromJobId", "RoutedToJobId", "ShadowBday",
    "SpooledInputBytes", "StageInFinish", "StageInStart", "TransferOutFinished", "UncommittedSuspensionTime", "UnroutedReason", "VacateReason", "VacateReasonCode", "VacateReasonSubCode",
})  # fmt: skip
"""Attributes that no submitter may set, because they record what has happened to the job."""

MEASURED: Final = ("DiskUsage", "ImageSize", "MemoryUsage", "ResidentSetSize")
"""A submitter's guess, until they are measured."""

DEFERRAL: Final = ("DeferralTime", "DeferralWindow")
"""When it starts; of a job that runs by the calendar, what is recorded replaces the first."""

KEPT: Final = frozenset(
    name.lower()
    for name in (*ALWAYS, *_SET_LATER, "ClusterId", "ProcId", "Owner", "GlobalJobId", "QDate", "Managed")
)
"""In lower case, the attributes that only the queue sets."""
LATER: Final = frozenset((*ALWAYS, *_SET_LATER, *MEASURED, "DeferralTime"))
"""
The attributes that `apply` may set, change or take away; it leaves all others as they were submitted, unless the job
itself or somebody has set some: then NumChirpUpdates or NumEdits says so. Of a job that was given a route, NumRouted does.
"""


_Wanted = JobHeld | JobReleased | JobRemoved | JobDeferred | JobKept | JobLeft
_WANTED: Final = frozenset(get_args(_Wanted))


def apply(ad: Ad, event: JobEvent, at_us: int) -> None:
    """
    Change the ad in place as an event recorded at `at_us` changes it.

    A hold or removal is the job's status at once, although its attempt may live on until it is vacated.
    """
    now = at_us // 1_000_000
    if type(event) in _WANTED:  # of a struct, to find that it is none of eight others takes long
        _acted(ad, cast("_Wanted", event), now)
        return
    match event:
        case JobAssigned():
            _assigned(ad, event, now)
        case JobStarted():
            _add(ad, "NumJobStarts", 1)
            ad["JobCurrentStartExecutingDate"] = int(event.at) or now
            ad["JobPid"] = event.pid
        case JobSuspended() | JobContinued() | JobDisconnected() | JobReconnected() | JobCheckpointed():
            _meanwhile(ad, event, now)
        case JobVacated():
            _vacated(ad, event, at_us)
        case JobCompleted():
            _completed(ad, event, at_us)
        case JobTold() | JobStepped():
            _said(ad, event)
        case JobEdited() | JobRouted() | JobUnrouted():
            _set(ad, event)
        case JobOrdered() | JobNodeStarted() | JobNodeEnded() | JobServed():
            pass  # its result is reported when it comes
        case _:
            _acted(ad, event, now)


def _acted(ad: Ad, event: _Wanted, now: int) -> None:
    """What somebody, or a policy, or the calendar wanted."""
    match event:
        case JobHeld():
            _become(ad, JobStatus.HELD, now)
            ad.update({
                "HoldReason": event.reason, "HoldReasonCode": int(event.code), "HoldReasonSubCode": int(event.subcode),
            })  # fmt: skip
            if event.code == HoldCode.SpoolingInput:  # it has never been anything else: nobody counts that
                ad["StageInStart"] = now
                return
            _add(ad, "NumHolds", 1)
            _add(ad, "NumSystemHolds", int(event.code != HoldCode.UserRequest))
            ad["NumHoldsByReason"] = counted(ad.get("NumHoldsByReason"), event.code)
        case JobReleased():
            if ad.get("HoldReasonCode") == HoldCode.SpoolingInput:
                ad["StageInFinish"] = now
            if event.spooled is not None:
                ad["SpooledInputBytes"] = event.spooled
            _no_longer_held(ad)
            _become(ad, JobStatus.IDLE, now)
            ad["ReleaseReason"] = event.reason
        case JobRemoved():
            _no_longer_held(ad)
            _become(ad, JobStatus.REMOVED, now)
            ad["RemoveReason"] = event.reason
        case JobDeferred():
            ad["DeferralTime"] = event.until
        case JobKept():
            ad["KeptInQueue"] = True
        case JobLeft():
            ad.pop("KeptInQueue", None)
        case _:
            assert_never(event)


def ended(ad: Ad) -> bool:
    """
    Whether the job has left the queue: it will not run again, no attempt of it is left, and nothing keeps it.
    """
    return over(ad) and "KeptInQueue" not in ad


def over(ad: Ad) -> bool:
    """Whether it will not run again, and no attempt of it is left."""
    return ad["JobStatus"] in {JobStatus.REMOVED, JobStatus.COMPLETED} and not ad["CurrentHosts"]


def _assigned(ad: Ad, event: JobAssigned, now: int) -> None:
    _become(ad, JobStatus.RUNNING, now)
    if (previous := ad.get("JobCurrentStartDate")) is not None:
        ad["JobLastStartDate"] = previous
    ad.setdefault("JobStartDate", now)
    ad.update(
        {
            "CurrentHosts": 1,
            "JobCurrentStartDate": now,
            "LastJobLeaseRenewal": now,
            "LastMatchTime": now,
            "PublicClaimId": event.claim,
            "RemoteHost": event.slot,
            "ShadowBday": now,
        }
    )
    ad.update(event.notes)
    if event.nodes:
        slots = [event.slot, *(node.slot for node in event.nodes)]
        ad["CurrentHosts"], ad["RemoteHosts"] = len(slots), ",".join(slots)
    if pool := pool_of(event.startd):
        ad["RemotePool"] = pool
    _add(ad, "NumJobMatches", 1)
    _add(ad, "NumShadowStarts", 1)


def _meanwhile(
    ad: Ad,
    event: JobSuspended | JobContinued | JobDisconnected | JobReconnected | JobCheckpointed,
    now: int,
) -> None:
    """What happens to an attempt that goes on."""
    match event:
        case JobSuspended():
            _become(ad, JobStatus.SUSPENDED, now)
            ad["LastSuspensionTime"] = now
            _add(ad, "TotalSuspensions", 1)
        case JobContinued():
            _become(ad, JobStatus.RUNNING, now)
        case JobDisconnected() | JobReconnected():
            _reached(ad, now, again=isinstance(event, JobReconnected))
        case JobCheckpointed():
            _checkpointed(ad, event, now)


def _said(ad: Ad, event: JobTold | JobStepped) -> None:
    """What an attempt says of itself; the steps of the newest one are a JSON list."""
    if isinstance(event, JobTold):
        ad.update(event.attributes)
        _add(ad, "NumChirpUpdates", int(bool(event.attributes)))
        return
    text, known = msgspec.json.encode(event.steps).decode(), ad.get(STEPS_ATTRIBUTE)
    if event.first > 1 and isinstance(known, str):
        text = f"{known[:-1]},{text[1:]}"
    ad[STEPS_ATTRIBUTE] = text


def _set(ad: Ad, event: JobEdited | JobRouted | JobUnrouted) -> None:
    if isinstance(event, JobEdited):
        ad.update(event.attributes)
        _add(ad, "NumEdits", 1)
    else:
        _route(ad, event)


def _route(ad: Ad, event: JobRouted | JobUnrouted) -> None:
    """
    The changes of a route are made, or taken back. As in HTCondor the ad names two jobs, which are one here.

    What a route takes away is `undefined`: who folds only what events change has the submitted value elsewhere.
    """
    for name in event.removed:
        if isinstance(event, JobRouted):
            ad[name] = _UNDEFINED
        else:
            ad.pop(name, None)
    ad.update(event.attributes)
    ad["NumRouted"] = event.number
    for name in _ROUTED:
        ad.pop(name, None)
    if isinstance(event, JobRouted):
        ad.update({"RouteName": event.route, "RoutedFromJobId": _OWN_ID, "RoutedToJobId": _OWN_ID})
    else:
        ad["UnroutedReason"] = event.reason


def _reached(ad: Ad, now: int, *, again: bool) -> None:
    """
    The machine of the attempt is silent from now on, or has answered again; the job counts as running all the time.
    """
    if again:
        _add(ad, "NumJobReconnects", 1)
        _no_longer_silent(ad)
    else:
        ad.update({"JobDisconnectedDate": now, "JobCurrentReconnectAttempt": 1})


def _checkpointed(ad: Ad, event: JobCheckpointed, now: int) -> None:
    """
    As in HTCondor, the first checkpoint has the number 0, and the time allowed for execution starts again.
    """
    _commit(ad, int(event.at) or now)
    _add(ad, "NumCkpts", 1)
    ad["CheckpointNumber"] = int(_number(ad, "NumCkpts")) - 1
    ad["LastCkptTime"] = int(event.at) or now
    ad["TransferOutFinished"] = now
    _add(ad, "BytesSent", float(event.usage.sent))


def _vacated(ad: Ad, event: JobVacated, at_us: int) -> None:
    """Of an attempt that was ended because its job was held or removed, that is the reason."""
    now, status = at_us // 1_000_000, ad["JobStatus"]
    if event.exit is not None:
        exited(ad, event.exit)
        _commit(ad, now)
    if event.ending.code != VacateCode.ReconnectFailed:
        ad["LastJobLeaseRenewal"] = now
    _ended(ad, event.usage, at_us)
    reason: Ad = {
        "VacateReason": event.ending.reason,
        "VacateReasonCode": int(event.ending.code),
        "VacateReasonSubCode": int(event.ending.subcode),
    }
    if status == JobStatus.HELD:
        reason = {f"Vacate{name.removeprefix('Hold')}": ad[name] for name in _HOLD}
    elif status == JobStatus.REMOVED:
        reason |= {"VacateReason": ad["RemoveReason"], "VacateReasonCode": int(VacateCode.JobRemoved)}
    ad.update(reason)
    ad["LastVacateTime"] = now
    if event.cool_down:
        ad["JobCoolDownExpiration"] = now + math.ceil(event.cool_down)
        _add(ad, "NumJobCoolDowns", 1)
    _add(ad, "NumVacates", 1)
    ad["NumVacatesByReason"] = counted(ad.get("NumVacatesByReason"), cast("int", ad["VacateReasonCode"]))
    if status in {JobStatus.RUNNING, JobStatus.SUSPENDED}:
        _become(ad, JobStatus.IDLE, now)


def _completed(ad: Ad, event: JobCompleted, at_us: int) -> None:
    now = at_us // 1_000_000
    exited(ad, event.exit)
    if not event.attempt:  # without a machine
        _become(ad, JobStatus.COMPLETED, now)
        ad["CompletionDate"] = now
        return
    if event.exit.signal is not None:
        ad["JobCoreDumped"] = event.exit.dumped
    if event.exit.core:
        ad["CoreFile"] = event.exit.core
    _commit(ad, now)
    ad["LastJobLeaseRenewal"] = now
    _ended(ad, event.usage, at_us)
    if ad["JobStatus"] == JobStatus.REMOVED:
        return  # it ended while it was being removed: removed is what its owner asked for
    _no_longer_held(ad)
    _become(ad, JobStatus.COMPLETED, now)
    ad["CompletionDate"] = now


def _commit(ad: Ad, until: int) -> None:
    """
    What the attempt has done up to a time is not lost any more: it was saved then, or the program has run to its end.

    Counted from the beginning of the attempt, or from what was saved last.
    """
    time = max(0, until - int(max(_number(ad, "ShadowBday"), _number(ad, "LastCkptTime"))))
    cpus = ad.get("RequestCpus")
    _add(ad, "CommittedTime", time)
    hosts = max(1, int(_number(ad, "CurrentHosts")))
    _add(ad, "CommittedSlotTime", time * hosts * (cpus if isinstance(cpus, int | float) else 1))
    _add(ad, "CommittedSuspensionTime", int(_number(ad, "UncommittedSuspensionTime")))
    ad.pop("UncommittedSuspensionTime", None)


def exited(ad: Ad, ran: ExitRecord) -> None:
    """Change the ad in place: the program has run to its end."""
    ad["ExitBySignal"] = ran.signal is not None
    if ran.signal is not None:
        ad["ExitSignal"] = ran.signal
        ad.pop("ExitCode", None)
    else:
        ad["ExitCode"] = ad["ExitStatus"] = ran.code or 0
        ad.pop("ExitSignal", None)
    _add(ad, "NumJobCompletions", 1)


def _ended(ad: Ad, usage: Usage, at_us: int) -> None:
    """
    The end of an attempt, for any reason.

    Where the worker measured nothing (it was lost), the time since the assignment counts as wall-clock time.
    """
    wall = usage.wall or max(0.0, at_us / 1_000_000 - _number(ad, "ShadowBday"))
    cpus = ad.get("RequestCpus")
    _add(ad, "RemoteWallClockTime", wall)
    hosts = max(1.0, _number(ad, "CurrentHosts"))
    _add(ad, "CumulativeSlotTime", wall * hosts * (cpus if isinstance(cpus, int | float) else 1))
    _add(ad, "CumulativeRemoteUserCpu", usage.user_cpu)
    _add(ad, "CumulativeRemoteSysCpu", usage.system_cpu)
    ad.update(
        {
            "LastRemoteWallClockTime": wall,
            "RemoteUserCpu": usage.user_cpu,
            "RemoteSysCpu": usage.system_cpu,
            "CurrentHosts": 0,
        }
    )
    for name in _NOT_ALWAYS:
        ad.pop(name, None)
    for name, last in zip(_RUN, _RAN, strict=True):
        if (value := ad.pop(name, None)) is not None:
            ad[last] = value
    ad.pop("JobPid", None)
    ad.pop("UncommittedSuspensionTime", None)
    _no_longer_silent(ad)
    _measured(ad, usage)


def _measured(ad: Ad, usage: Usage) -> None:
    ad.update(measures(usage))
    _add(ad, "BytesSent", float(usage.sent))
    _add(ad, "BytesRecvd", float(usage.received))
    if usage.moved is not None:
        ad.update(transfer_statistics(usage.moved))


def _become(ad: Ad, status: JobStatus, now: int) -> None:
    if ad["JobStatus"] == JobStatus.SUSPENDED:
        stood = now - int(_number(ad, "LastSuspensionTime"))
        for name in ("CumulativeSuspensionTime", "UncommittedSuspensionTime"):
            _add(ad, name, stood)
        ad["LastSuspensionTime"] = 0
    ad["LastJobStatus"] = ad["JobStatus"]
    ad["JobStatus"] = int(status)
    ad["EnteredCurrentStatus"] = now


def _no_longer_silent(ad: Ad) -> None:
    for name in _SILENT:
        ad.pop(name, None)


def _no_longer_held(ad: Ad) -> None:
    for name in _HOLD:
        if (value := ad.pop(name, None)) is not None:
            ad[f"Last{name}"] = value


def _number(ad: Ad, name: str) -> float:
    value = ad.get(name, 0)
    return value if isinstance(value, int | float) else 0


def _add(ad: Ad, name: str, amount: float) -> None:
    value = ad.get(name)
    # Ten times for each job: a look at the union takes longer.
    plain = type(value) is int or type(value) is float
    if plain:
        ad[name] = cast("float", value) + amount
    else:
        ad[name] = amount if value is None else _number(ad, name) + amount
