"""A workflow as people look at it: states, attempts, reasons, and what each node waited for."""

import msgspec
import pytest
from tests.unit.dag.files.story import CHECK, MAKE, PLAN, SEND, SKIP, START, STORY, WORK, changed

from kettle.dag.view.reasons import Reasons
from kettle.dag.view.run_view import PartJobs, RunView
from kettle.dag.view.steps import Phase
from kettle_wire.codes import NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import (
    NodeJobFact,
    NodeJobsSeen,
    NodeReuse,
    NodesReused,
    NodeStep,
    WorkflowHalted,
    WorkflowStarted,
)
from kettle_wire.workflows import Plan, WorkflowOptions, packed


def seen(upto: float = 100, plan: Plan = PLAN) -> RunView:
    """The story up to so many seconds after its start."""
    (_, started), *others = STORY
    assert isinstance(started, WorkflowStarted)
    view = RunView(START, msgspec.structs.replace(started, plan=packed(plan)))
    for after, event in others:
        if after <= upto:
            view.apply(START + after, event)
    return view


def test_every_attempt_has_its_jobs_and_what_they_came_to() -> None:
    """Scripts and jobs are told by attempt, with exit codes, signals below zero, and clusters."""
    view = seen()
    assert [PartJobs(0, NodePart.JOB, 11, 1, 2), PartJobs(1, NodePart.JOB, 12, 1, 0)] == view.jobs[WORK]
    assert [PartJobs(0, NodePart.JOB, 13, 1, -9), PartJobs(0, NodePart.POST, 15, 1, 3)] == view.jobs[CHECK]
    assert [PartJobs(0, NodePart.PRE, 8, 1, 0), PartJobs(0, NodePart.JOB, 10, 1, 0)] == view.jobs[MAKE]
    assert (1, 0) == (view.attempt(WORK), view.attempt(MAKE))


def test_states_are_those_of_the_moment() -> None:
    """A node runs while a job of it does; counts are of the states that are shown."""
    states = [NodeState.DONE, NodeState.DONE, NodeState.RUNNING, NodeState.QUEUED, NodeState.SKIPPED]
    view = seen(11)
    assert states == [view.state(node) for node in range(5)]
    assert (2, 1, 1, 1) == tuple(
        view.counts[each] for each in (NodeState.DONE, NodeState.RUNNING, NodeState.QUEUED, NodeState.SKIPPED)
    )
    assert (0, 1, 1) == view.job_counts
    assert sum(seen().counts) == 5


@pytest.mark.parametrize(
    ("node", "upto", "reason"),
    [
        (SEND, 11, "its jobs are on hold: No room"),
        (SEND, 12, "its jobs wait for a machine"),
        (WORK, 7, "its jobs are to be submitted"),
        (CHECK, 13, "its POST script is job 15.0"),
        (CHECK, 100, "exit code 3"),
        (SKIP, 100, "its PRE script said that nothing is to be done"),
        (MAKE, 100, ""),
    ],
)
def test_each_state_has_its_reason(node: int, upto: float, reason: str) -> None:
    """Why a node is where it is follows from what is recorded."""
    assert reason == Reasons(seen(upto)).of(node)


def test_a_release_takes_the_reason_of_the_hold_away() -> None:
    """Why a job was held and released is not said of how it has ended."""
    view = seen(11)
    released = NodeJobFact(NodeStep(SEND, 0, NodePart.JOB), 14, 0, NodeJobKind.RELEASED)
    view.apply(START + 12, NodeJobsSeen(frame=1, facts=[released], reasons={0: "Data files spooled"}))
    view.apply(START + 13, changed((SEND, NodeState.FAILED, 0, 1)))
    assert "exit code 1" == Reasons(view).of(SEND)


def test_parents_are_seen_through_joins() -> None:
    """
    A node that waits names those before it that have not finished, and a halt is the reason of those that could begin.
    """
    edges = Plan(
        names=["a", "b", "c"],
        joins=1,
        starts=b"".join(each.to_bytes(4, "little") for each in (0, 1, 2, 2, 3)),
        ends=b"".join(each.to_bytes(4, "little") for each in (3, 3, 2)),
        weak=bytes(3),
    )
    view = seen(-1, edges)
    assert "it waits for a, b" == Reasons(view).of(2)
    view.apply(START + 1, changed((0, NodeState.READY)))
    view.options = WorkflowOptions(max_jobs=1)
    view.apply(START + 1, changed((1, NodeState.QUEUED)))
    assert "it waits for its turn: 1 nodes have jobs, and that is the most (maxjobs)" == Reasons(view).of(0)
    view.apply(START + 1, WorkflowHalted(by="ada", reason="lunch"))
    assert "the workflow is halted: lunch" == Reasons(view).of(0)
    view.apply(START + 2, changed((0, NodeState.DONE)))
    assert "it waits for b" == Reasons(view).of(2)


def test_waiting_is_told_apart_from_running() -> None:
    """Each attempt of a node is a row of phases, and the sums over all nodes are those of the phases."""
    view = seen()
    phases = [(step.at - START, step.phase, step.attempt) for step in view.steps.of(SEND)]
    assert [
        (9, Phase.SUBMISSION, 0),
        (10, Phase.MACHINE, 0),
        (11, Phase.HELD, 0),
        (12, Phase.MACHINE, 0),
        (13, Phase.RUNNING, 0),
        (14, Phase.OVER, 0),
    ] == phases
    assert {0, 1} == {step.attempt for step in view.steps.of(WORK)}
    seconds = view.seconds(START + 1000)
    total = dict.fromkeys(Phase, 0.0)
    for node in range(5):
        steps = view.steps.of(node)
        total[Phase.PARENTS] += steps[0].at - START
        for step, following in zip(steps, [*(each.at for each in steps[1:]), START + 14], strict=True):
            total[step.phase] += following - step.at
    assert [total[phase] for phase in list(Phase)[:-1]] == pytest.approx(list(seconds)[:-1])


def test_of_a_node_that_was_not_run_is_said_whose_result_it_has() -> None:
    """It is done, and there is something to be said about it."""
    view = seen(0)
    reuse = NodeReuse(NodeStep(MAKE, 0, NodePart.JOB), "0" * 64, {}, 3, "old", 4, 1_795_651_200)
    view.apply(START + 1, NodesReused(reuses=[reuse]))
    view.apply(START + 1, changed((MAKE, NodeState.DONE)))
    assert (
        Reasons(view)
        .of(MAKE)
        .startswith("it was not run: it is the same as node old of workflow 3, which ran as job 4.0")
    )
