"""A job as PROMINENCE describes it: its state, why, and how it went.  Pure."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from kettle.jobs.nodes import node_count
from kettle.prominence.instances import HELD, IDENTIFIER, PARAMETERS
from kettle.prominence.job_ads import DOCUMENT, QUEUE_TIME_REASON
from kettle.tasks.sentences import step_sentence
from kettle_services.gateway.prominence.numbers import number_of
from kettle_wire.ads.types import Ad
from kettle_wire.codes import HoldCode
from kettle_wire.leases import CURRENCY, PRICE
from kettle_wire.rest.jobs import Job
from kettle_wire.tasks import STEPS_ATTRIBUTE, Step, StepKind

FIELDS: Final = (
    DOCUMENT,
    IDENTIFIER,
    PARAMETERS,
    STEPS_ATTRIBUTE,
    "CompletionDate",
    "CpusProvisioned",
    "DiskProvisioned",
    "EnteredCurrentStatus",
    "ExitCode",
    "HoldReason",
    "HoldReasonCode",
    "JobStartDate",
    "LastHoldReasonCode",
    "LastRemoteHost",
    "LastRemoteHosts",
    "LastRemoteWallClockTime",
    f"MachineAttr{CURRENCY}0",
    f"MachineAttr{PRICE}0",
    "MemoryProvisioned",
    "NumJobStarts",
    "RemoteHost",
    "RemoteHosts",
    "RemoveReason",
    "ResidentSetSize",
)
"""What of an ad is read."""
ENDED: Final = frozenset({"completed", "failed", "killed", "deleted"})
_HOUR_S: Final = 3600.0
_MIB_PER_GB: Final = 1000
_KIB_PER_GIB: Final = 1024 * 1024
_FAILURES: Final[Mapping[StepKind, str]] = {
    "fetch": "Artifact download failed",
    "pull": "Container image pull failed",
    "send": "Stageout failed",
}

Address = Callable[[str, bool], str]
"""Where a result is fetched, by its name and whether it is a directory; empty: it is not there."""


class Told(msgspec.Struct, frozen=True):
    """The state of a job in PROMINENCE's words."""

    status: str
    reason: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.status in ENDED


def document_of(ad: Ad) -> dict[str, Any]:
    """The document of a job, as it is shown; a DAG job has none of its own."""
    found: dict[str, Any] = json.loads(str(ad.get(DOCUMENT, "{}")))
    return found


def parameters_of(ad: Ad) -> dict[str, str]:
    """The parameters of an instance of a factory."""
    text = ad.get(PARAMETERS)
    return msgspec.json.decode(text, type=dict[str, str]) if isinstance(text, str) else {}


def told(job: Job) -> Told:
    """What became of it, or what it does."""
    ad: Ad = job.attributes or {}
    match job.state:
        case "idle":
            return Told("idle")
        case "running" | "suspended":
            return Told("running")
        case "held":
            return _held(ad.get("HoldReasonCode"), str(ad.get("HoldReason", "")))
        case "removed":
            reason = str(ad.get("RemoveReason", ""))
            if QUEUE_TIME_REASON in reason:
                return Told("failed", QUEUE_TIME_REASON)
            if reason.startswith(HELD):
                return _held(ad.get("LastHoldReasonCode"), reason.removeprefix(HELD))
            return Told("deleted", "Job deleted by user")
        case "completed":
            return _completed(ad, _steps(ad))


def _held(code: object, reason: str) -> Told:
    match code:
        case HoldCode.SpoolingInput:
            return Told("idle")
        case HoldCode.JobOutOfResources:
            return Told("killed", "Job used too much memory")
        case HoldCode.JobExecuteExceeded:
            return Told("killed", "Walltime limit exceeded")
        case _:
            return Told("failed", reason)


def _completed(ad: Ad, steps: Sequence[Step]) -> Told:
    if ad.get("ExitCode") == 0:
        return Told("completed")
    if any(step.kind == "task" and step.outcome == "ended" for step in steps):
        return Told("killed", "Walltime limit exceeded")
    for step in steps:
        if step.kind in _FAILURES and step.outcome in {"failed", "ended"}:
            return Told("failed", f"{_FAILURES[step.kind]}: {step_sentence(step)}")
    return Told("failed", "Executable exited with a non-zero exit code")


def listed(job: Job) -> dict[str, Any]:
    """What a list shows of it."""
    ad: Ad = job.attributes or {}
    document, state = document_of(ad), told(job)
    shown: dict[str, Any] = {
        "id": number_of(job.cluster, job.proc),
        "name": document.get("name", ""),
        "status": state.status,
    }
    if state.reason:
        shown["statusReason"] = state.reason
    if parameters := parameters_of(ad):
        shown["parameters"] = parameters
    return shown | {"tasks": document["tasks"], "events": events_of(job, state)}


