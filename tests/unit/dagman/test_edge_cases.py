"""What happens seldom to workflows, and what they come to then."""

from random import Random
from typing import Any

import pytest

from kettle_services.dagman.domain.decisions import next_time
from kettle_services.dagman.domain.explanations import explained
from kettle_wire.codes import DagStatus, NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import (
    JobsRemovalOrdered,
    NodeJobFact,
    NodeJobsSeen,
    NodeStep,
    WorkflowRemoved,
)
from kettle_wire.workflows import AbortRule, Deferral, Plan, Retries, Tolerance, WorkflowOptions

from .interpreter import Driver, Outcome, edges, shown, started

WELL: Outcome = lambda _node, _attempt, _part: 0  # noqa: E731


def driver(count: int, outcome: Outcome = WELL, **rules: Any) -> Driver:
    """Nodes that do not wait for each other."""
    starts, ends, weak = edges(count, [])
    plan = Plan(names=[f"N{each}" for each in range(count)], starts=starts, ends=ends, weak=weak, **rules)
    made = Driver(started(plan, WorkflowOptions(max_idle=0)), outcome, Random(1))
    made.feed()
    return made


def result(run: Driver) -> tuple[int, int]:
    """Status and exit code."""
    assert run.workflow.ended is not None
    return run.workflow.ended.status, run.workflow.ended.exit_code


def test_a_success_that_ends_all_removes_what_still_runs() -> None:
    """ABORT-DAG-ON 0 RETURN 0 while 500 others run: they are removed, and the workflow has succeeded."""
    run = driver(501, aborts={0: AbortRule(0, 0)})
    steps = [NodeStep(node, 0, NodePart.JOB) for node in range(501)]
    run.see(*[NodeJobFact(step, step.node + 1, -1, NodeJobKind.SUBMITTED, 1) for step in steps])
    run.see(NodeJobFact(steps[0], 1, 0, NodeJobKind.COMPLETED, 0))
    [removal] = [event for event in run.events if isinstance(event, JobsRemovalOrdered)]
    assert list(range(2, 502)) == removal.clusters
    run.see(*[NodeJobFact(step, step.node + 1, 0, NodeJobKind.REMOVED) for step in steps[1:]])
    assert (DagStatus.OK, 0) == result(run)


def test_a_value_after_which_there_is_no_retry_may_come_from_the_pre_script() -> None:
    """RETRY 3 UNLESS-EXIT 2: it ends with the first 2, and its job never runs."""
    codes = {0: 1, 1: 2}
    run = driver(1, lambda _node, attempt, _part: codes[attempt], pre={0: None}, retries={0: Retries(3, 2)})
    run.run()
    assert [(0, NodePart.PRE), (1, NodePart.PRE)] == [(step.attempt, step.part) for step in run.submitted]
    assert [NodeState.FAILED] == run.states()


def test_a_service_that_ends_by_itself_is_not_missed() -> None:
    """Whatever it ends with, the nodes go on, and it is not started again."""
    run = driver(2, lambda node, _attempt, _part: 3 * node, services=[1])
    run.run()
    assert (DagStatus.OK, 0) == result(run)
    assert 1 == [step.node for step in run.submitted].count(1)


def test_a_provisioner_that_is_never_ready_keeps_all_others_waiting() -> None:
    """They say so; the removal of the DAG job ends it."""
    run = driver(2, provisioner=1)
    step = NodeStep(1, 0, NodePart.JOB)
    run.see(NodeJobFact(step, 5, -1, NodeJobKind.SUBMITTED, 1), NodeJobFact(step, 5, 0, NodeJobKind.STARTED))
    assert not run.workflow.orders
    waits = ["It waits for the provisioner, which is not ready."]
    assert waits == explained(run.workflow, 0, run.now).sentences
    run.feed(WorkflowRemoved(by="ann"))
    run.see(NodeJobFact(step, 5, 0, NodeJobKind.REMOVED))
    assert (DagStatus.REMOVED, 2) == result(run)


@pytest.mark.parametrize(("failing", "state"), [(100, NodeState.DONE), (101, NodeState.FAILED)])
def test_a_node_of_a_thousand_jobs_waits_for_all_of_them(failing: int, state: NodeState) -> None:
    """TOLERANCE 10% WAIT: with more failures the node has failed, when the last job has ended."""
    run = driver(1, tolerances={0: Tolerance(10, percent=True, wait=True)})
    step = NodeStep(0, 0, NodePart.JOB)
    run.see(NodeJobFact(step, 5, -1, NodeJobKind.SUBMITTED, 1000))
    run.see(*[NodeJobFact(step, 5, proc, NodeJobKind.COMPLETED, int(proc < failing)) for proc in range(999)])
    assert [NodeState.QUEUED] == run.states()
    run.see(NodeJobFact(step, 5, 999, NodeJobKind.COMPLETED, int(failing > 999)))
    assert [state] == run.states()
    assert not any(isinstance(event, JobsRemovalOrdered) for event in run.events)


def test_a_node_whose_job_was_removed_says_by_whom() -> None:
    """It has failed, and the reason of the removal is kept."""
    run = driver(1)
    step = NodeStep(0, 0, NodePart.JOB)
    run.see(NodeJobFact(step, 5, -1, NodeJobKind.SUBMITTED, 1))
    removed = NodeJobFact(step, 5, 0, NodeJobKind.REMOVED)
    run.feed(NodeJobsSeen(frame=9, facts=[removed], reasons={0: "via condor_rm (by user ann)"}))
    expected = "It has failed: a job of it was removed (via condor_rm (by user ann))."
    assert [expected] == explained(run.workflow, 0, run.now).sentences
    assert [expected] == explained(run.replayed(), 0, run.now).sentences


def test_a_machine_that_is_lost_costs_no_second_post_script() -> None:
    """Neither when it had the job, nor when it had the script: the job runs again, and counts once."""
    run = driver(1, post={0: None})
    kinds = (NodeJobKind.STARTED, NodeJobKind.EVICTED, NodeJobKind.STARTED, NodeJobKind.COMPLETED)
    for cluster, part in ((5, NodePart.JOB), (6, NodePart.POST)):
        step = NodeStep(0, 0, part)
        assert [step] == list(run.workflow.orders)
        run.see(NodeJobFact(step, cluster, -1, NodeJobKind.SUBMITTED, 1))
        run.see(*[NodeJobFact(step, cluster, 0, kind) for kind in kinds])
    assert (DagStatus.OK, 0) == result(run)
    assert shown(run.workflow) == shown(run.replayed())


def test_a_clock_that_is_set_back_loses_no_deferred_script() -> None:
    """It runs when the time that was recorded has come."""
    codes = [9, 0, 0]
    run = driver(1, lambda _node, _attempt, _part: codes.pop(0), pre={0: Deferral(9, 60)})
    for _ in range(2):
        run.step()
    run.now -= 3600
    run.feed()
    assert 1060 == next_time(run.workflow)
    run.run()
    assert (DagStatus.OK, 0) == result(run)
