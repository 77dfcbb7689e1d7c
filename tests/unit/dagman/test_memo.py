"""Nodes that are not run because what one like them has left is still there."""

from random import Random

from kettle_services.dagman.domain.decisions import may_be_reused
from kettle_services.dagman.domain.explanations import explained
from kettle_wire.codes import NodePart, NodeState
from kettle_wire.events.workflow import (
    NodeMemory,
    NodeReuse,
    NodesRemembered,
    NodesReused,
    NodeStep,
    WorkflowRemoved,
)
from kettle_wire.workflows import Plan, WorkflowOptions

from .interpreter import Driver, edges, shown, started

A, B = (NodeStep(node, 0, NodePart.JOB) for node in (0, 1))
REUSE = NodeReuse(A, "0" * 64, {"/home/ann/a": "1" * 64}, 3, "old", 4, 1_795_651_200)


def chain(*, memo: bool = True) -> Driver:
    """A, and B after it; nothing is submitted yet."""
    starts, ends, weak = edges(2, [(0, 1, False)])
    plan = Plan(names=["A", "B"], starts=starts, ends=ends, weak=weak)
    made = Driver(started(plan, WorkflowOptions(memo=memo)), lambda _node, _attempt, _part: 0, Random(1))
    made.feed()
    return made


def test_a_node_with_a_result_is_done_without_a_job() -> None:
    """The next one begins, and it is said from where the result is; told twice it is told once."""
    made = chain()
    made.feed(NodesReused(reuses=[REUSE]))
    assert (NodeState.DONE, [B]) == (made.workflow.state(0), list(made.workflow.orders))
    made.feed(NodesReused(reuses=[REUSE]))
    assert [B] == list(made.workflow.orders)
    assert (
        "It was not run: it is the same as node old of workflow 3, which ran as job 4.0 (2026-11-26 00:00:00 UTC), and what that "
        "left is still there."
    ) == explained(made.workflow, 0, 0.0).sentences[0]


def test_a_workflow_ends_when_it_is_known_what_its_nodes_have_left() -> None:
    """What was told of some is not asked again; and its events make the same workflow."""
    made = chain()
    made.run()
    assert made.workflow.ended is None
    assert [A, B] == list(made.workflow.to_remember)
    made.feed(NodesRemembered(memories=[NodeMemory(0, 101, "0" * 64, {})]))
    assert (None, [B]) == (made.workflow.ended, list(made.workflow.to_remember))
    made.feed(NodesRemembered(memories=[], others=[1]))
    assert made.workflow.ended is not None
    assert 0 == made.workflow.ended.exit_code
    assert shown(made.workflow) == shown(made.replayed())


def test_who_removes_a_workflow_does_not_wait_for_that() -> None:
    """The process that would tell it has been removed, too."""
    made = chain()
    made.run()
    made.feed(WorkflowRemoved(by="ann"))
    assert made.workflow.ended is not None


def test_nothing_is_asked_for_or_left_out_unless_that_is_wanted() -> None:
    """A workflow without this option ends at once."""
    made = chain(memo=False)
    assert not may_be_reused(made.workflow, A)
    made.run()
    assert made.workflow.ended is not None


def test_only_what_is_to_be_submitted_may_be_left_out() -> None:
    """Not a node that runs, that waits, or that is tried again as another attempt."""
    made = chain()
    assert may_be_reused(made.workflow, A)
    assert not may_be_reused(made.workflow, B)
    assert not may_be_reused(made.workflow, NodeStep(0, 1, NodePart.JOB))
    assert not may_be_reused(made.workflow, NodeStep(0, 0, NodePart.POST))
    made.step()
    assert not may_be_reused(made.workflow, A)
