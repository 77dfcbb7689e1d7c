"""
What became of the nodes in a run of a DAG, and how long each took; and how two runs differ.

Pure: a fold of the workflow's events.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kettle_wire.codes import NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import (
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    WorkflowEvent,
    WorkflowStarted,
)
from kettle_wire.workflows import unpacked

_VALUED = frozenset({NodeState.DONE, NodeState.FAILED})


class NodeRun(msgspec.Struct):
    """One node in one run."""

    state: NodeState = NodeState.WAITING
    value: int = 0
    """The node value, as `NodesChanged` has it."""
    attempts: int = 0
    seconds: float | None = None
    """From the start of the first job of its last attempt to the end of the last one; None: none has run to its end."""


class Difference(msgspec.Struct, frozen=True):
    """One node that is not the same in two runs; None: the run has no such node."""

    node: str
    before: NodeRun | None
    after: NodeRun | None


def node_runs(history: Iterable[tuple[float, WorkflowEvent]]) -> dict[str, NodeRun]:
    """By its name what became of each node, by all events of a workflow and their times."""
    names: list[str] = []
    runs: list[NodeRun] = []
    began: dict[int, float] = {}
    for at, event in history:
        match event:
            case WorkflowStarted():
                plan = unpacked(event.plan)
                names = plan.names
                runs = [NodeRun() for _ in names]
                for node in plan.done:
                    runs[node].state = NodeState.DONE
            case NodesChanged():
                for change in event.changes:
                    _change(runs[change.node], change)
            case NodeJobsSeen():
                for fact in event.facts:
                    if fact.step.part == NodePart.JOB:
                        _job(runs[fact.step.node], fact, at, began)
            case _:
                pass
    return dict(zip(names, runs, strict=True))


def _change(run: NodeRun, change: NodeChange) -> None:
    run.state = NodeState(change.state)
    if run.state is NodeState.READY:
        run.attempts, run.seconds = change.attempt + 1, None
    run.value = change.value if run.state in _VALUED else 0


def _job(run: NodeRun, fact: NodeJobFact, at: float, began: dict[int, float]) -> None:
    node = fact.step.node
    match fact.kind:
        case NodeJobKind.SUBMITTED:
            began.pop(node, None)
        case NodeJobKind.STARTED:
            began.setdefault(node, at)
        case NodeJobKind.COMPLETED:
            run.seconds = max(0.0, at - began.get(node, at))  # a clock may be set back
        case _:
            pass


def differences(before: Mapping[str, NodeRun], after: Mapping[str, NodeRun]) -> Iterator[Difference]:
    """
    The nodes that are in one run only, or came to another state or value, or took a different time: at least a second and a tenth of
    the longer one.
    """
    for name in dict.fromkeys([*before, *after]):
        one, two = before.get(name), after.get(name)
        if one is None or two is None or _differ(one, two):
            yield Difference(name, one, two)


def _differ(one: NodeRun, two: NodeRun) -> bool:
    if (one.state, one.value) != (two.state, two.value):
        return True
    if one.seconds is None or two.seconds is None:
        return False
    return abs(one.seconds - two.seconds) >= max(1.0, 0.1 * max(one.seconds, two.seconds))
