"""What has failed begins again when nothing else can run."""

from random import Random
from typing import Any

from kettle_services.dagman.domain.decisions import react
from kettle_wire.codes import DagStatus, NodeState
from kettle_wire.events import decode, encode
from kettle_wire.events.workflow import WorkflowHalted, WorkflowRemoved, WorkflowRerunBegun, WorkflowStarted
from kettle_wire.workflows import AbortRule, Plan, Retries, WorkflowOptions

from .interpreter import Driver, Outcome, edges, shown, started


def diamond(**rules: Any) -> Plan:
    """B and C wait for A, and D for both."""
    starts, ends, weak = edges(4, [(0, 1, False), (0, 2, False), (1, 3, False), (2, 3, False)])
    return Plan(names=["A", "B", "C", "D"], starts=starts, ends=ends, weak=weak, **rules)


def run(plan: Plan, outcome: Outcome, reruns: int) -> Driver:
    """To its end, and then read again from its events."""
    made = Driver(started(plan, WorkflowOptions(reruns=reruns)), outcome, Random(1))
    made.run()
    assert shown(made.workflow) == shown(made.replayed())
    return made


def attempts(made: Driver, node: int) -> list[int]:
    """The attempts of a node of which a job was submitted."""
    return [step.attempt for step in made.submitted if step.node == node]


def until(attempt: int, node: int) -> Outcome:
    """A node fails before this attempt; all others never do."""
    return lambda each, tried, _part: int(each == node and tried < attempt)


def test_what_failed_begins_again_with_its_retries_and_nothing_that_is_done() -> None:
    """
    B fails in two runs of two attempts each and is done in the third run, after which D runs for the first time.
    """
    made = run(diamond(retries={1: Retries(1)}), until(4, 1), reruns=3)
    assert [NodeState.DONE] * 4 == made.states()
    assert [[0], [0, 1, 2, 3, 4], [0], [0]] == [attempts(made, node) for node in range(4)]
    assert [[1], [1]] == [each.nodes for each in made.events if isinstance(each, WorkflowRerunBegun)]
    assert made.workflow.ended is not None
    assert 0 == made.workflow.ended.exit_code


def test_it_ends_when_it_has_begun_again_often_enough() -> None:
    """C is reached in the first run, D in none; the workflow has failed as one without reruns has."""
    made = run(diamond(), until(9, 1), reruns=2)
    assert [NodeState.DONE, NodeState.FAILED, NodeState.DONE, NodeState.FUTILE] == made.states()
    assert [0, 1, 2] == attempts(made, 1)
    assert made.workflow.ended is not None
    assert (DagStatus.NODE_FAILED, 1) == (made.workflow.ended.status, made.workflow.ended.exit_code)


def test_what_was_stopped_does_not_begin_again() -> None:
    """One that is aborted, removed or halted ends as it is."""
    made = run(diamond(aborts={1: AbortRule(1)}), until(9, 1), reruns=2)
    assert [] == [each for each in made.events if isinstance(each, WorkflowRerunBegun)]
    for fact in (WorkflowRemoved(), WorkflowHalted()):
        made = Driver(started(diamond(), WorkflowOptions(reruns=2)), until(9, 1), Random(1))
        made.on_submit = lambda step: "no such file" if step.node == 1 else ""
        made.feed(fact)
        made.run()
        assert [] == [each for each in made.events if isinstance(each, WorkflowRerunBegun)]


def test_workflows_that_were_recorded_before_have_no_reruns() -> None:
    """What was recorded without a number of reruns is read as none, and one with a number keeps it."""
    for options in (WorkflowOptions(), WorkflowOptions(reruns=2)):
        read = decode(encode(started(diamond(), options)))
        assert isinstance(read, WorkflowStarted)
        assert options == read.options


def test_a_restart_between_the_decision_and_its_jobs_changes_nothing() -> None:
    """Read again at the moment at which it begins again, it orders the same."""
    made = Driver(started(diamond(), WorkflowOptions(reruns=1)), until(1, 1), Random(1))
    made.feed()
    while not any(isinstance(each, WorkflowRerunBegun) for each in made.events):
        assert made.step()
    read = made.replayed()
    assert [] == react(read, [], made.now)
    assert list(made.workflow.orders) == list(read.orders)
    assert [1] == [step.node for step in read.orders]
