"""A workflow whose DAG job is removed hears of it, also if that is before it begins, or while its service is away."""

import time

import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.replay import ROLE, served_frames
from kettle.eventsourcing.shard import Shard
from kettle_services.dagman.commands import WorkflowCommands
from kettle_services.dagman.domain.decisions import react
from kettle_services.dagman.domain.workflow import Workflow
from kettle_services.dagman.following import Following
from kettle_services.dagman.record import Record
from kettle_wire.ads import Ad
from kettle_wire.codes import DagStatus, JobStatus, NodePart, Universe, VacateCode
from kettle_wire.commands.dagman import StartWorkflow
from kettle_wire.commands.queue import QUERY_JOBS, JobAds, QueryJobs
from kettle_wire.events import Ending, Event, JobRemoved, JobVacated, encode
from kettle_wire.events.workflow import WorkflowRemoved
from kettle_wire.frames import Entry, Frame
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.subjects import Subjects
from kettle_wire.workflows import Plan, WorkflowOptions, packed

from .interpreter import started

SUBJECTS = Subjects("pool")
PLAN = Plan(names=["A", "F"], starts=bytes(12), final=1)
GONE = Ending(code=VacateCode.JobRemoved, reason="the job had been removed")


class Service:
    """A dagman whose schedd has one DAG job."""

    def __init__(self, record: Record, bus: MemoryBus) -> None:
        self.record = record
        self.following = Following(bus, SUBJECTS, "ap", record)
        self.commands = WorkflowCommands(bus, "ap", record, self.following, lambda _caller: False)

    async def start(self) -> Workflow:
        request = StartWorkflow(
            workflow=7, files=[], directory="/", digest="", plan=packed(PLAN), options=WorkflowOptions()
        )
        await self.commands.start(request, user("ann"))
        return self.record.workflows[7]


async def service(dag_job: Ad, begun: Workflow | None = None) -> Service:
    """With what its schedd says of the DAG job; `begun`: the workflow, as the log has it."""

    async def query(_request: QueryJobs, _caller: Identity) -> JobAds:
        return JobAds(jobs=[dag_job], total=1)

    log, server = MemoryLog(), MemoryServer()
    await log.take("schedd.ap", owner="schedd")
    schedd = MemoryBus(server, subjects=SUBJECTS, identity=daemon("schedd"))
    await schedd.serve("schedd", "ap", [Served(QUERY_JOBS, query)], version="1")
    await schedd.serve(ROLE, "schedd.ap", [served_frames(log, "schedd.ap")], version="1")
    shard = Shard(log, await log.take("dagman.ap", owner="one"), [], answers=10)
    record = await Record.recall(log, MemoryWorkingSet(log), shard, interval=60.0)
    if begun is not None:
        record.begin(begun)
    return Service(record, MemoryBus(server, subjects=SUBJECTS, identity=daemon("dagman")))


def dag_job(status: JobStatus, *, runs: bool) -> Ad:
    return {
        "ClusterId": 7,
        "Owner": "ann",
        "JobUniverse": int(Universe.SCHEDULER),
        "JobStatus": int(status),
        "CurrentHosts": int(runs),
        "RemoveReason": "no longer wanted",
    }


def frame(*events: Event) -> Frame:
    """What the schedd says of the DAG job."""
    entries = [Entry("job/7.0", 1, type(event).__struct_config__.tag, encode(event)) for event in events]  # type: ignore[arg-type]
    return Frame("schedd.ap", 1, 4, 9, 1, entries)


@pytest.mark.parametrize("apart", [False, True])
async def test_the_end_of_a_process_ends_a_removed_workflow_after_a_restart(apart: bool) -> None:
    """The service that hears of the end is another one than that which has heard of the removal, or hears of both at once."""
    begun = Workflow(started(PLAN))
    react(begun, [], time.time())
    if apart:
        react(begun, [WorkflowRemoved(by="ann")], time.time())
    ended = JobVacated(attempt=1, ending=GONE)
    asked = await service(dag_job(JobStatus.REMOVED, runs=False), begun)
    asked.following.take(frame(ended) if apart else frame(JobRemoved(by="ann"), ended))
    assert begun.ended is not None
    assert DagStatus.REMOVED == begun.ended.status


async def test_the_end_of_an_attempt_that_nobody_removed_ends_nothing() -> None:
    """The DAG job runs again, and goes on."""
    begun = Workflow(started(PLAN))
    react(begun, [], time.time())
    asked = await service(dag_job(JobStatus.IDLE, runs=False), begun)
    asked.following.take(frame(JobVacated(attempt=1, ending=GONE)))
    assert begun.ended is None


async def test_a_workflow_that_begins_when_its_dag_job_is_removed_comes_to_its_end() -> None:
    """No node runs but FINAL; with what was said to its DAG job before it began."""
    workflow = await (await service(dag_job(JobStatus.REMOVED, runs=True))).start()
    assert [(1, NodePart.JOB)] == [(step.node, step.part) for step in workflow.orders]
    assert workflow.stop is not None
    assert DagStatus.REMOVED == workflow.stop.status


@pytest.mark.parametrize("status", [JobStatus.REMOVED, JobStatus.COMPLETED])
async def test_no_workflow_begins_whose_dag_job_is_over(status: JobStatus) -> None:
    """It stays in the queue for its results, and nobody would carry anything out."""
    with pytest.raises(RefusedError, match="DAG job 7 is over"):
        await (await service(dag_job(status, runs=False))).start()


async def test_a_removed_dag_job_that_stays_in_the_queue_ends_its_workflow() -> None:
    """It was removed while it did not run: nothing more is said of it."""
    begun = Workflow(started(PLAN))
    react(begun, [WorkflowRemoved(by="ann")], time.time())
    asked = await service(dag_job(JobStatus.REMOVED, runs=False), begun)
    await asked.following.end_left([7])
    assert begun.ended is not None
    assert DagStatus.REMOVED == begun.ended.status
