"""The decider of workflows."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kettle_wire.codes import DagStatus, NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import (
    JobsRemovalOrdered,
    NodeJobFact,
    NodeStep,
    SavePointReached,
    WorkflowHalted,
    WorkflowRemoved,
    WorkflowResumed,
    WorkflowStopping,
)
from kettle_wire.workflows import AbortRule, Deferral, Plan, Retries, Tolerance, WorkflowOptions

from .interpreter import Driver, Outcome, edges, interpret, shown, started

Pairs = list[tuple[int, int, bool]]


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, Pairs, dict[tuple[int, int, int], int]]:
    """A graph without cycles, rules of its nodes, and the exit codes of whatever runs."""
    count = draw(st.integers(1, 8))
    node = st.integers(0, count - 1)
    nodes = st.lists(node, unique=True)
    pairs: Pairs = []
    for child in range(1, count):
        for parent in draw(st.lists(st.integers(0, child - 1), unique=True, max_size=3)):
            pairs.append((parent, child, draw(st.booleans())))
    starts, ends, weak = edges(count, pairs)
    codes = st.sampled_from([0, 0, 0, 1, 2])
    plan = Plan(
        names=[f"N{each}" for each in range(count)],
        starts=starts,
        ends=ends,
        weak=weak,
        noop=draw(nodes),
        done=draw(st.lists(node, unique=True, max_size=2)),
        priorities=draw(st.dictionaries(node, st.integers(-5, 5))),
        retries=draw(
            st.dictionaries(node, st.builds(Retries, st.integers(0, 2), st.sampled_from([None, 2])))
        ),
        pre=dict.fromkeys(draw(nodes)),
        post=dict.fromkeys(draw(nodes)),
        pre_skip=draw(st.dictionaries(node, st.sampled_from([1, 2]))),
        categories=draw(st.dictionaries(node, st.sampled_from(["a", "b"]))),
        category_limits=draw(st.dictionaries(st.sampled_from(["a", "b"]), st.integers(1, 2))),
    )
    parts = [NodePart.PRE, NodePart.JOB, NodePart.POST]
    outcomes = {
        (each, attempt, int(part)): draw(codes)
        for each in range(count)
        for attempt in range(3)
        for part in parts
    }
    return plan, pairs, outcomes


@settings(max_examples=60, deadline=None)
@given(
    drawn=plans(),
    limits=st.tuples(*[st.integers(0, 3)] * 4),
    reruns=st.sampled_from([0, 0, 1, 2]),
    seed=st.integers(0, 1000),
)
def test_a_workflow_comes_to_what_a_naive_interpreter_says(
    drawn: tuple[Plan, Pairs, dict[tuple[int, int, int], int]],
    limits: tuple[int, int, int, int],
    reruns: int,
    seed: int,
) -> None:
    """
    Whatever the order in which jobs end: the same states, no limit exceeded, no step ordered twice, and a replay of its
    events is the same workflow.
    """
    plan, pairs, outcomes = drawn
    most = WorkflowOptions(
        max_jobs=limits[0], max_idle=limits[1], max_pre=limits[2], max_post=limits[3], reruns=reruns
    )

    class Watched(Driver):
        def look(self) -> None:
            workflow = self.workflow
            assert not most.max_jobs or workflow.in_queue <= most.max_jobs
            assert not most.max_idle or workflow.idle_jobs <= most.max_idle
            assert not most.max_pre or workflow.scripts[NodePart.PRE] <= most.max_pre
            assert not most.max_post or workflow.scripts[NodePart.POST] <= most.max_post
            for category, limit in plan.category_limits.items():
                assert workflow.by_category.get(category, 0) <= limit

    def outcome(node: int, attempt: int, part: int) -> int:
        return outcomes[node, attempt % 3, part]

    driver = Watched(started(plan, most), outcome, Random(seed))
    driver.run()
    assert driver.workflow.ended is not None
    states = interpret(plan, pairs, outcome, reruns)
    assert states == driver.states()
    assert len(driver.submitted) == len(set(driver.submitted))
    well = all(state in {NodeState.DONE, NodeState.SKIPPED} for state in states)
    expected = (DagStatus.OK, 0) if well else (DagStatus.NODE_FAILED, 1)
    assert expected == (driver.workflow.ended.status, driver.workflow.ended.exit_code)
    assert shown(driver.workflow) == shown(driver.replayed())


def chain(*names: str, **rules: Any) -> Plan:
    """Nodes one after the other."""
    starts, ends, weak = edges(len(names), [(each, each + 1, False) for each in range(len(names) - 1)])
    return Plan(names=list(names), starts=starts, ends=ends, weak=weak, **rules)


def beside(*names: str, **rules: Any) -> Plan:
    """Nodes that do not wait for each other."""
    starts, ends, weak = edges(len(names), [])
    return Plan(names=list(names), starts=starts, ends=ends, weak=weak, **rules)


def driver(plan: Plan, outcome: Outcome = lambda _node, _attempt, _part: 0, **limits: Any) -> Driver:
    """A run in which the order of jobs is always the same."""
    made = Driver(started(plan, WorkflowOptions(**limits)), outcome, Random(1))
    made.feed()
    return made


def result(run: Driver) -> tuple[int, int]:
    """Status and exit code."""
    assert run.workflow.ended is not None
    return run.workflow.ended.status, run.workflow.ended.exit_code


def test_ready_nodes_go_by_priority_then_by_readiness() -> None:
    """The larger one first; equal ones in the order in which they became ready."""
    run = driver(beside("A", "B", "C", "D", priorities={2: 5, 3: 5, 0: -1}), max_jobs=1)
    run.run()
    assert [2, 3, 1, 0] == [step.node for step in run.submitted]


def test_where_many_may_wait_more_are_ordered_many_at_once() -> None:
    """A quarter of the limit is ordered together."""
    run = driver(beside(*(f"N{number}" for number in range(300))), max_idle=100)
    ordered = [100]
    while run.workflow.ended is None:
        assert run.step()
        assert run.workflow.idle_jobs <= 100
        if (more := len(run.submitted) + len(run.workflow.orders) - sum(ordered)) > 0:
            ordered.append(more)
    assert [100, *[25] * 8] == ordered


def test_ready_nodes_of_one_priority_go_by_urgency_then_by_readiness() -> None:
    """A priority counts more; scripts wait in the same order."""
    urgency = b"".join(each.to_bytes(4, "little") for each in (0, 7, 3, 7, 9))
    plan = beside("A", "B", "C", "D", "E", priorities={0: 1}, urgency=urgency, pre={4: None})
    run = driver(plan, max_jobs=1)
    run.run()
    assert [4, 0, 4, 1, 3, 2] == [step.node for step in run.submitted]
    scripts = driver(msgspec.structs.replace(plan, pre=dict.fromkeys(range(5))), max_pre=1)
    scripts.run()
    assert [0, 4, 1, 3, 2] == [step.node for step in scripts.submitted if step.part == NodePart.PRE]
    assert shown(scripts.workflow) == shown(scripts.replayed())
    with pytest.raises(ValueError, match="says of 1 how urgent"):
        driver(beside("A", "B", urgency=bytes(4)))


@pytest.mark.parametrize(
    ("code", "expected"),
    [(None, (DagStatus.ABORTED, 3)), (7, (DagStatus.ABORTED, 7)), (0, (DagStatus.OK, 0))],
)
def test_abort_dag_on_ends_all_with_its_code(code: int | None, expected: tuple[int, int]) -> None:
    """
    It overrides RETRY; other jobs are removed, nothing more begins, and the exit code is the rule's or the node's
    value.
    """
    plan = chain("A", "B", aborts={0: AbortRule(3, code)}, retries={0: Retries(5)})
    run = driver(plan, lambda _node, _attempt, _part: 3)
    run.run()
    assert expected == result(run)
    assert [NodeStep(0, 0, NodePart.JOB)] == run.submitted


def test_what_runs_when_a_workflow_is_aborted_is_removed() -> None:
    """Also what was submitted while nobody knew of it."""
    run = driver(beside("A", "B", "C", aborts={0: AbortRule(1)}))
    steps = [NodeStep(node, 0, NodePart.JOB) for node in range(3)]
    run.see(
        NodeJobFact(steps[0], 10, -1, NodeJobKind.SUBMITTED, 1),
        NodeJobFact(steps[1], 11, -1, NodeJobKind.SUBMITTED, 1),
    )
    run.see(NodeJobFact(steps[0], 10, 0, NodeJobKind.COMPLETED, 1))
    run.see(NodeJobFact(steps[2], 12, -1, NodeJobKind.SUBMITTED, 1))
    assert [[11], [12]] == [event.clusters for event in run.events if isinstance(event, JobsRemovalOrdered)]
    run.see(
        NodeJobFact(steps[1], 11, 0, NodeJobKind.REMOVED), NodeJobFact(steps[2], 12, 0, NodeJobKind.REMOVED)
    )
    assert (DagStatus.ABORTED, 1) == result(run)


@pytest.mark.parametrize(("code", "expected"), [(0, (DagStatus.OK, 0)), (4, (DagStatus.NODE_FAILED, 1))])
def test_the_final_node_decides(code: int, expected: tuple[int, int]) -> None:
    """It runs although a node has failed, and its result alone counts; the rescue DAG is due before."""
    run = driver(_with_final(), lambda node, _attempt, _part: code if node == 2 else 1)
    run.run()
    assert expected == result(run)
    assert [0, 2] == [step.node for step in run.submitted]
    [stopping] = [event for event in run.events if isinstance(event, WorkflowStopping)]
    assert (DagStatus.NODE_FAILED, 1) == (stopping.status, stopping.exit_code)


def _with_final() -> Plan:
    starts, ends, weak = edges(3, [(0, 1, False)])
    return Plan(names=["A", "B", "F"], starts=starts, ends=ends, weak=weak, final=2)


def test_a_removed_workflow_runs_its_final_node_and_ends_with_2() -> None:
    """Its jobs are removed first."""
    run = driver(_with_final())
    run.submit()
    run.feed(WorkflowRemoved(by="ann"))
    run.run()
    assert (DagStatus.REMOVED, 2) == result(run)
    assert [0, 2] == [step.node for step in run.submitted]


def test_a_provisioner_comes_first_and_services_stop_at_the_end() -> None:
    """Nodes wait until the provisioner says that it is ready; a service is removed when all is done."""
    starts, ends, weak = edges(3, [])
    run = driver(
        Plan(names=["A", "P", "S"], starts=starts, ends=ends, weak=weak, provisioner=1, services=[2])
    )
    assert [2, 1] == [step.node for step in run.workflow.orders]
    for cluster, node in ((20, 2), (21, 1)):
        run.see(NodeJobFact(NodeStep(node, 0, NodePart.JOB), cluster, -1, NodeJobKind.SUBMITTED, 1))
    assert not run.workflow.orders
    run.see(NodeJobFact(NodeStep(1, 0, NodePart.JOB), 21, 0, NodeJobKind.PROVISIONED))
    assert [0] == [step.node for step in run.workflow.orders]
    run.see(NodeJobFact(NodeStep(0, 0, NodePart.JOB), 22, -1, NodeJobKind.SUBMITTED, 1))
    run.see(NodeJobFact(NodeStep(0, 0, NodePart.JOB), 22, 0, NodeJobKind.COMPLETED))
    [removal] = [event for event in run.events if isinstance(event, JobsRemovalOrdered)]
    assert [20, 21] == removal.clusters
    for cluster, node in ((20, 2), (21, 1)):
        run.see(NodeJobFact(NodeStep(node, 0, NodePart.JOB), cluster, 0, NodeJobKind.REMOVED))
    assert (DagStatus.OK, 0) == result(run)


def test_a_provisioner_that_ends_early_ends_the_workflow() -> None:
    """There is nothing for the nodes to run on."""
    starts, ends, weak = edges(2, [])
    run = driver(Plan(names=["A", "P"], starts=starts, ends=ends, weak=weak, provisioner=1))
    run.run()
    assert (DagStatus.ABORTED, 1) == result(run)
    assert [1] == [step.node for step in run.submitted]


def test_halted_work_ends_and_resumed_work_goes_on() -> None:
    """Nothing begins while it is halted; POST scripts still run; at rest the workflow ends with status 6."""
    run = driver(chain("A", "B", post={0: None}))
    run.submit()
    run.feed(WorkflowHalted(by="ann"))
    run.end_one()
    assert [NodeStep(0, 0, NodePart.POST)] == list(run.workflow.orders)
    resumed = driver(chain("A", "B", post={0: None}))
    resumed.feed(WorkflowHalted(by="ann"), WorkflowResumed(by="ann"))
    resumed.run()
    assert (DagStatus.OK, 0) == result(resumed)
    run.run()
    assert (DagStatus.HALTED, 1) == result(run)
    assert [NodeState.DONE, NodeState.READY] == run.states()


def test_a_cycle_is_told_when_nothing_can_go_on() -> None:
    """What does not wait for it has run."""
    starts, ends, weak = edges(3, [(1, 2, False), (2, 1, False)])
    run = driver(Plan(names=["A", "B", "C"], starts=starts, ends=ends, weak=weak))
    run.run()
    assert (DagStatus.CYCLE, 1) == result(run)
    assert [NodeState.DONE, NodeState.WAITING, NodeState.WAITING] == run.states()


def test_a_script_that_defers_itself_runs_again_later() -> None:
    """Not before its time, and as a job of its own."""
    codes = [9, 9, 0, 0]
    run = driver(chain("A", pre={0: Deferral(9, 60)}), lambda _node, _attempt, _part: codes.pop(0))
    run.run()
    assert (DagStatus.OK, 0) == result(run)
    assert [(NodePart.PRE, 0), (NodePart.PRE, 1), (NodePart.PRE, 2), (NodePart.JOB, 0)] == [
        (step.part, step.run) for step in run.submitted
    ]
    assert 1120.0 == run.now


def test_jobs_that_cannot_be_submitted_fail_their_node() -> None:
    """A POST script learns of it; without one the node is tried again like any other."""
    run = driver(chain("A", retries={0: Retries(1)}))
    run.on_submit = lambda step: "no such file" if step.attempt == 0 else ""
    run.run()
    assert (DagStatus.OK, 0) == result(run)
    assert [NodeStep(0, 1, NodePart.JOB)] == run.submitted


@pytest.mark.parametrize(
    ("rule", "failing", "state", "removals"),
    [
        (None, 1, NodeState.FAILED, 1),
        (Tolerance(1), 1, NodeState.DONE, 0),
        (Tolerance(10, percent=True), 2, NodeState.FAILED, 1),
        (Tolerance(1, wait=True), 2, NodeState.FAILED, 0),
    ],
)
def test_some_jobs_of_a_node_may_fail(
    rule: Tolerance | None, failing: int, state: NodeState, removals: int
) -> None:
    """With more than that the others are removed at once, unless the rule waits for them."""
    run = driver(chain("A", tolerances={} if rule is None else {0: rule}))
    step = NodeStep(0, 0, NodePart.JOB)
    run.see(NodeJobFact(step, 5, -1, NodeJobKind.SUBMITTED, 10))
    run.see(*[NodeJobFact(step, 5, proc, NodeJobKind.COMPLETED, 1) for proc in range(failing)])
    assert removals == sum(isinstance(event, JobsRemovalOrdered) for event in run.events)
    ended = NodeJobKind.REMOVED if removals else NodeJobKind.COMPLETED
    run.see(*[NodeJobFact(step, 5, proc, ended) for proc in range(failing, 10)])
    assert [state] == run.states()


def test_hold_scripts_run_for_each_hold() -> None:
    """One for each time that a job of the node is held, each with a number of its own."""
    run = driver(chain("A", hold=[0]))
    step = NodeStep(0, 0, NodePart.JOB)
    run.see(NodeJobFact(step, 5, -1, NodeJobKind.SUBMITTED, 1), NodeJobFact(step, 5, 0, NodeJobKind.HELD))
    run.see(NodeJobFact(step, 5, 0, NodeJobKind.RELEASED), NodeJobFact(step, 5, 0, NodeJobKind.HELD))
    assert [NodeStep(0, 0, NodePart.HOLD, 0), NodeStep(0, 0, NodePart.HOLD, 1)] == list(run.workflow.orders)


def test_a_post_script_may_run_after_a_failed_pre_script() -> None:
    """DAGMAN_ALWAYS_RUN_POST: then its result is that of the node."""
    run = driver(
        chain("A", pre={0: None}, post={0: None}),
        lambda _node, _attempt, part: int(part == NodePart.PRE),
        always_run_post=True,
    )
    run.run()
    assert (DagStatus.OK, 0) == result(run)
    assert [NodePart.PRE, NodePart.POST] == [step.part for step in run.submitted]


def test_a_save_point_is_reached_once() -> None:
    """When the node starts for the first time, not when it is tried again."""
    run = driver(
        chain("A", "B", save_points=[1], retries={1: Retries(2)}), lambda node, _attempt, _part: node
    )
    run.run()
    assert [1] == [event.node for event in run.events if isinstance(event, SavePointReached)]


def test_a_join_lets_its_children_go_when_all_its_parents_are_done() -> None:
    """Two parents and two children through a join, which nobody sees."""
    starts, ends, weak = edges(5, [(0, 4, False), (1, 4, False), (4, 2, False), (4, 3, False)])
    plan = Plan(names=["A", "B", "C", "D"], joins=1, starts=starts, ends=ends, weak=weak)
    run = driver(plan)
    run.run()
    assert {0, 1} == {step.node for step in run.submitted[:2]}
    assert (DagStatus.OK, 0) == result(run)
    failed = driver(plan, lambda node, _attempt, _part: int(node == 0))
    failed.run()
    assert [NodeState.FAILED, NodeState.DONE, NodeState.FUTILE, NodeState.FUTILE] == failed.states()


def test_a_plan_that_speaks_of_others_nodes_is_refused() -> None:
    """Before anything is recorded of it."""
    with pytest.raises(ValueError, match="node 4"):
        driver(chain("A", noop=[4]))
