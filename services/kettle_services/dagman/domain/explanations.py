"""Why a node is where it is, in sentences."""

from collections.abc import Iterator

from kettle.dag.reuse import reused
from kettle_services.dagman.domain.decisions import ORDERS
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import NodeJobKind, NodePart, NodeState, NodeValue
from kettle_wire.commands.dagman import NodeExplained

_SHOWN = 5
"""Parents that are named."""
_SOON = "It is about to begin."


def explained(workflow: Workflow, node: int, now: float) -> NodeExplained:
    """What is known of a node, and what it waits for; `now`: seconds since the epoch."""
    part = workflow.parts.get(node)
    cluster = part.cluster if part is not None and part.cluster in workflow.clusters else 0
    return NodeExplained(
        node=workflow.plan.names[node],
        state=workflow.state(node),
        attempt=workflow.attempts[node],
        sentences=_sentences(workflow, node, cluster, now),
        cluster=cluster,
    )


def _sentences(workflow: Workflow, node: int, cluster: int, now: float) -> list[str]:
    names = workflow.plan.names
    state = workflow.state(node)
    if workflow.ended is not None and state in {NodeState.WAITING, NodeState.READY}:
        return ["The workflow is over; the node has not run."]
    match state:
        case NodeState.WAITING:
            return _waiting(workflow, node)
        case NodeState.READY:
            turn = (
                _script_turn(workflow, NodePart.PRE) if node in workflow.plan.pre else _turn(workflow, node)
            )
            return ["All nodes that it waits for have finished.", *turn]
        case NodeState.PRE | NodeState.QUEUED | NodeState.RUNNING | NodeState.POST:
            return _under_way(workflow, node, cluster, now)
        case NodeState.DONE:
            reuse = workflow.reuses.get(node)
            return ["It has finished." if reuse is None else f"It was not run: {reused(reuse)}."]
        case NodeState.SKIPPED:
            return ["Its PRE script said that nothing is to be done."]
        case NodeState.FAILED:
            return _failed(workflow, node)
        case NodeState.FUTILE:
            return [f"It can never run, because {names[workflow.causes[node]]} has failed."]


def _failed(workflow: Workflow, node: int) -> list[str]:
    value = workflow.values.get(node, 0)
    match value:
        case NodeValue.REMOVED:
            reason = workflow.removals.get(node, "")
        case NodeValue.SUBMIT_FAILED:
            reason = workflow.refusals.get(node, "")
        case _:
            reason = ""
    return [f"It has failed: {_value(value)}{f' ({reason})' if reason else ''}."]


def _value(value: int) -> str:
    match value:
        case NodeValue.SUBMIT_FAILED:
            return "its jobs could not be submitted"
        case NodeValue.REMOVED:
            return "a job of it was removed"
        case _ if value < 0:
            return f"signal {-value}"
        case _:
            return f"exit code {value}"


def _waiting(workflow: Workflow, node: int) -> list[str]:
    finished = {NodeState.DONE, NodeState.SKIPPED, NodeState.FAILED}
    left = [each for each in workflow.graph.parents_of(node) if workflow.states[each] not in finished]
    if not left and not workflow.provisioned:
        return ["It waits for the provisioner, which is not ready."]
    if not left:
        return [
            "It comes last, when nothing else runs."
            if node == workflow.plan.final
            else "It waits for nothing."
        ]
    words = [f"{workflow.plan.names[each]} ({workflow.state(each).name.lower()})" for each in left[:_SHOWN]]
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return [f"It waits for {', '.join(words)}{more}."]


def _under_way(workflow: Workflow, node: int, cluster: int, now: float) -> list[str]:
    """A part of the node's attempt runs, is to be run, or is over and the next one waits."""
    part = workflow.parts[node]
    kind = NodePart(part.step.part)
    what = "Its jobs" if kind is NodePart.JOB else f"Its {kind.name} script"
    if node in workflow.deferred:
        return [*_deferred(workflow, node, now)]
    if part.value is not None:
        after_pre = kind is NodePart.PRE and part.value == 0
        turn = _turn(workflow, node) if after_pre else _script_turn(workflow, NodePart.POST)
        ended = "have ended" if kind is NodePart.JOB else "has ended"
        return [f"{what} {ended}; {'its jobs are' if after_pre else 'its POST script is'} next.", *turn]
    if cluster and kind is NodePart.JOB:
        return [f"Its jobs are in the queue as cluster {cluster}."]
    if cluster:
        return [_script_job(workflow, what, cluster)]
    verb = "are" if kind is NodePart.JOB else "is"
    return [
        f"{what} {verb} to be submitted by the process of the DAG job; if that is held, nothing is.",
        f"What is refused is tried again, and {workflow.started.files[0]}.lib.err has the reason.",
    ]


def _deferred(workflow: Workflow, node: int, now: float) -> Iterator[str]:
    step, until = workflow.deferred[node]
    part, left = NodePart(step.part), max(0, until - int(now))
    yield f"Its {part.name} script has asked to be run again, in {left} s (DEFER)."
    if node != workflow.plan.final and (workflow.halted or not left):
        yield from (each for each in _script_turn(workflow, part) if each != _SOON)


def _script_job(workflow: Workflow, what: str, cluster: int) -> str:
    """What the job of a script does; the workflow takes one that cannot be run out of the queue by itself."""
    there = workflow.clusters[cluster]
    if there.removing:
        return f"{what}, job {cluster}.0, is being removed."
    if NodeJobKind.HELD in there.procs.values():
        return f"{what} is held as job {cluster}.0, and the node waits until that is released or removed."
    return f"{what} runs as job {cluster}.0."


def _stopped(workflow: Workflow) -> list[str]:
    """Why nothing of the workflow begins."""
    if workflow.halted:
        return ["The workflow is halted (htcondor dag resume)."]
    if workflow.stop is not None or workflow.stopping is not None:
        return ["The workflow is coming to its end; nothing begins any more."]
    if len(workflow.orders) >= ORDERS:
        return [f"{ORDERS} jobs are to be submitted first, by the process of the DAG job."]
    return []


def _script_turn(workflow: Workflow, part: NodePart) -> list[str]:
    """Why a script that could run does not; POST scripts run also when the workflow is halted."""
    options = workflow.options
    found = _stopped(workflow) if part is NodePart.PRE else []
    most = options.max_pre if part is NodePart.PRE else options.max_post
    if most and workflow.scripts[part] >= most:
        found.append(f"{most} {part.name} scripts run, and that is the most (max{part.name.lower()}).")
    return found or [_SOON]


def _turn(workflow: Workflow, node: int) -> list[str]:
    """Why the jobs of a node that could be submitted are not."""
    if found := _stopped(workflow):
        return found
    options = workflow.options
    category = workflow.plan.categories.get(node, "")
    most = workflow.category_limits.get(category)
    if most is not None and workflow.by_category.get(category, 0) >= most:
        found.append(f"Category {category} is full: {most} of its nodes have jobs in the queue (MAXJOBS).")
    if options.max_jobs and workflow.in_queue >= options.max_jobs:
        found.append(f"{workflow.in_queue} nodes have jobs in the queue, and that is the most (maxjobs).")
    if options.max_idle and workflow.idle_jobs >= options.max_idle:
        found.append(f"{workflow.idle_jobs} jobs of the workflow are idle, and that is the most (maxidle).")
    return found or [_SOON]
