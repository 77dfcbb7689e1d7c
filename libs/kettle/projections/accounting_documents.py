"""
Jobs and attempts that ended, as documents for an accounting store (Elasticsearch, OpenSearch).

Pure.  Fields have the names and types that HTCondor's own exporter (condor_adstash) gives them: those of job ads, and
RecordTime, ScheddName, StartdName, StartdSlot, Status.  A store fixes the type of a field by the first document that has it
and refuses others, and has a limit of fields; so no submitter may decide about either: what is not listed here is left out,
unless the site names it, and then it is text.

The id of a document follows from the log alone: sent twice it is the same document.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from kettle.jobs.attempts import US, EndedAttempt
from kettle_wire.ads.types import Ad, Expr, Scalar

Value: TypeAlias = str | int | float | bool

INDEX: Final = "kettle-jobs"
"""Where records of jobs go if a site does not say otherwise."""
LONGEST: Final = 256
"""
Characters of a text, as condor_adstash cuts it; a store refuses a document with a longer word than it can index.
"""

_DATES: Final = frozenset({
    "CompletionDate", "EnteredCurrentStatus", "JobCurrentStartDate", "JobCurrentStartExecutingDate", "JobLastStartDate",
    "JobStartDate", "LastCkptTime", "LastJobLeaseRenewal", "LastMatchTime", "LastSuspensionTime", "LastVacateTime", "QDate",
    "ShadowBday", "TransferInFinished", "TransferOutFinished",
})  # fmt: skip
"""Seconds since the epoch; 0 is none, and left out."""
_WHOLE: Final = frozenset({
    "BytesRecvd", "BytesSent", "ClusterId", "CommittedSlotTime", "CommittedSuspensionTime", "CommittedTime",
    "CumulativeRemoteSysCpu", "CumulativeRemoteUserCpu", "CumulativeSlotTime", "CumulativeSuspensionTime", "DiskUsage",
    "ExitCode", "ExitSignal", "ExitStatus", "ImageSize", "JobPrio", "JobStatus", "JobUniverse", "LastHoldReasonCode",
    "LastHoldReasonSubCode", "MaxHosts", "MemoryUsage", "MinHosts", "NumCkpts", "NumHolds", "NumJobCompletions",
    "NumJobMatches", "NumJobReconnects", "NumJobStarts", "NumShadowStarts", "NumSystemHolds", "NumVacates", "ProcId",
    "RemoteSysCpu", "RemoteUserCpu", "RemoteWallClockTime", "RequestCpus", "RequestDisk", "RequestGPUs", "RequestMemory",
    "ResidentSetSize", "TotalSubmitProcs", "TotalSuspensions", "VacateReasonCode", "VacateReasonSubCode",
})  # fmt: skip
_REAL: Final = frozenset({"CpusUsage", "LastRemoteWallClockTime"})
_TRUTH: Final = frozenset({"ExitBySignal", "JobCoreDumped"})
_TEXT: Final = frozenset({
    "AccountingGroup", "AcctGroup", "AcctGroupUser", "Args", "Arguments", "Cmd", "ConcurrencyLimits", "ContainerImage",
    "DockerImage", "GlobalJobId", "Iwd", "JobBatchName", "JobDescription", "LastHoldReason", "LastRemoteHost", "MyType", "Owner",
    "ProjectName", "ReleaseReason", "RemoveReason", "ShouldTransferFiles", "User", "VacateReason",
})  # fmt: skip
_FORMS: Final[Mapping[str, str]] = {
    name.lower(): name for name in (*_DATES, *_WHOLE, *_REAL, *_TRUTH, *_TEXT)
}
JOB_FIELDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(_DATES, "date"),
    **dict.fromkeys(_WHOLE, "long"),
    **dict.fromkeys(_REAL, "double"),
    **dict.fromkeys(_TRUTH, "boolean"),
    **dict.fromkeys(_TEXT, "keyword"),
    "RecordTime": "date",
    **dict.fromkeys(("ScheddName", "StartdName", "StartdSlot", "Status"), "keyword"),
}
"""Each field of a job's record with the type that a store is to give it; others are text."""
ATTEMPT_FIELDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RecordTime", "ShadowBday"), "date"),
    **dict.fromkeys(("ClusterId", "ProcId", "RunInstanceId", "VacateReasonCode"), "long"),
    **dict.fromkeys(
        ("CommittedTime", "CumulativeSlotTime", "RemoteCpu", "RemoteWallClockTime", "UnchargedSlotTime"),
        "double",
    ),
    "JobCompleted": "boolean",
    **dict.fromkeys(
        ("AcctGroup", "Owner", "ProjectName", "RemoteHost", "ScheddName", "StartdName"), "keyword"
    ),
}
"""Each field of an attempt's record with its type."""
_NEVER: Final = frozenset({"env", "environment", "claimid", "publicclaimid", "lastpublicclaimid"})
"""Attributes that may contain a secret, and are never sent."""
_STATUS: Final = {3: "Removed", 4: "Completed"}
_LARGEST: Final = (1 << 63) - 1


