"""
A workflow whose every kind of line is known: what happens to it, with times.

    JOB make / work / check / send       PARENT make CHILD work; PARENT work CHILD check send
    RETRY work 1                         work fails with status 2, and well the second time
    SCRIPT PRE make, SCRIPT POST check   make has a PRE script; the POST script of check fails, so check does
    JOB skip with PRE_SKIP               skip is skipped by its PRE script; send is held for a time
"""

from collections.abc import Iterator
from typing import Final

from kettle.dag.files.progress import Progress
from kettle_wire.codes import DagStatus, NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import (
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    NodeStep,
    WorkflowEnded,
    WorkflowEvent,
    WorkflowStarted,
    WorkflowStopping,
)
from kettle_wire.workflows import Plan, Retries, WorkflowOptions

START: Final = 1_700_000_000.0
"""2023-11-14 22:13:20 UTC."""
MAKE, WORK, CHECK, SEND, SKIP = range(5)
PLAN: Final = Plan(
    names=["make", "work", "check", "send", "skip"],
    retries={WORK: Retries(1)},
    pre={MAKE: None, SKIP: None},
    post={CHECK: None},
    pre_skip={SKIP: 7},
)


def changed(*changes: tuple[int, NodeState] | tuple[int, NodeState, int, int]) -> NodesChanged:
    return NodesChanged([NodeChange(*change) for change in changes])


def seen(*facts: NodeJobFact, **reasons: str) -> NodeJobsSeen:
    said = {int(place.removeprefix("of_")): reason for place, reason in reasons.items()}
    return NodeJobsSeen(frame=1, facts=[*facts], reasons=said)


def fact(node: int, kind: NodeJobKind, cluster: int, value: int = 0, *, attempt: int = 0) -> NodeJobFact:
    proc = -1 if kind is NodeJobKind.SUBMITTED else 0
    return NodeJobFact(NodeStep(node, attempt, NodePart.JOB), cluster, proc, kind, value)


def script(node: int, part: NodePart, kind: NodeJobKind, cluster: int, value: int = 0) -> NodeJobFact:
    proc = -1 if kind is NodeJobKind.SUBMITTED else 0
    return NodeJobFact(NodeStep(node, 0, part), cluster, proc, kind, 1 if proc else value)


def started(workflow: int = 7) -> WorkflowStarted:
    return WorkflowStarted(
        workflow=workflow, owner="ada", files=["x.dag"], directory="/d", digest="", plan=b"",
        options=WorkflowOptions(), followed=0,
    )  # fmt: skip


SUBMITTED, STARTED, COMPLETED = NodeJobKind.SUBMITTED, NodeJobKind.STARTED, NodeJobKind.COMPLETED
STORY: Final[list[tuple[float, WorkflowEvent]]] = [
    (0, started()),
    (0, changed((MAKE, NodeState.PRE), (SKIP, NodeState.PRE))),
    (1, seen(script(MAKE, NodePart.PRE, SUBMITTED, 8), script(SKIP, NodePart.PRE, SUBMITTED, 9))),
    (2, seen(script(MAKE, NodePart.PRE, COMPLETED, 8), script(SKIP, NodePart.PRE, COMPLETED, 9, 7))),
    (2, changed((MAKE, NodeState.QUEUED), (SKIP, NodeState.SKIPPED))),
    (3, seen(fact(MAKE, SUBMITTED, 10, 1), fact(MAKE, STARTED, 10))),
    (6, seen(fact(MAKE, COMPLETED, 10))),
    (6, changed((MAKE, NodeState.DONE), (WORK, NodeState.QUEUED))),
    (7, seen(fact(WORK, SUBMITTED, 11, 1), fact(WORK, STARTED, 11), fact(WORK, COMPLETED, 11, 2))),
    (7, changed((WORK, NodeState.QUEUED, 1, 0))),
    (8, seen(fact(WORK, SUBMITTED, 12, 1, attempt=1), fact(WORK, STARTED, 12, attempt=1))),
    (9, seen(fact(WORK, COMPLETED, 12, attempt=1))),
    (9, changed((WORK, NodeState.DONE, 1, 0), (CHECK, NodeState.QUEUED), (SEND, NodeState.QUEUED))),
    (10, seen(fact(CHECK, SUBMITTED, 13, 1), fact(SEND, SUBMITTED, 14, 1))),
    (11, seen(fact(CHECK, STARTED, 13), fact(SEND, NodeJobKind.HELD, 14), of_1="No room")),
    (12, seen(fact(CHECK, COMPLETED, 13, -9), fact(SEND, NodeJobKind.RELEASED, 14))),
    (12, changed((CHECK, NodeState.POST, 0, -9))),
    (13, seen(script(CHECK, NodePart.POST, SUBMITTED, 15), fact(SEND, STARTED, 14))),
    (14, seen(script(CHECK, NodePart.POST, COMPLETED, 15, 3), fact(SEND, COMPLETED, 14))),
    (14, changed((CHECK, NodeState.FAILED, 0, 3), (SEND, NodeState.DONE))),
    (14, WorkflowStopping(status=DagStatus.NODE_FAILED, exit_code=1)),
    (14, WorkflowEnded(status=DagStatus.NODE_FAILED, exit_code=1)),
]  # fmt: skip


def told(progress: Progress, upto: float = 100) -> Iterator[tuple[float, WorkflowEvent]]:
    """The events, each after it was folded; those until `upto` seconds after the start."""
    for after, event in STORY:
        if after <= upto:
            progress.apply(START + after, event)
            yield START + after, event
