"""
A dagman that is killed between a command and its answer: what was asked for has happened once when the answer comes.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import msgspec

from kettle.bus.nats import NatsBus
from kettle.bus.ports import Served
from kettle.bus.retryable import retryable
from kettle.client.connections.transport import TRY_S
from kettle.eventsourcing.replay import ROLE, served_frames
from kettle.retry.loop import retry
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, Owner, eventually, hosted, owned
from kettle_services.dagman.domain.reading import STEP
from kettle_services.dagman.settings import DagmanSettings
from kettle_services.dagman.wiring import serve
from kettle_wire.ads import Ad
from kettle_wire.attempts import ExitRecord
from kettle_wire.codes import JobStatus, NodePart, Universe
from kettle_wire.commands.dagman import (
    CHANGE_WORKFLOW,
    REMEMBER_NODES,
    REPORT_FAILURES,
    START_WORKFLOW,
    ChangeWorkflow,
    RememberNodes,
    ReportFailures,
    StartWorkflow,
)
from kettle_wire.commands.queue import QUERY_JOBS, JobAds, QueryJobs
from kettle_wire.events import ClusterSubmitted, JobCompleted, JobStarted, decode
from kettle_wire.events.workflow import (
    NodeJobsSeen,
    NodeMemory,
    NodeReuse,
    NodesChanged,
    NodeStep,
    StepFailure,
    WorkflowEvent,
    WorkflowStarted,
)
from kettle_wire.identity import Identity, user
from kettle_wire.workflows import Plan, WorkflowOptions, packed

from .deaths import Deaths, deaths

POINTS: Final = ("append.before", "append.committed", "append.released")
"""Decided and not recorded; recorded, and nobody knows; recorded, and the answer is on its way."""
A: Final = NodeStep(0, 0, NodePart.JOB)
PLAN: Final = packed(Plan(names=["A"]))
SCHEDD: Final = "schedd.ap"


class World:
    """A schedd that says what it is told to, and ann, who asks the dagman."""

    def __init__(self, backend: Backend, owner: Owner, ann: NatsBus) -> None:
        self._backend = backend
        self._owner = owner
        self._ann = ann

    async def ask(self, endpoint: Any, request: Any) -> None:
        """As the process of a DAG job does: again, until there is somebody who answers."""
        async with asyncio.timeout(PATIENCE_S):
            await retry(lambda: self._ann.call(endpoint, "ap", request, deadline=TRY_S), retryable=retryable)

    async def start(self, number: int) -> None:
        """The workflow begins: its only node is ordered."""
        options = WorkflowOptions(memo=True)
        await self.ask(
            START_WORKFLOW,
            StartWorkflow(workflow=number, files=[], directory="/", digest="", plan=PLAN, options=options),
        )

    async def run(self, number: int) -> None:
        """The job of the node is submitted, and runs to its end."""
        cluster = 1000 + number
        step = f"{number}/{A.node}/{A.attempt}/{A.part}/{A.run}"
        submitted = ClusterSubmitted(cluster=cluster, owner="ann", ad={STEP: step}, columns=[], rows=[[]])
        await self._owner.record(
            (f"cluster/{cluster}", submitted),
            (f"job/{cluster}.0", JobStarted(attempt=1)),
            (f"job/{cluster}.0", JobCompleted(attempt=1, exit=ExitRecord(code=0))),
            at_us=1,
        )

    async def recorded(self, number: int) -> list[object]:
        """
        All that is recorded of a workflow, without what differs from one to the next: numbers of clusters and frames, and what
        was said together.
        """
        found: list[object] = []
        for frame, _ in await self._backend.log.stream("dagman.ap", f"workflow/{number}"):
            event = decode(frame.entries[0].data)
            assert isinstance(event, WorkflowEvent)
            found += _told(event)
        return found


def _told(event: WorkflowEvent) -> list[object]:
    match event:
        case WorkflowStarted():
            return [msgspec.structs.replace(event, workflow=0, followed=0)]
        case NodeJobsSeen():
            return [(fact.step, fact.kind, fact.value) for fact in event.facts]
        case NodesChanged():
            return list(event.changes)
        case _:
            return [event]


Deed = Callable[[World, int], Coroutine[Any, Any, None]]


async def nothing(_world: World, _number: int) -> None:
    """It comes first."""


async def fail(world: World, number: int) -> None:
    failures = [StepFailure(A, "no such file")]
    await world.ask(REPORT_FAILURES, ReportFailures(workflow=number, failures=failures))


async def reuse(world: World, number: int) -> None:
    reuses = [NodeReuse(A, "0" * 64, {}, 3, "old", 4, 1)]
    await world.ask(REMEMBER_NODES, RememberNodes(workflow=number, reuses=reuses))


async def tell_what_is_left(world: World, number: int) -> None:
    memories = [NodeMemory(0, 4, "0" * 64, {})]
    await world.ask(REMEMBER_NODES, RememberNodes(workflow=number, memories=memories))


async def halt(world: World, number: int) -> None:
    await world.ask(CHANGE_WORKFLOW, ChangeWorkflow(workflow=number, halt=True, reason="enough"))


async def throttle(world: World, number: int) -> None:
    options = WorkflowOptions(max_jobs=3)
    await world.ask(CHANGE_WORKFLOW, ChangeWorkflow(workflow=number, options=options))


async def run(world: World, number: int) -> None:
    await world.run(number)


async def started(world: World, number: int) -> None:
    await world.start(number)


async def ran(world: World, number: int) -> None:
    """Its node has run, and it is not told yet what that has left."""
    await world.start(number)
    before = len(await world.recorded(number))
    await world.run(number)
    await eventually(partial(_is_told, world, number, before + 4))


async def _is_told(world: World, number: int, count: int) -> bool:
    """A submission, a start, an end, and that the node is done: so much has to be there."""
    return len(await world.recorded(number)) >= count


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a dagman."""

    before: Deed = started
    """What has happened to the workflow already."""
    deed: Deed
    adds: int = 1
    """Of what it is recorded as, so much has to be there before it is looked at."""
    asked: bool = True
    """Not if frames of the schedd say it, which nobody waits for."""


