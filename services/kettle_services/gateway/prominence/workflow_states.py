"""A workflow as PROMINENCE describes it, by the states of its jobs.  Pure."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from kettle_services.gateway.prominence.job_states import listed, told
from kettle_wire.rest.jobs import Job

WORKFLOW: Final = "ProminenceWorkflow"
"""Attribute of the first job of a workflow: the document, without secrets and without the content of input files."""
FIRST: Final = "ProminenceWorkflowFirst"
"""Of its first job, by which it is found: filters do not see what is its owner's alone."""
SIZE: Final = "ProminenceWorkflowSize"
"""Attribute of all of its jobs: how many there are."""
WORKFLOW_NAME: Final = "ProminenceWorkflowName"
WORKFLOW_LABEL: Final = "ProminenceWorkflowLabel_"
"""Beginning of the attribute that a label of the workflow is."""
_FAILED: Final = frozenset({"failed", "killed"})


def described(jobs: Sequence[Job]) -> dict[str, Any] | None:
    """
    All of it, with its document; None: that has not been found. `jobs`: of one workflow, by their places.
    """
    text = (jobs[0].attributes or {}).get(WORKFLOW)
    if not isinstance(text, str):
        return None
    document: dict[str, Any] = json.loads(text)
    states = Counter(told(job).status for job in jobs)
    status = status_of(states)
    shown: dict[str, Any] = {"name": "", **document, "id": jobs[0].cluster, "status": status}
    if status == "failed":
        shown["statusReason"] = "One or more jobs failed"
    done, failed = states["completed"], states["failed"] + states["killed"] + states["deleted"]
    progress = {"total": len(jobs), "done": done, "failed": failed, "queued": len(jobs) - done - failed}
    return shown | {"events": _events(jobs, status), "progress": progress | {"waiting": 0}}


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
    events = [listed(job)["events"] for job in jobs]
    shown = {"createTime": min(each["createTime"] for each in events)}
    if started := [each["startTime"] for each in events if "startTime" in each]:
        shown["startTime"] = min(started)
    if status not in {"idle", "running"} and (
        ended := [each["endTime"] for each in events if "endTime" in each]
    ):
        shown["endTime"] = max(ended)
    return shown
