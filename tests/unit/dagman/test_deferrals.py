"""Scripts that want to run again later (DEFER), when the workflow is at its end, or is halted."""

from random import Random
from typing import Any

import pytest

from kettle_wire.codes import DagStatus, NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import (
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    NodeStep,
    WorkflowRemoved,
)
from kettle_wire.workflows import AbortRule, Deferral, Plan, WorkflowOptions

from .interpreter import Driver, edges, shown, started

FINAL = 1
"""The node that comes last, beside node 0."""
STEPS = 20
"""More than any workflow here takes."""


def driver(
    codes: dict[tuple[int, NodePart], list[int]], *, limits: WorkflowOptions | None = None, **rules: Any
) -> Driver:
    """
    Two nodes that do not wait for each other. `codes`: of parts that do not just end well, what they end with, one after the other.
    """
    starts, ends, weak = edges(2, [])
    plan = Plan(names=["A", "B"], starts=starts, ends=ends, weak=weak, **rules)

    def outcome(node: int, _attempt: int, part: int) -> int:
        left = codes.get((node, NodePart(part)))
        return left.pop(0) if left else 0

    made = Driver(started(plan, limits), outcome, Random(1))
    made.feed()
    return made


def run_on(run: Driver) -> None:
    """Until it is over, or nothing can happen: a defect is no loop without an end."""
    for _ in range(STEPS):
        if run.workflow.ended is not None or not run.step():
            return


def result(run: Driver) -> tuple[int, int]:
    """Status and exit code."""
    assert run.workflow.ended is not None
    assert shown(run.workflow) == shown(run.replayed())
    return run.workflow.ended.status, run.workflow.ended.exit_code


def runs(run: Driver, node: int, part: NodePart) -> list[int]:
    """Which runs of a script were submitted."""
    return [step.run for step in run.submitted if (step.node, step.part) == (node, part)]


@pytest.mark.parametrize("part", [NodePart.PRE, NodePart.POST])
@pytest.mark.parametrize("status", [0, 9])
@pytest.mark.parametrize("aborts", [False, True])
def test_a_script_of_the_final_node_runs_again(part: NodePart, status: int, aborts: bool) -> None:
    """Whatever the status that puts it off, and also after a node has aborted the workflow."""
    well = 5 if status == 0 else 0
    codes = {(0, NodePart.JOB): [3 if aborts else 0], (FINAL, part): [status, well]}
    rule = {"pre" if part == NodePart.PRE else "post": {FINAL: Deferral(status, 60)}}
    run = driver(codes, final=FINAL, aborts={0: AbortRule(3)}, **rule)
    run_on(run)
    assert ((DagStatus.NODE_FAILED, 1) if well else (DagStatus.OK, 0)) == result(run)
    assert [0, 1] == runs(run, FINAL, part)
    assert 1060.0 == run.now


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_workflow_that_is_removed_waits_for_no_script(meanwhile: bool) -> None:
    """Neither when its FINAL node begins after that, nor when it waits already: that one has failed."""
    codes = {(FINAL, NodePart.PRE): [9, 0]}
    run = driver(codes, final=FINAL, pre={FINAL: Deferral(9, 60)})
    if meanwhile:
        while FINAL not in run.workflow.deferred:
            assert run.step()
    run.feed(WorkflowRemoved(by="ann"))
    run_on(run)
    assert (DagStatus.REMOVED, 2) == result(run)
    assert [0] == runs(run, FINAL, NodePart.PRE)
    assert NodeState.FAILED == run.states()[FINAL]
    assert 1000.0 == run.now


def test_what_a_service_wanted_to_run_later_is_not_waited_for_at_the_end() -> None:
    """Only the FINAL node begins then; its script is the only one whose time is looked at."""
    codes = {(0, NodePart.PRE): [9], (FINAL, NodePart.PRE): [9, 0]}
    run = driver(codes, services=[0], final=FINAL, pre={0: Deferral(9, 10), FINAL: Deferral(9, 60)})
    run_on(run)
    assert (DagStatus.OK, 0) == result(run)
    assert [0] == runs(run, 0, NodePart.PRE)


def test_old_recordings_in_which_the_final_node_went_on_mean_what_they_meant() -> None:
    """After an abort its PRE script was not put off, and its POST script followed: nothing of it is left to be put off."""
    codes = {(0, NodePart.JOB): [3], (FINAL, NodePart.PRE): [9]}
    rules: dict[str, Any] = {"final": FINAL, "aborts": {0: AbortRule(3)}, "post": {FINAL: None}}
    run = driver(codes, pre={FINAL: Deferral(9, 60)}, limits=WorkflowOptions(always_run_post=True), **rules)
    while not runs(run, FINAL, NodePart.PRE):
        assert run.step()
    old, step = run.replayed(), NodeStep(FINAL, 0, NodePart.PRE)
    ended = NodeJobFact(step, old.parts[FINAL].cluster, 0, NodeJobKind.COMPLETED, 9)
    old.apply(NodeJobsSeen(frame=9, facts=[ended]))
    old.apply(NodesChanged(changes=[NodeChange(FINAL, NodeState.POST, 0, 9)]))
    assert not old.to_defer
    assert [NodeStep(FINAL, 0, NodePart.POST)] == list(old.orders)
