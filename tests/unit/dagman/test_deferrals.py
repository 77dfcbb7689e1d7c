"""Scripts that want to run again later (DEFER), when the workflow is at its end, or is halted."""

import asyncio
import time
from random import Random
from typing import Any

import pytest

from kettle.testing.patience import PATIENCE_S
from kettle_services.dagman.domain.decisions import next_time
from kettle_services.dagman.domain.explanations import explained
from kettle_wire.codes import DagStatus, JobStatus, NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import (
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    NodeStep,
    WorkflowHalted,
    WorkflowRemoved,
    WorkflowResumed,
)
from kettle_wire.workflows import AbortRule, Deferral, Plan, WorkflowOptions

from .interpreter import Driver, edges, shown, started
from .one_dagman import dag_job, dagman

FINAL = 1
"""The node that comes last, beside node 0."""
OTHER = NodeStep(1, 0, NodePart.JOB)
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
    rule: dict[str, Any] = {"pre" if part == NodePart.PRE else "post": {FINAL: Deferral(status, 60)}}
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
    """
    After an abort its PRE script was not put off, and its POST script followed: nothing of it is left to be put off.
    """
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


def halted(*, post: bool = False) -> Driver:
    """
    Node A waits for its script to run again, 60 s after the start, and the job of B still runs; then it is halted.
    """
    rule: dict[str, Any] = {"post" if post else "pre": {0: Deferral(9, 60)}}
    part = NodePart.POST if post else NodePart.PRE
    run = driver({}, **rule)
    for step in [NodeStep(0, 0, NodePart.JOB), NodeStep(0, 0, part)][not post :]:
        see(run, step, NodeJobKind.COMPLETED, 9 if step.part == part else 0)
    see(run, OTHER)
    run.feed(WorkflowHalted(by="ann"))
    return run


def see(run: Driver, step: NodeStep, kind: NodeJobKind = NodeJobKind.STARTED, value: int = 0) -> None:
    """A job is submitted, if it was not, and something happens to it."""
    cluster = 100 + 10 * step.node + step.part
    if step in run.workflow.orders:
        run.see(NodeJobFact(step, cluster, -1, NodeJobKind.SUBMITTED, 1))
    run.see(NodeJobFact(step, cluster, 0, kind, value))


def test_a_halted_workflow_runs_no_pre_script_again_and_ends() -> None:
    """It waits for the job that runs, and for no script; the rescue DAG has it run when it goes on."""
    run = halted()
    assert next_time(run.workflow) is None
    run.now = 1060.0
    run.feed()
    assert not run.workflow.orders
    see(run, OTHER, NodeJobKind.COMPLETED)
    assert (DagStatus.HALTED, 1) == result(run)
    assert NodeState.PRE == run.states()[0]


@pytest.mark.parametrize("resumed_at", [1020.0, 1100.0])
def test_a_workflow_that_goes_on_runs_the_script_again(resumed_at: float) -> None:
    """At its time, or at once if that has passed meanwhile."""
    run = halted()
    run.now = resumed_at
    run.feed(WorkflowResumed(by="ann"))
    again = NodeStep(0, 0, NodePart.PRE, 1)
    if resumed_at < 1060:
        assert not run.workflow.orders
        assert 1060 == next_time(run.workflow)
        run.now = 1060.0
        run.feed()
    assert [again] == list(run.workflow.orders)
    see(run, again, NodeJobKind.COMPLETED)
    see(run, OTHER, NodeJobKind.COMPLETED)
    see(run, NodeStep(0, 0, NodePart.JOB), NodeJobKind.COMPLETED)
    assert (DagStatus.OK, 0) == result(run)


def test_a_halted_workflow_runs_post_scripts_again() -> None:
    """They finish what has run; it ends after them."""
    run = halted(post=True)
    see(run, OTHER, NodeJobKind.COMPLETED)
    assert run.workflow.ended is None
    assert 1060 == next_time(run.workflow)
    run_on(run)
    assert [1] == runs(run, 0, NodePart.POST)
    assert (DagStatus.OK, 0) == result(run)


def test_scripts_that_run_again_are_no_more_than_may_run() -> None:
    """A time for which there is no room is not looked at: the end of another script is."""
    codes = {(0, NodePart.PRE): [9, 0], (1, NodePart.PRE): [9, 0]}
    rules: dict[str, Any] = {"pre": {0: Deferral(9, 60), 1: Deferral(9, 60)}}
    run = driver(codes, limits=WorkflowOptions(max_pre=1), **rules)
    while len(run.workflow.deferred) < len(codes):
        assert run.step()
    run.now = 1060.0
    run.feed()
    assert [NodeStep(0, 0, NodePart.PRE, 1)] == list(run.workflow.orders)
    assert next_time(run.workflow) is None
    said = explained(run.workflow, 1, run.now).sentences
    assert ["1 PRE scripts run, and that is the most (maxpre)."] == said[1:]
    run_on(run)
    assert (DagStatus.OK, 0) == result(run)


async def test_a_workflow_that_goes_on_is_looked_at_when_the_time_of_its_script_comes() -> None:
    """While it was halted there was no time to wait for, and nothing else happens."""
    workflow = halted().workflow
    step, _ = workflow.deferred[0]
    workflow.deferred[0] = step, int(time.time())
    served = await dagman(dag_job(JobStatus.RUNNING, runs=True), workflow)
    waiting = asyncio.create_task(served.following.run_deferred())
    await asyncio.sleep(0)
    assert not workflow.orders
    workflow.apply(WorkflowResumed(by="ann"))
    served.following.changed(workflow.number, [WorkflowResumed(by="ann")])
    async with asyncio.timeout(PATIENCE_S):
        while not workflow.orders:
            await asyncio.sleep(0)
    assert [NodeStep(0, 0, NodePart.PRE, 1)] == list(workflow.orders)
    waiting.cancel()
    await asyncio.wait([waiting])
