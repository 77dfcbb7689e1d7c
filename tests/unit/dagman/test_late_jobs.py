"""Nodes whose jobs come into the queue little by little."""

import pytest

from kettle_services.dagman.domain.reading import STEP
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.attempts import ExitRecord
from kettle_wire.codes import JobStatus, NodeState
from kettle_wire.events import (
    Event,
    FactoryClosed,
    FactoryMaterialized,
    FactorySubmitted,
    JobCompleted,
    encode,
    tag_of,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.workflows import Plan

from .interpreter import started
from .one_dagman import Service, dag_job, dagman

ENDED = JobCompleted(attempt=1, exit=ExitRecord(code=0))


async def of_three() -> tuple[Service, Workflow]:
    """A workflow with one node, of whose three jobs two were made, and the first has ended."""
    asked = await dagman(dag_job(JobStatus.RUNNING, runs=True))
    workflow = await asked.start(started(Plan(names=["A"])).plan)
    (step,) = workflow.orders
    ad = {STEP: f"7/{step.node}/0/{step.part}/0"}
    take(
        asked,
        "cluster/9",
        FactorySubmitted(cluster=9, owner="ann", ad=ad, columns=["N"], rows=[[0], [1], [2]]),
    )
    take(asked, "factory/9", FactoryMaterialized(cluster=9, owner="ann", first=0, count=2))
    take(asked, "job/9.0", ENDED)
    return asked, workflow


def take(asked: Service, stream: str, event: Event) -> None:
    """What the schedd says next."""
    asked.following.take([Frame("schedd.ap", 1, 4, 9, 1, [Entry(stream, 1, tag_of(event), encode(event))])])


@pytest.mark.parametrize("closed", [False, True])
async def test_a_node_is_done_when_its_jobs_have_ended_and_none_is_to_come(*, closed: bool) -> None:
    """All of them are made, or the last one never is."""
    asked, workflow = await of_three()
    assert NodeState.QUEUED == workflow.states[0]
    take(asked, "job/9.1", ENDED)
    assert NodeState.QUEUED == workflow.states[0]
    if closed:
        take(asked, "factory/9", FactoryClosed(cluster=9, owner="ann", first=2, count=1))
    else:
        take(asked, "factory/9", FactoryMaterialized(cluster=9, owner="ann", first=2, count=1))
        take(asked, "job/9.2", ENDED)
    assert NodeState.DONE == workflow.states[0]
    assert workflow.ended is not None
