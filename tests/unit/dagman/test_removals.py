"""
A workflow whose DAG job is removed hears of it, also if that is before it begins, or while its service is away.
"""

import time

import pytest

from kettle.bus.ports import RefusedError
from kettle_services.dagman.domain.decisions import react
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import DagStatus, JobStatus, NodePart, VacateCode
from kettle_wire.events import Ending, Event, JobRemoved, JobVacated, encode
from kettle_wire.events.workflow import WorkflowRemoved
from kettle_wire.frames import Entry, Frame
from kettle_wire.workflows import Plan, packed

from .interpreter import started
from .one_dagman import dag_job, dagman

PLAN = Plan(names=["A", "F"], starts=bytes(12), final=1)
GONE = Ending(code=VacateCode.JobRemoved, reason="the job had been removed")


def frame(*events: Event) -> Frame:
    """What the schedd says of the DAG job."""
    entries = [Entry("job/7.0", 1, type(event).__struct_config__.tag, encode(event)) for event in events]  # type: ignore[arg-type]
    return Frame("schedd.ap", 1, 4, 9, 1, entries)


@pytest.mark.parametrize("apart", [False, True])
async def test_the_end_of_a_process_ends_a_removed_workflow_after_a_restart(apart: bool) -> None:
    """
    The service that hears of the end is another one than that which has heard of the removal, or hears of both at once.
    """
    begun = Workflow(started(PLAN))
    react(begun, [], time.time())
    if apart:
        react(begun, [WorkflowRemoved(by="ann")], time.time())
    ended = JobVacated(attempt=1, ending=GONE)
    asked = await dagman(dag_job(JobStatus.REMOVED, runs=False), begun)
    asked.following.take([frame(ended) if apart else frame(JobRemoved(by="ann"), ended)])
    assert begun.ended is not None
    assert DagStatus.REMOVED == begun.ended.status


async def test_the_end_of_an_attempt_that_nobody_removed_ends_nothing() -> None:
    """The DAG job runs again, and goes on."""
    begun = Workflow(started(PLAN))
    react(begun, [], time.time())
    asked = await dagman(dag_job(JobStatus.IDLE, runs=False), begun)
    asked.following.take([frame(JobVacated(attempt=1, ending=GONE))])
    assert begun.ended is None


async def test_a_workflow_that_begins_when_its_dag_job_is_removed_comes_to_its_end() -> None:
    """No node runs but FINAL; with what was said to its DAG job before it began."""
    workflow = await (await dagman(dag_job(JobStatus.REMOVED, runs=True))).start(packed(PLAN))
    assert [(1, NodePart.JOB)] == [(step.node, step.part) for step in workflow.orders]
    assert workflow.stop is not None
    assert DagStatus.REMOVED == workflow.stop.status


@pytest.mark.parametrize("status", [JobStatus.REMOVED, JobStatus.COMPLETED])
async def test_no_workflow_begins_whose_dag_job_is_over(status: JobStatus) -> None:
    """It stays in the queue for its results, and nobody would carry anything out."""
    with pytest.raises(RefusedError, match="DAG job 7 is over"):
        await (await dagman(dag_job(status, runs=False))).start(packed(PLAN))


async def test_a_removed_dag_job_that_stays_in_the_queue_ends_its_workflow() -> None:
    """It was removed while it did not run: nothing more is said of it."""
    begun = Workflow(started(PLAN))
    react(begun, [WorkflowRemoved(by="ann")], time.time())
    asked = await dagman(dag_job(JobStatus.REMOVED, runs=False), begun)
    await asked.following.end_left([7])
    assert begun.ended is not None
    assert DagStatus.REMOVED == begun.ended.status
