"""
What the job event log of the nodes says that none of their jobs does: events 016 and 034, of scripts.

Pure.  The events of the jobs come into that log as into any other, by the shadow's projection.
"""

from collections.abc import Iterator
from datetime import tzinfo

from kettle.dag.files.progress import Progress
from kettle.userlog import Other, render
from kettle_wire.codes import NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import NodeJobsSeen, NodesChanged, WorkflowEvent
from kettle_wire.jobs import JobId

POST_SCRIPT_TERMINATED = 16
SKIPPED_BY_PRE_SCRIPT = 34


def script_events(
    progress: Progress, at: float, event: WorkflowEvent, zone: tzinfo | None = None
) -> Iterator[str]:
    """The texts of the events that one event of the workflow means."""
    match event:
        case NodeJobsSeen():
            for fact in event.facts:
                if fact.step.part == NodePart.POST and fact.kind == NodeJobKind.COMPLETED:
                    how = (
                        f"\t(0) Abnormal termination (signal {-fact.value})"
                        if fact.value < 0
                        else f"\t(1) Normal termination (return value {fact.value})"
                    )
                    lines = ["POST Script terminated.", how]
                    yield _text(progress, at, fact.step.node, POST_SCRIPT_TERMINATED, lines, zone)
        case NodesChanged():
            for change in event.changes:
                if change.state == NodeState.SKIPPED:
                    lines = ["PRE script return value is PRE_SKIP value"]
                    yield _text(progress, at, change.node, SKIPPED_BY_PRE_SCRIPT, lines, zone)
        case _:
            pass


def _text(progress: Progress, at: float, node: int, kind: int, lines: list[str], zone: tzinfo | None) -> str:
    cluster = progress.clusters.get(node, 0)
    of_node = f"    DAG Node: {progress.plan.names[node]}"
    event = Other(
        job=JobId(cluster, 0), at=at, kind=kind, ids=f"{cluster:03d}.000.000", lines=[*lines, of_node]
    )
    return render(event, zone)