def described(job: Job, address: Address) -> dict[str, Any]:
    """All of it; `address`: of each result."""
    ad: Ad = job.attributes or {}
    document, state = document_of(ad), told(job)
    shown = {**document, **listed(job)}
    for name, directory in (("outputFiles", False), ("outputDirs", True)):
        if name in document:
            shown[name] = [{"name": each, "url": address(each, directory)} for each in document[name]]
    if ad.get("JobStartDate") is not None:
        shown["execution"] = _execution(ad, _steps(ad))
    if state.has_ended and isinstance(ad.get("ExitCode"), int):
        shown["exitCode"] = ad["ExitCode"]
    return shown


def events_of(job: Job, state: Told) -> dict[str, int]:
    """When it was submitted, has started and has ended, seconds since the epoch."""
    ad: Ad = job.attributes or {}
    events = {"createTime": int(job.submitted.timestamp())}
    if isinstance(started := ad.get("JobStartDate"), int):
        events["startTime"] = started
    if state.has_ended:
        entered = ad.get("CompletionDate") or ad.get("EnteredCurrentStatus")
        ended: datetime | None = job.left or job.entered
        if isinstance(entered, int) and entered:
            events["endTime"] = entered
        elif ended is not None:
            events["endTime"] = int(ended.timestamp())
    return events


def _steps(ad: Ad) -> list[Step]:
    text = ad.get(STEPS_ATTRIBUTE)
    return msgspec.json.decode(text, type=list[Step]) if isinstance(text, str) else []


def _execution(ad: Ad, steps: Sequence[Step]) -> dict[str, Any]:
    host = str(ad.get("RemoteHost") or ad.get("LastRemoteHost") or "")
    shown: dict[str, Any] = {
        "site": host.partition("@")[2] or host,
        "provisionedResources": {
            "cpus": _amount(ad, "CpusProvisioned"),
            "memory": _amount(ad, "MemoryProvisioned") / _MIB_PER_GB,
            "disk": _amount(ad, "DiskProvisioned") / _KIB_PER_GIB,
            "nodes": _nodes(ad),
        },
    }
    if cost := _cost(ad):
        shown["cost"] = cost
    if memory := _amount(ad, "ResidentSetSize"):
        shown["maxMemoryUsageKB"] = memory
    for name, kind in (("stageInTime", "fetch"), ("stageOutTime", "send")):
        if took := sum(_took(step) for step in steps if step.kind == kind):
            shown[name] = took
    if (retries := _amount(ad, "NumJobStarts") - 1) > 0:
        shown["retries"] = retries
    tasks = sorted({step.task for step in steps if step.kind in {"task", "pull"} and step.task is not None})
    if tasks:
        shown["tasks"] = [_of_task([step for step in steps if step.task == task]) for task in tasks]
    return shown


def _cost(ad: Ad) -> dict[str, Any]:
    """
    What the last attempt that is over cost: its core time at the price of its machine; nothing, if that cost nothing.
    """
    price, took = ad.get(f"MachineAttr{PRICE}0"), ad.get("LastRemoteWallClockTime")
    if not isinstance(price, int | float) or not isinstance(took, int | float):
        return {}
    cores = max(1, _amount(ad, "CpusProvisioned")) * _nodes(ad)
    return {
        "amount": round(price * cores * took / _HOUR_S, 6),
        "currency": str(ad.get(f"MachineAttr{CURRENCY}0", "")),
    }


def _nodes(ad: Ad) -> int:
    """How many it has, or had: one that takes as many as there are says it by its slots."""
    slots = ad.get("RemoteHosts") or ad.get("LastRemoteHosts")
    return slots.count(",") + 1 if isinstance(slots, str) else node_count(ad)


def _amount(ad: Ad, name: str) -> int:
    value = ad.get(name)
    return value if isinstance(value, int) else 0


def _of_task(steps: Sequence[Step]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for step in steps:
        if step.outcome == "begun":
            continue
        match step.kind:
            case "pull":
                status = {"done": "completed", "cached": "cached"}.get(step.outcome, "failed")
                shown |= {"imagePullStatus": status, "imagePullTime": _took(step)}
            case "task":
                shown |= {
                    "exitCode": step.code if step.code is not None else -(step.signal or 1),
                    "retries": step.retry,
                    "wallTimeUsage": _took(step),
                    "cpuTimeUsage": step.user_cpu + step.system_cpu,
                    "maxResidentSetSizeKB": step.memory_kib,
                }
            case _:
                pass
    return shown


def _took(step: Step) -> float:
    return max(0.0, step.ended - step.began)