COMMANDS: Final = {
    "start": Command(before=nothing, deed=started),
    "failed": Command(deed=fail),
    "reused": Command(deed=reuse),
    "remembered": Command(before=ran, deed=tell_what_is_left),
    "halted": Command(deed=halt),
    "throttled": Command(deed=throttle),
    "seen": Command(deed=run, adds=4, asked=False),
}


@asynccontextmanager
async def world_of(backend: Backend) -> AsyncGenerator[World]:
    async def query(request: QueryJobs, _caller: Identity) -> JobAds:
        ads: list[Ad] = [
            {
                "ClusterId": number,
                "Owner": "ann",
                "JobUniverse": int(Universe.SCHEDULER),
                "JobStatus": int(JobStatus.RUNNING),
                "CurrentHosts": 1,
            }
            for number in request.select.clusters
        ]
        return JobAds(jobs=ads, total=len(ads))

    async with owned(backend, SCHEDD) as owner, backend.bus() as bus, backend.bus(user("ann")) as ann:
        await bus.serve("schedd", "ap", [Served(QUERY_JOBS, query)], version="1.0.0")
        await bus.serve(ROLE, SCHEDD, [served_frames(backend.log, SCHEDD)], version="1.0.0")
        yield World(backend, owner, ann)


async def test_a_command_is_carried_out_once_wherever_its_dagman_dies(backend: Backend) -> None:
    """
    Before it is recorded, after that, and when its answer is on the way: the record is that of a workflow over which nobody was
    killed, also when the command comes once more.
    """
    settings = backend.settings(DagmanSettings, name="ap")
    dagman = partial(hosted, "dagman", settings, serve)
    numbers = iter(range(100, 1_000))
    unharmed = {command: next(numbers) for command in COMMANDS}
    killed = {(command, point): next(numbers) for command in COMMANDS for point in POINTS}
    async with world_of(backend) as world, deaths(settings) as dying:
        async with dagman():
            for command, number in [*unharmed.items(), *((name, each) for (name, _), each in killed.items())]:
                await COMMANDS[command].before(world, number)
            for command, number in unharmed.items():
                already = len(await world.recorded(number))
                await COMMANDS[command].deed(world, number)
                await eventually(partial(_is_told, world, number, already + COMMANDS[command].adds))
        for (command, point), number in killed.items():
            expected, said = await world.recorded(unharmed[command]), COMMANDS[command]
            await _killed(dying, point, said.deed(world, number))
            async with dagman():
                for _ in range(2 if said.asked else 0):  # as who has no answer asks again; and once more
                    await said.deed(world, number)
                await eventually(partial(_is_told, world, number, len(expected)))
            assert expected == await world.recorded(number), (command, point)


async def _killed(dying: Deaths, point: str, deed: Coroutine[Any, Any, None]) -> None:
    """A dagman dies over a deed; whether there was an answer, and whether it has come, is as it happens."""
    asked = asyncio.ensure_future(deed)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await dying.die(point)
    finally:
        asked.cancel()
        await asyncio.wait([asked])
