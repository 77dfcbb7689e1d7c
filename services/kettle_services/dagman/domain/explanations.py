"""Why a node is where it is, in sentences."""

from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import NodeState, NodeValue
from kettle_wire.commands.dagman import NodeExplained

_SHOWN = 5
"""Parents that are named."""


def explained(workflow: Workflow, node: int) -> NodeExplained:
    """What is known of a node, and what it waits for."""
    part = workflow.parts.get(node)
    cluster = part.cluster if part is not None and part.cluster in workflow.clusters else 0
    return NodeExplained(
        node=workflow.plan.names[node],
        state=workflow.state(node),
        attempt=workflow.attempts[node],
        sentences=_sentences(workflow, node, cluster),
        cluster=cluster,
    )


def _sentences(workflow: Workflow, node: int, cluster: int) -> list[str]:
    names = workflow.plan.names
    state = workflow.state(node)
    if workflow.ended is not None and state in {NodeState.WAITING, NodeState.READY}:
        return ["The workflow is over; the node has not run."]
    match state:
        case NodeState.WAITING:
            return _waiting(workflow, node)
        case NodeState.READY:
            return ["All nodes that it waits for have finished.", *_turn(workflow, node)]
        case NodeState.PRE | NodeState.POST:
            return [
                f"Its {state.name} script runs as job {cluster}.0."
                if cluster
                else f"Its {state.name} script is to be run.",
                *(
                    _turn(workflow, node)
                    if not cluster and node not in {step.node for step in workflow.orders}
                    else []
                ),
            ]
        case NodeState.QUEUED | NodeState.RUNNING:
            if cluster:
                return [f"Its jobs are in the queue as cluster {cluster}."]
            return [
                "Its jobs are to be submitted by the process of the DAG job; if that is held, they wait.",
                f"If they are refused it tries again, and {workflow.started.files[0]}.lib.err has the reason.",
            ]
        case NodeState.DONE | NodeState.SKIPPED:
            return [
                "It has finished."
                if state is NodeState.DONE
                else "Its PRE script said that nothing is to be done."
            ]
        case NodeState.FAILED:
            return _failed(workflow, workflow.values.get(node, 0))
        case NodeState.FUTILE:
            return [f"It can never run, because {names[workflow.causes[node]]} has failed."]


def _failed(workflow: Workflow, value: int) -> list[str]:
    said = [f"It has failed: {_value(value)}."]
    if value == NodeValue.SUBMIT_FAILED:
        said.append(f"The reason is in {workflow.started.files[0]}.dagman.out.")
    return said


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


def _turn(workflow: Workflow, node: int) -> list[str]:
    """Why a node that could go on does not."""
    options = workflow.options
    if workflow.halted:
        return ["The workflow is halted."]
    if workflow.stop is not None or workflow.stopping is not None:
        return ["The workflow is coming to its end; nothing begins any more."]
    found: list[str] = []
    category = workflow.plan.categories.get(node, "")
    most = workflow.category_limits.get(category)
    if most is not None and workflow.by_category.get(category, 0) >= most:
        found.append(f"Category {category} is full: {most} of its nodes have jobs in the queue (MAXJOBS).")
    if options.max_jobs and workflow.in_queue >= options.max_jobs:
        found.append(f"{workflow.in_queue} nodes have jobs in the queue, and that is the most (maxjobs).")
    if options.max_idle and workflow.idle_jobs >= options.max_idle:
        found.append(f"{workflow.idle_jobs} jobs of the workflow are idle, and that is the most (maxidle).")
    for part, limit in enumerate((options.max_pre, 0, options.max_post)):
        if limit and workflow.scripts[part] >= limit:
            found.append(f"{limit} {('PRE', '', 'POST')[part]} scripts run, and that is the most.")
    return found or ["It is about to begin."]