class Record(msgspec.Struct, frozen=True):
    """One document."""

    id: str
    document: dict[str, Value]


def job_record(ad: Ad, more: Collection[str] = ()) -> Record:
    """
    The record of a job that has left the queue; `more` are names of further attributes, which are kept as text.
    """
    wanted = {name.lower(): name for name in more if name.lower() not in _NEVER}
    document: dict[str, Value] = {}
    for name, value in ad.items():
        folded = name.lower()
        if (known := _FORMS.get(folded)) is not None:
            document |= _typed(known, value)
        elif folded in wanted:
            document[wanted[folded]] = _text(value)
    time = document.get("CompletionDate") or document.get("EnteredCurrentStatus") or 0
    where = str(document.get("LastRemoteHost", "UNKNOWN@UNKNOWN"))
    document |= {
        "RecordTime": time,
        "ScheddName": str(document["GlobalJobId"]).partition("#")[0],
        "StartdSlot": where.partition("@")[0],
        "StartdName": where.rpartition("@")[2],
        "Status": _STATUS.get(int(document["JobStatus"]), "Unknown"),
    }
    return Record(f"{document['GlobalJobId']}#{time}", document)


def attempt_record(schedd: str, one: EndedAttempt) -> Record:
    """The record of an attempt that ended; RunInstanceId counts those of a job, from 1."""
    document: dict[str, Value] = {
        "RecordTime": one.ended // US,
        "ScheddName": schedd,
        "ClusterId": one.job.cluster,
        "ProcId": one.job.proc,
        "RunInstanceId": one.number,
        "Owner": one.owner,
        "StartdName": one.machine,
        "RemoteHost": one.slot,
        "ShadowBday": one.begun // US,
        "RemoteWallClockTime": one.wall / US,
        "CumulativeSlotTime": one.slot_time / US,
        "CommittedTime": one.good / US,
        "RemoteCpu": one.cpu / US,
        "UnchargedSlotTime": one.uncharged / US,
        "VacateReasonCode": int(one.code),
        "JobCompleted": one.completed,
    }
    document |= {
        name: text for name, text in (("AcctGroup", one.group), ("ProjectName", one.project)) if text
    }
    return Record(f"{schedd}#{one.job}#{one.number}", {k: _cut(v) for k, v in document.items()})


def bulk(index: str, records: Iterable[Record]) -> bytes:
    """What is sent: for each record a line that says where it goes, and the record."""
    lines: list[bytes] = []
    for record in records:
        lines.append(msgspec.json.encode({"index": {"_index": index, "_id": record.id}}))
        lines.append(msgspec.json.encode(record.document))
    return b"".join(line + b"\n" for line in lines)


def _typed(name: str, value: Scalar) -> dict[str, Value]:
    """One field, in its own type or, under another name, as text."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if name in _TEXT:
        return {name: _text(value)}
    if name in _TRUTH and isinstance(value, bool):
        return {name: value}
    if number and abs(float(value)) <= _LARGEST:  # type: ignore[arg-type]  # it is a number
        if name in _REAL:
            return {name: float(value)}  # type: ignore[arg-type]  # as above
        whole = int(value)  # type: ignore[arg-type]  # as above
        return {} if name in _DATES and whole == 0 else {name: whole}
    return {f"{name}_{'EXPR' if isinstance(value, Expr) else 'STRING'}": _text(value)}


def _text(value: Scalar) -> str:
    text = value.expr if isinstance(value, Expr) else str(value)
    return str(_cut(text.encode("utf-8", "replace").decode()))


def _cut(value: Value) -> Value:
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[: LONGEST - 3]}..."
    return value
