"""Workflows as the tables of jobs have them: by their DAG jobs, whose ads tell how far they are."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from kettle.classad.printing import quoted_string
from kettle_wire.ads.types import Ad
from kettle_wire.codes import DagStatus, Universe
from kettle_wire.rest.jobs import Job
from kettle_wire.rest.workflows import Workflow, WorkflowJobs, WorkflowStateName

_IS_ONE: Final = f"JobUniverse == {Universe.SCHEDULER:d} && MY.OtherJobRemoveRequirements =!= undefined"
_HALTED: Final = f"MY.DAG_Status =?= {DagStatus.HALTED:d}"
_OVER: Final = "(JobStatus == 4 || JobStatus == 3 && CompletionDate > 0)"
"""It has ended by itself; a job that stays in its queue then is removed in the end."""
_STATES: Final[dict[WorkflowStateName, str]] = {
    "waiting": "JobStatus == 1",
    "running": f"JobStatus == 2 && !({_HALTED})",
    "halted": f"JobStatus == 2 && {_HALTED}",
    "held": "JobStatus == 5",
    "done": f"{_OVER} && ExitCode =?= 0",
    "failed": f"{_OVER} && ExitCode =!= 0",
    "removed": "JobStatus == 3 && (CompletionDate > 0) =!= true",
}
_ENDED: Final = frozenset({"done", "failed", "removed"})
_COUNTS: Final = {
    "waiting": "DAG_NodesUnready",
    "ready": "DAG_NodesReady",
    "pre": "DAG_NodesPrerun",
    "queued": "DAG_NodesQueued",
    "post": "DAG_NodesPostrun",
    "done": "DAG_NodesDone",
    "failed": "DAG_NodesFailed",
    "futile": "DAG_NodesFutile",
}
_JOBS: Final = ("DAG_JobsIdle", "DAG_JobsRunning", "DAG_JobsHeld")
FIELDS: Final = (
    *_COUNTS.values(),
    *_JOBS,
    "DAG_Status",
    "DAG_NodesTotal",
    "JobBatchName",
    "JobStartDate",
    "CompletionDate",
    "RemoveReason",
)
"""Attributes of DAG jobs that are looked at."""


def filter_of(states: Sequence[WorkflowStateName], name: str) -> str:
    """The filter of lists of jobs that finds them."""
    parts = [_IS_ONE]
    if states:
        parts.append("(" + " || ".join(f"({_STATES[state]})" for state in states) + ")")
    if name:
        parts.append(f"regexp({quoted_string(re.escape(name))}, JobBatchName, {quoted_string('i')})")
    return " && ".join(parts)


def may_have_left(states: Sequence[WorkflowStateName]) -> bool:
    """Whether workflows in one of these states may have left their queue."""
    return not states or not _ENDED.isdisjoint(states)


def of_job(job: Job) -> Workflow:
    """The workflow of a DAG job."""
    ad = job.attributes or {}
    idle, running, held = (_number(ad, name) for name in _JOBS)
    counts = {state: count for state, name in _COUNTS.items() if (count := _number(ad, name))}
    known = "DAG_NodesTotal" in ad
    name = ad.get("JobBatchName")
    state = _state(job, ad)
    return Workflow(
        id=f"{job.cluster}@{job.schedd}",
        schedd=job.schedd,
        cluster=job.cluster,
        owner=job.owner,
        name=name if isinstance(name, str) else "",
        state=state,
        submitted=job.submitted,
        ended=_ended(job, ad) if state in _ENDED else None,
        nodes=_number(ad, "DAG_NodesTotal"),
        counts=counts,
        jobs=WorkflowJobs(idle, running, held) if known and state not in _ENDED else None,
        reason=job.hold_reason or _removed_because(state, ad),
        exit_code=job.exit_code,
    )


def _state(job: Job, ad: Ad) -> WorkflowStateName:
    match job.state:
        case "idle":
            return "waiting"
        case "held":
            return "held"
        case "removed" if not _number(ad, "CompletionDate"):
            return "removed"
        case "removed" | "completed":
            return "done" if job.exit_code == 0 else "failed"
        case _:
            return "halted" if ad.get("DAG_Status") == DagStatus.HALTED else "running"


def _ended(job: Job, ad: Ad) -> datetime | None:
    if job.state == "removed" and (completed := _number(ad, "CompletionDate")):
        return datetime.fromtimestamp(completed, UTC)
    return job.left or job.entered


def _removed_because(state: WorkflowStateName, ad: Ad) -> str:
    reason = ad.get("RemoveReason")
    return reason if state == "removed" and isinstance(reason, str) else ""


def _number(ad: Ad, name: str) -> int:
    value = ad.get(name)
    return value if isinstance(value, int) else 0
