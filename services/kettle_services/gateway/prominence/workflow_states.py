"""
A workflow as PROMINENCE describes it, by the states of its jobs, or by what its DAG job says of them.  Pure.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kettle.prominence.job_ads import redacted
from kettle.prominence.job_documents import encoded
from kettle_services.gateway.prominence.job_states import ENDED, events_of, told
from kettle_wire.ads.types import Ad
from kettle_wire.prominence.workflow import Workflow
from kettle_wire.rest.jobs import Job
from kettle_wire.workflows import WORKFLOW_FILE

WORKFLOW: Final = "ProminenceWorkflow"
"""Attribute of the first job of a workflow: the document, without secrets and without the content of input files."""
FIRST: Final = "ProminenceWorkflowFirst"
"""Of its first job, by which it is found: filters do not see what is its owner's alone."""
SIZE: Final = "ProminenceWorkflowSize"
"""Attribute of all of its jobs: how many there are."""
WORKFLOW_NAME: Final = "ProminenceWorkflowName"
WORKFLOW_LABEL: Final = "ProminenceWorkflowLabel_"
"""Beginning of the attribute that a label of the workflow is."""
RUNS: Final = "ProminenceWorkflowRuns"
"""Attribute of a DAG job that runs a part of a workflow again: the numbers of the runs before, with commas between."""
_COUNTS: Final = "DAG_Nodes"
"""Beginning of the attributes of a DAG job that say how many of its nodes are where."""
_QUEUED: Final = ("Prerun", "Queued", "Postrun", "Ready")
FIELDS: Final = (
    WORKFLOW,
    SIZE,
    WORKFLOW_FILE,
    RUNS,
    *(f"{_COUNTS}{state}" for state in ("Done", "Failed", *_QUEUED)),
)
"""What of the ads of its jobs is read, besides that of every job."""
_FAILED: Final = frozenset({"failed", "killed"})
_JOBS_FAILED: Final = "One or more jobs failed"


def attributes_of(workflow: Workflow, size: int, *, is_first: bool) -> Ad:
    """Attributes of a job that say that it is of this workflow; only the first has the document."""
    shared: Ad = {
        SIZE: size,
        "JobBatchName": workflow.name or "workflow",
        **{WORKFLOW_LABEL + name: value for name, value in workflow.labels.items()},
    }
    if workflow.name:
        shared[WORKFLOW_NAME] = workflow.name
    if not is_first:
        return shared
    shown = msgspec.structs.replace(workflow, jobs=[redacted(job) for job in workflow.jobs])
    return {**shared, FIRST: True, WORKFLOW: encoded(shown).decode()}


def is_dag(job: Job) -> bool:
    """Whether it is the DAG job of a workflow, and not one of the jobs of one."""
    return isinstance((job.attributes or {}).get(WORKFLOW_FILE), str)


def runs_of(job: Job) -> list[int]:
    """The numbers of all runs of a workflow, this one at the end."""
    return [*runs_said((job.attributes or {}).get(RUNS)), job.cluster]


def runs_said(said: object) -> list[int]:
    """The numbers of earlier runs, as the attribute of a DAG job says them."""
    return [int(each) for each in said.split(",")] if isinstance(said, str) else []


def described(jobs: Sequence[Job]) -> dict[str, Any] | None:
    """
    All of it, with its document; None: that has not been found. `jobs`: of one workflow, by their places, or its DAG job.
    """
    text = (jobs[0].attributes or {}).get(WORKFLOW)
    if not isinstance(text, str):
        return None
    document: dict[str, Any] = json.loads(text)
    shown = _of_dag(jobs[0]) if is_dag(jobs[0]) else _of_group(jobs)
    return {"name": "", **document, "id": jobs[0].cluster, **shown}


def _of_group(jobs: Sequence[Job]) -> dict[str, Any]:
    states = Counter(told(job).status for job in jobs)
    status = status_of(states)
    reason = {"statusReason": _JOBS_FAILED} if status == "failed" else {}
    done, failed = states["completed"], states["failed"] + states["killed"] + states["deleted"]
    progress = {"total": len(jobs), "done": done, "failed": failed, "queued": len(jobs) - done - failed}
    return {
        "status": status,
        **reason,
        "events": _events(jobs, status),
        "progress": progress | {"waiting": 0},
    }


def _of_dag(job: Job) -> dict[str, Any]:
    ad, state = job.attributes or {}, told(job)
    reason = _JOBS_FAILED if state.status == "failed" and ad.get("ExitCode") is not None else state.reason
    total = _amount(ad, SIZE)
    done, failed = _amount(ad, f"{_COUNTS}Done"), _amount(ad, f"{_COUNTS}Failed")
    queued = 0 if state.has_ended else sum(_amount(ad, f"{_COUNTS}{each}") for each in _QUEUED)
    progress = {"total": total, "done": done, "failed": failed, "queued": queued}
    return {
        "status": state.status,
        **({"statusReason": reason} if reason else {}),
        "events": events_of(job, state),
        "progress": progress | {"waiting": max(0, total - done - failed - queued)},
    }


def _amount(ad: Ad, name: str) -> int:
    value = ad.get(name)
    return value if isinstance(value, int) else 0


def status_of(states: Counter[str]) -> str:
    """What a workflow does whose jobs have these states."""
    if states["running"] or (states["idle"] and states.keys() - {"idle"}):
        return "running"
    if states["idle"]:
        return "idle"
    if states.keys() & _FAILED:
        return "failed"
    return "deleted" if states["deleted"] else "completed"


def _events(jobs: Sequence[Job], status: str) -> dict[str, int]:
    events = [events_of(job, told(job)) for job in jobs]
    shown = {"createTime": min(each["createTime"] for each in events)}
    if started := [each["startTime"] for each in events if "startTime" in each]:
        shown["startTime"] = min(started)
    if status in ENDED and (ended := [each["endTime"] for each in events if "endTime" in each]):
        shown["endTime"] = max(ended)
    return shown
