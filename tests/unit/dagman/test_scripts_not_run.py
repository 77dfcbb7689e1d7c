"""Scripts that cannot be executed: their jobs are held, and the workflow takes them out of the queue."""

from random import Random
from typing import Any

import pytest

from kettle_services.dagman.domain.explanations import explained
from kettle_services.dagman.domain.reading import Reader
from kettle_wire.codes import DagStatus, HoldCode, NodeJobKind, NodePart, NodeState, NodeValue
from kettle_wire.events import JobHeld, encode, tag_of
from kettle_wire.events.workflow import JobsRemovalOrdered, NodeJobFact, NodeJobsSeen, NodeStep
from kettle_wire.frames import Entry, Frame
from kettle_wire.workflows import AbortRule, Plan, Retries

from .interpreter import Driver, shown, started

DENIED = "program: [Errno 13] Permission denied: '/home/ann/pre.sh'"
CANNOT = f"the script cannot be run: {DENIED}"
PRE = NodeStep(0, 0, NodePart.PRE)
CLUSTER = 9
FRAME = 50
REASONS = {NodeJobKind.HELD: DENIED, NodeJobKind.REMOVED: f"removed by the workflow of DAG job 7: {CANNOT}"}


def driver(outcome: int = 0, **rules: Any) -> Driver:
    """A workflow of node A, and of one more if the rules name it."""
    names = ["A", "F"] if "final" in rules else ["A"]
    plan = Plan(names=names, starts=bytes(4 * (len(names) + 1)), **rules)
    made = Driver(started(plan), lambda _node, _attempt, _part: outcome, Random(1))
    made.feed()
    return made


def see(run: Driver, step: NodeStep, kind: NodeJobKind, value: int = 0, *, cluster: int = CLUSTER) -> None:
    """Something happens to a job, with the reason that the schedd would give."""
    fact = NodeJobFact(step, cluster, -1 if kind is NodeJobKind.SUBMITTED else 0, kind, value)
    run.feed(NodeJobsSeen(frame=FRAME, facts=[fact], reasons={0: REASONS[kind]} if kind in REASONS else {}))


def held(run: Driver, step: NodeStep, code: int = HoldCode.FailedToCreateProcess) -> list[JobsRemovalOrdered]:
    """What is removed because the script of a step is held."""
    see(run, step, NodeJobKind.SUBMITTED, 1)
    see(run, step, NodeJobKind.HELD, code)
    assert shown(run.workflow) == shown(run.replayed())
    return [event for event in run.events if isinstance(event, JobsRemovalOrdered)]


@pytest.mark.parametrize("code", [HoldCode.FailedToCreateProcess, HoldCode.UnableToOpenOutput])
def test_a_pre_script_that_cannot_be_run_fails_its_node(code: int) -> None:
    """It is removed with why it was held, and that is why the node has failed; a retry is one."""
    run = driver(pre={0: None}, retries={0: Retries(1)})
    assert [JobsRemovalOrdered(clusters=[CLUSTER], reason=CANNOT)] == held(run, PRE, code)
    assert ["Its PRE script, job 9.0, is being removed."] == explained(run.workflow, 0, run.now).sentences
    see(run, PRE, NodeJobKind.REMOVED)
    again = NodeStep(0, 1, NodePart.PRE)
    assert [again] == list(run.workflow.orders)
    see(run, again, NodeJobKind.SUBMITTED, 1)
    see(run, again, NodeJobKind.HELD, code)
    see(run, again, NodeJobKind.REMOVED)
    assert [NodeState.FAILED] == run.states()
    assert NodeValue.REMOVED == run.workflow.values[0]
    [sentence] = explained(run.workflow, 0, run.now).sentences
    assert DENIED in sentence
    assert run.workflow.ended is not None
    assert (DagStatus.NODE_FAILED, 1) == (run.workflow.ended.status, run.workflow.ended.exit_code)
    assert shown(run.workflow) == shown(run.replayed())


def test_a_hold_script_that_cannot_be_run_keeps_no_workflow_from_its_end() -> None:
    """Its job is over when it is removed; the node whose job was held has not failed for it."""
    run = driver(hold=[0])
    job, script = NodeStep(0, 0, NodePart.JOB), NodeStep(0, 0, NodePart.HOLD)
    for kind, value in ((NodeJobKind.SUBMITTED, 1), (NodeJobKind.HELD, HoldCode.UserRequest)):
        see(run, job, kind, value, cluster=8)
    assert [JobsRemovalOrdered(clusters=[CLUSTER], reason=CANNOT)] == held(run, script)
    see(run, job, NodeJobKind.COMPLETED, cluster=8)
    assert run.workflow.ended is None
    see(run, script, NodeJobKind.REMOVED)
    assert run.workflow.ended is not None
    assert DagStatus.OK == run.workflow.ended.status


def test_a_script_of_the_final_node_that_cannot_be_run_ends_an_aborted_workflow() -> None:
    """What an abort removes are the jobs of the others; this one goes because it cannot be run."""
    run = driver(3, final=1, pre={1: None}, aborts={0: AbortRule(3)})
    while run.workflow.stopping is None:
        assert run.step()
    script = NodeStep(1, 0, NodePart.PRE)
    assert [JobsRemovalOrdered(clusters=[CLUSTER], reason=CANNOT)] == held(run, script)
    see(run, script, NodeJobKind.REMOVED)
    assert run.workflow.ended is not None
    assert DagStatus.NODE_FAILED == run.workflow.ended.status


@pytest.mark.parametrize(
    "code", [HoldCode.UserRequest, HoldCode.Unspecified, HoldCode.JobPolicy, HoldCode.SystemPolicy]
)
def test_a_script_that_a_person_holds_waits_for_a_person(code: int) -> None:
    """So does one of which an earlier version has recorded that it was held, and not why; it is named."""
    run = driver(pre={0: None})
    assert [] == held(run, PRE, code)
    expected = "Its PRE script is held as job 9.0, and the node waits until that is released or removed."
    assert [expected] == explained(run.workflow, 0, run.now).sentences
    see(run, PRE, NodeJobKind.RELEASED)
    assert ["Its PRE script runs as job 9.0."] == explained(run.workflow, 0, run.now).sentences


def test_a_script_that_was_released_meanwhile_goes_on() -> None:
    """The frames that were read together say both."""
    run = driver(pre={0: None})
    see(run, PRE, NodeJobKind.SUBMITTED, 1)
    facts = [
        NodeJobFact(PRE, CLUSTER, 0, NodeJobKind.HELD, HoldCode.SystemPolicy),
        NodeJobFact(PRE, CLUSTER, 0, NodeJobKind.RELEASED),
    ]
    run.feed(NodeJobsSeen(frame=FRAME, facts=facts, reasons={0: "too many", 1: "enough room"}))
    assert not any(isinstance(event, JobsRemovalOrdered) for event in run.events)


def test_what_the_schedd_says_of_a_hold_is_read_with_its_code() -> None:
    """By which the holds of persons are known from the others."""
    run = driver(pre={0: None})
    see(run, PRE, NodeJobKind.SUBMITTED, 1)
    event = JobHeld(code=HoldCode.FailedToCreateProcess, reason=DENIED)
    entry = Entry(f"job/{CLUSTER}.0", 1, tag_of(event), encode(event))
    said = Reader({7: run.workflow}).read([Frame("schedd.ap", 1, FRAME, 9, 1, [entry])])
    assert [NodeJobFact(PRE, CLUSTER, 0, NodeJobKind.HELD, HoldCode.FailedToCreateProcess)] == said[7].facts
    assert {0: DENIED} == said[7].reasons
