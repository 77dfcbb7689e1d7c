"""What is said about a node: which nodes it waits for, which limit is reached, what comes next."""

from random import Random

import pytest

from kettle_services.dagman.domain.explanations import explained
from kettle_wire.codes import NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import NodeJobFact, NodeStep, WorkflowHalted
from kettle_wire.workflows import Deferral, Plan, WorkflowOptions

from .interpreter import Driver, edges, started


def driver(plan: Plan, options: WorkflowOptions | None = None) -> Driver:
    """A workflow that has begun, and of which nothing is submitted yet."""
    made = Driver(started(plan, options), lambda _node, _attempt, _part: 0, Random(1))
    made.feed()
    return made


def beside(*names: str) -> tuple[list[str], bytes, bytes, bytes]:
    """Nodes that do not wait for each other."""
    return list(names), *edges(len(names), [])


def said(run: Driver, node: int) -> str:
    """The sentences, as one text."""
    return " ".join(explained(run.workflow, node, run.now).sentences)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (WorkflowOptions(max_jobs=1), "1 nodes have jobs in the queue, and that is the most (maxjobs)."),
        (WorkflowOptions(max_idle=1), "1 jobs of the workflow are idle, and that is the most (maxidle)."),
        (WorkflowOptions(), "Category heavy is full: 1 of its nodes have jobs in the queue (MAXJOBS)."),
    ],
)
def test_the_limit_that_is_reached_is_named(options: WorkflowOptions, expected: str) -> None:
    """Of jobs, idle jobs, or the nodes of a category."""
    names, starts, ends, weak = beside("A", "B")
    plan = Plan(
        names=names,
        starts=starts,
        ends=ends,
        weak=weak,
        categories={0: "heavy", 1: "heavy"},
        category_limits={} if options.max_jobs or options.max_idle == 1 else {"heavy": 1},
    )
    assert f"All nodes that it waits for have finished. {expected}" == said(driver(plan, options), 1)


def test_the_parents_that_are_missing_are_named_with_their_states() -> None:
    """One that is over is not."""
    starts, ends, weak = edges(3, [(0, 2, False), (1, 2, False)])
    run = driver(Plan(names=["A", "B", "C"], starts=starts, ends=ends, weak=weak))
    run.see(NodeJobFact(NodeStep(0, 0, NodePart.JOB), 10, -1, NodeJobKind.SUBMITTED, 1))
    assert "It waits for A (queued), B (queued)." == said(run, 2)
    run.see(NodeJobFact(NodeStep(0, 0, NodePart.JOB), 10, 0, NodeJobKind.COMPLETED))
    assert "It waits for B (queued)." == said(run, 2)


def test_scripts_wait_for_a_turn_of_their_own() -> None:
    """The limit of scripts is told, and none of jobs, until the PRE script has succeeded."""
    names, starts, ends, weak = beside("A", "B")
    plan = Plan(names=names, starts=starts, ends=ends, weak=weak, pre=dict.fromkeys((0, 1)))
    run = driver(plan, WorkflowOptions(max_pre=1, max_jobs=1))
    assert said(run, 0).startswith("Its PRE script is to be submitted by the process of the DAG job")
    assert said(run, 1).endswith("1 PRE scripts run, and that is the most (maxpre).")
    for node in (0, 1):
        run.see(NodeJobFact(NodeStep(node, 0, NodePart.PRE), 10 + node, -1, NodeJobKind.SUBMITTED, 1))
        assert f"Its PRE script runs as job {10 + node}.0." == said(run, node)
        run.see(NodeJobFact(NodeStep(node, 0, NodePart.PRE), 10 + node, 0, NodeJobKind.COMPLETED))
    assert "Its PRE script has ended; its jobs are next." in said(run, 1)
    assert said(run, 1).endswith("(maxjobs).")


def test_a_post_script_that_waits_is_told() -> None:
    """It waits for other POST scripts only, also when the workflow is halted."""
    names, starts, ends, weak = beside("A", "B")
    plan = Plan(names=names, starts=starts, ends=ends, weak=weak, post=dict.fromkeys((0, 1)))
    run = driver(plan, WorkflowOptions(max_post=1))
    run.feed(WorkflowHalted(by="ann"))
    for node in (0, 1):
        run.see(NodeJobFact(NodeStep(node, 0, NodePart.JOB), 10 + node, -1, NodeJobKind.SUBMITTED, 1))
        run.see(NodeJobFact(NodeStep(node, 0, NodePart.JOB), 10 + node, 0, NodeJobKind.COMPLETED))
    expected = (
        "Its jobs have ended; its POST script is next. 1 POST scripts run, and that is the most (maxpost)."
    )
    assert expected == said(run, 1)


def test_a_halted_workflow_and_a_deferred_script_are_told() -> None:
    """With how to go on, and with when the script runs again."""
    names, starts, ends, weak = beside("A", "B")
    plan = Plan(names=names, starts=starts, ends=ends, weak=weak, pre={0: Deferral(9, 60)})
    run = driver(plan, WorkflowOptions(max_jobs=1))
    run.see(NodeJobFact(NodeStep(0, 0, NodePart.PRE), 10, -1, NodeJobKind.SUBMITTED, 1))
    run.see(NodeJobFact(NodeStep(0, 0, NodePart.PRE), 10, 0, NodeJobKind.COMPLETED, 9))
    run.now += 20
    asked = "Its PRE script has asked to be run again, in 40 s (DEFER)."
    assert asked == said(run, 0)
    run.see(NodeJobFact(NodeStep(1, 0, NodePart.JOB), 11, -1, NodeJobKind.SUBMITTED, 1))
    run.feed(WorkflowHalted(by="ann"))
    assert f"{asked} The workflow is halted (htcondor dag resume)." == said(run, 0)
    waiting = driver(Plan(names=names, starts=starts, ends=ends, weak=weak), WorkflowOptions(max_jobs=1))
    waiting.feed(WorkflowHalted(by="ann"))
    assert said(waiting, 1).endswith("The workflow is halted (htcondor dag resume).")


def test_a_node_whose_jobs_are_refused_says_the_reason() -> None:
    """It is in the errors of the DAG job while that tries again, and is said when it has given up."""
    made = driver(Plan(names=["A"]))
    assert (
        f"{made.first.files[0]}.lib.err has the reason" in explained(made.workflow, 0, made.now).sentences[-1]
    )
    made.on_submit = lambda _step: "no such file"
    made.run()
    assert made.states() == [NodeState.FAILED]
    assert explained(made.workflow, 0, made.now).sentences == [
        "It has failed: its jobs could not be submitted (no such file)."
    ]
