"""What became of nodes, folded from events, and how two runs differ."""

import pytest

from kettle.dag.node_runs import NodeRun, differences, node_runs
from kettle_wire.codes import NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import (
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    NodeStep,
    WorkflowEvent,
    WorkflowStarted,
)
from kettle_wire.workflows import Plan, WorkflowOptions, packed


def seen(attempt: int, kind: NodeJobKind, value: int = 0, part: NodePart = NodePart.JOB) -> WorkflowEvent:
    """Something of the job of node 0."""
    step = NodeStep(0, attempt, part)
    return NodeJobsSeen(frame=1, facts=[NodeJobFact(step, 10 + attempt, 0, kind, value)])


def changed(state: NodeState, attempt: int = 0, value: int = 0) -> WorkflowEvent:
    """Node 0 comes into a state."""
    return NodesChanged(changes=[NodeChange(0, state, attempt, value)])


def test_the_last_attempt_counts() -> None:
    """
    With the time of its jobs alone: neither that of its scripts nor that of waiting; a node that was done
    before took none.
    """
    happened = [
        changed(NodeState.READY),
        seen(0, NodeJobKind.STARTED, part=NodePart.PRE),
        seen(0, NodeJobKind.SUBMITTED, 1),
        seen(0, NodeJobKind.STARTED),
        seen(0, NodeJobKind.COMPLETED, 3),
        changed(NodeState.READY, 1),
        seen(1, NodeJobKind.SUBMITTED, 1),
        seen(1, NodeJobKind.STARTED),
        changed(NodeState.QUEUED, 1),
        seen(1, NodeJobKind.COMPLETED, 4),
        seen(1, NodeJobKind.COMPLETED, 9, NodePart.POST),
        changed(NodeState.FAILED, 1, 4),
    ]
    begun = WorkflowStarted(
        workflow=7,
        owner="ann",
        files=["a.dag"],
        directory="/",
        digest="",
        plan=packed(Plan(names=["A", "B"], done=[1])),
        options=WorkflowOptions(),
        followed=0,
    )
    found = node_runs([(float(at), event) for at, event in enumerate([begun, *happened])])
    assert NodeRun(NodeState.FAILED, 4, attempts=2, seconds=2.0) == found["A"]
    assert NodeRun(NodeState.DONE) == found["B"]


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        (NodeRun(NodeState.DONE, seconds=5.0), NodeRun(NodeState.DONE, seconds=5.9), False),
        (NodeRun(NodeState.DONE, seconds=5.0), NodeRun(NodeState.DONE, seconds=6.0), True),
        (NodeRun(NodeState.DONE, seconds=100.0), NodeRun(NodeState.DONE, seconds=105.0), False),
        (NodeRun(NodeState.DONE, seconds=5.0), NodeRun(NodeState.DONE), False),
        (NodeRun(NodeState.FAILED, 1), NodeRun(NodeState.FAILED, 2), True),
        (NodeRun(NodeState.DONE), NodeRun(NodeState.FUTILE), True),
        (NodeRun(), None, True),
    ],
)
def test_what_differs(before: NodeRun, after: NodeRun | None, differs: bool) -> None:
    """A node that was done before took no time, which is no difference."""
    found = list(differences({"A": before}, {} if after is None else {"A": after}))
    assert differs == bool(found)
