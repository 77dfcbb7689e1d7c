"""Events of a workflow as the interface tells them: with names instead of numbers.  Pure."""

from collections.abc import Sequence

from kettle.dag.reuse import reused
from kettle_services.gateway.rest.workflows.choosing import PARTS, STATE_NAMES, moment
from kettle_wire.codes import DagStatus, NodeJobKind, NodeState
from kettle_wire.events.workflow import (
    JobsRemovalOrdered,
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    NodesRemembered,
    NodesReused,
    NodeStep,
    SavePointReached,
    ScriptsDeferred,
    ScriptsOrdered,
    SubmissionsFailed,
    WorkflowAborted,
    WorkflowEnded,
    WorkflowEvent,
    WorkflowHalted,
    WorkflowRemoved,
    WorkflowRerunBegun,
    WorkflowResumed,
    WorkflowStarted,
    WorkflowStopping,
    WorkflowThrottled,
)
from kettle_wire.rest.workflow_views import NodeHappened, NodeJobHappened, WorkflowHappening


def happening(  # noqa: C901, PLR0912 - a case for each event
    number: int, at: float, event: WorkflowEvent, names: Sequence[str]
) -> WorkflowHappening:
    """An event; `number`: how many there are with it; `names`: of the nodes."""
    nodes: list[NodeHappened] = []
    jobs: list[NodeJobHappened] = []
    by = reason = status = ""
    exit_code: int | None = None
    match event:
        case WorkflowStarted():
            by, reason = event.owner, ", ".join(event.files)
        case NodesChanged():
            nodes = [_node(change, names) for change in event.changes]
        case NodeJobsSeen():
            jobs = [_job(fact, event.reasons.get(place, ""), names) for place, fact in enumerate(event.facts)]
        case SubmissionsFailed():
            jobs = [_step(each.step, "not_submitted", each.reason, names) for each in event.failures]
        case ScriptsOrdered():
            jobs = [_step(step, "ordered", "", names) for step in event.steps]
        case ScriptsDeferred():
            jobs = [_step(step, "deferred", "", names) for step in event.steps]
        case JobsRemovalOrdered():
            reason = event.reason
        case WorkflowThrottled() | WorkflowResumed():
            by = event.by
        case WorkflowHalted() | WorkflowRemoved():
            by, reason = event.by, event.reason
        case WorkflowAborted():
            reason, exit_code = f"{names[event.node]} came to {event.value}", event.exit_code
        case WorkflowStopping():
            status, exit_code = DagStatus(event.status).name.lower(), event.exit_code
        case WorkflowEnded():
            status, exit_code, reason = DagStatus(event.status).name.lower(), event.exit_code, event.reason
        case NodesReused():
            jobs = [_step(each.step, "reused", reused(each), names) for each in event.reuses]
        case NodesRemembered():
            jobs = [
                NodeJobHappened(node=names[each.node], job=f"{each.cluster}.0", what="remembered")
                for each in event.memories
            ]
        case SavePointReached():
            reason = names[event.node]
        case WorkflowRerunBegun():
            reason = f"nothing else can run: {len(event.nodes)} nodes that have failed begin again"
    return WorkflowHappening(
        number=number,
        type=str(type(event).__struct_config__.tag),
        at=moment(at),
        nodes=nodes,
        jobs=jobs,
        by=by,
        reason=reason,
        status=status,
        exit_code=exit_code,
    )


def _node(change: NodeChange, names: Sequence[str]) -> NodeHappened:
    state = NodeState(change.state)
    is_futile = state is NodeState.FUTILE
    return NodeHappened(
        node=names[change.node],
        state=STATE_NAMES[state],
        attempt=change.attempt,
        value=0 if is_futile else change.value,
        because=names[change.value] if is_futile else "",
    )


def _job(fact: NodeJobFact, reason: str, names: Sequence[str]) -> NodeJobHappened:
    return NodeJobHappened(
        node=names[fact.step.node],
        job=f"{fact.cluster}" if fact.proc < 0 else f"{fact.cluster}.{fact.proc}",
        what=NodeJobKind(fact.kind).name.lower(),
        part=PARTS[fact.step.part],
        attempt=fact.step.attempt,
        value=fact.value,
        reason=reason,
    )


def _step(step: NodeStep, what: str, reason: str, names: Sequence[str]) -> NodeJobHappened:
    """Of a job that has no number."""
    return NodeJobHappened(
        node=names[step.node], job="", what=what, part=PARTS[step.part], attempt=step.attempt, reason=reason
    )
