"""What the process of a DAG job, and people, ask about workflows."""

import time
from collections.abc import Callable, Collection
from typing import Final

from kettle.bus.ports import Bus, RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle.jobs.ad import over
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.dagman.domain.decisions import may_be_reused, react
from kettle_services.dagman.domain.explanations import explained
from kettle_services.dagman.domain.workflow import Workflow
from kettle_services.dagman.following import DAG_JOB, Following
from kettle_services.dagman.record import STREAM, Record
from kettle_services.dagman.settings import NODES_OF_ONE
from kettle_wire.codes import JobStatus, NodeJobKind, NodeState, RefusalCode, Universe
from kettle_wire.commands.dagman import (
    ChangeWorkflow,
    ExplainNode,
    FollowWorkflow,
    NodeExplained,
    RecordedWorkflowEvent,
    RememberNodes,
    ReportFailures,
    ShowWorkflow,
    StartWorkflow,
    WorkflowChanged,
    WorkflowNews,
    WorkflowRuns,
    WorkflowState,
)
from kettle_wire.commands.queue import QUERY_JOBS, QueryJobs, Select
from kettle_wire.endpoint import Caller
from kettle_wire.events.workflow import (
    NodesRemembered,
    NodesReused,
    SubmissionsFailed,
    WorkflowEvent,
    WorkflowHalted,
    WorkflowRemoved,
    WorkflowResumed,
    WorkflowStarted,
    WorkflowThrottled,
)
from kettle_wire.identity import Identity
from kettle_wire.workflows import node_count

EVENTS: Final = 5_000
"""So many events are one answer at most."""
EVENT_BYTES: Final = 4 * 1024 * 1024
_PARENT: Final = "DAGManJobId"
"""Attribute of a job: of which workflow it is a node."""
_AGAIN_MS: Final = 10_000
"""After how long it is asked again whether there is room for a workflow."""
_REMEMBERED: Final = 200
"""Nodes of which is asked at a time what they have left."""
_WITHIN_S: Final = 10.0
_GATEWAY: Final = ("daemon", Caller.GATEWAY.value)


class WorkflowCommands:
    """Decides about the workflows of one record."""

    def __init__(
        self,
        bus: Bus,
        schedd: str,
        record: Record,
        following: Following,
        administers: Callable[[Identity], bool],
        *,
        most_nodes: int = NODES_OF_ONE,
    ) -> None:
        """
        `administers`: whether a person may change everybody's workflows; `most_nodes`: of all workflows of one owner together.
        """
        self._administers = administers
        self._most_nodes = most_nodes
        self._bus = bus
        self._schedd = schedd
        self._record = record
        self._following = following

    async def start(self, request: StartWorkflow, caller: Identity) -> Decision[WorkflowRuns]:
        """A workflow begins, or its process has come back."""
        number = request.workflow
        place, facts = 0, list[WorkflowEvent]()
        if (known := await self._record.find(number)) is None:
            place = await self._following.place()
            facts = await self._said_before(number, caller)
            known = self._record.workflows.get(number)  # its process may ask twice at a time
        if known is not None:
            self._require_owner(known, caller)
            digest = known.started.digest
            return Decision(lambda position: WorkflowRuns(position=position, digest=digest))
        started = WorkflowStarted(
            workflow=number,
            owner=caller.name,
            files=request.files,
            directory=request.directory,
            digest=request.digest,
            plan=request.plan,
            options=request.options,
            followed=place,
        )
        try:
            await self._require_room(number, caller.name, node_count(request.plan))
            workflow = _made(started)
        except ValueError as error:
            raise RefusedError(RefusalCode.UNACCEPTABLE, str(error)) from error
        events: list[WorkflowEvent] = [started, *react(workflow, facts, time.time())]
        self._record.begin(workflow)
        self._following.begin(workflow)
        changes = [(f"{STREAM}{number}", event) for event in events]
        return Decision(lambda position: WorkflowRuns(position=position, digest=request.digest), changes)

    async def _require_room(self, number: int, owner: str, nodes: int) -> None:
        """
        Raises RefusedError: the workflows of the owner would have more nodes than they may, for now or in any case.
        """
        most = self._most_nodes
        mine = {
            each.number: len(each.states)
            for each in self._record.workflows.values()
            if each.owner == owner and each.ended is None
        }
        there = sum(mine.values())
        if there + nodes <= most:
            return  # nothing was waited for, so nothing else of the owner has begun meanwhile
        says = f"the workflow has {nodes:,} nodes, and all of one owner together have {most:,} at most (max_nodes_per_owner of [dagman])"
        if nodes > most:
            raise RefusedError(RefusalCode.UNACCEPTABLE, f"{says}: submit it in parts")
        if await self._above(number, mine) == mine.keys():
            raise RefusedError(
                RefusalCode.UNACCEPTABLE,
                f"{says}: it is a part of your others, which have {there:,} and cannot end before it: submit it in parts",
            )
        raise RefusedError(
            RefusalCode.BUSY,
            f"{says}: it waits until some of yours have ended, which have {there:,}",
            retry_after_ms=_AGAIN_MS,
        )

    async def _above(self, number: int, others: Collection[int]) -> set[int]:
        """Of other workflows those whose part one is, as a node of a node."""
        found = await self._bus.call(
            QUERY_JOBS,
            self._schedd,
            QueryJobs(select=Select(clusters=[number, *others]), projection=["ClusterId", _PARENT]),
            deadline=_WITHIN_S,
        )
        parents = {ad.get("ClusterId"): ad.get(_PARENT) for ad in found.jobs}
        above: set[int] = set()
        one = parents.get(number)
        while isinstance(one, int) and one in others and one not in above:
            above.add(one)
            one = parents.get(one)
        return above

    async def _said_before(self, number: int, caller: Identity) -> list[WorkflowEvent]:
        """
        What was said to a DAG job of the caller before its workflow begins: nothing, or that it is removed, which is in frames that nobody
        reads for it.  Raises RefusedError: it is none, or is over.
        """
        select = Select(clusters=[number])
        found = await self._bus.call(
            QUERY_JOBS,
            self._schedd,
            QueryJobs(select=select, projection=DAG_JOB),
            deadline=_WITHIN_S,
        )
        mine = [
            ad
            for ad in found.jobs
            if ad.get("Owner") == caller.name and ad.get("JobUniverse") == int(Universe.SCHEDULER)
        ]
        if len(mine) != 1:
            raise RefusedError(
                RefusalCode.DENIED,
                f"cluster {number} is no DAG job of {caller.name} in the queue of {self._schedd}: it has to be one job "
                "of the scheduler universe",
            )
        if over(mine[0]):
            raise RefusedError(
                RefusalCode.DENIED,
                f"DAG job {number} is over: submit the DAG again, its workflow has not begun",
            )
        if mine[0]["JobStatus"] == JobStatus.REMOVED:
            return [WorkflowRemoved(by="", reason=str(mine[0].get("RemoveReason", "")))]
        return []

    async def follow(self, request: FollowWorkflow, caller: Identity) -> WorkflowNews:
        """What has happened, and what is to be done."""
        workflow = await self._known(request.workflow, caller)
        history = self._record.histories[request.workflow]
        await history.after(request.after, within=request.wait)
        # What is ordered may be on its way to the log, and so is then what it follows from: a POST script is told of both.
        orders = list(workflow.orders)
        await self._record.shard.committed()
        events: list[RecordedWorkflowEvent] = []
        size = 0
        for event in history.events[request.after : request.after + EVENTS]:
            size += len(bytes(event.data))
            if events and size > EVENT_BYTES:
                break
            events.append(event)
        if request.after + len(events) < len(history.events):
            return WorkflowNews(events=events, complete=False)
        remember = list(workflow.to_remember)[:_REMEMBERED]
        removals = [number for number, cluster in workflow.clusters.items() if cluster.removing]
        still = [step for step in orders if step in workflow.orders]
        return WorkflowNews(events=events, complete=True, orders=still, removals=removals, remember=remember)

    async def failed(self, request: ReportFailures, caller: Identity) -> Decision[WorkflowChanged]:
        """Jobs cannot be submitted."""
        workflow = await self._known(request.workflow, caller)
        failures = [each for each in request.failures if each.step in workflow.orders]
        facts: list[WorkflowEvent] = [SubmissionsFailed(failures=failures)] if failures else []
        return self._changed(workflow, facts)

    async def remember(self, request: RememberNodes, caller: Identity) -> Decision[WorkflowChanged]:
        """What nodes have left, and which are not run because it is still there."""
        workflow = await self._known(request.workflow, caller)
        reuses = [each for each in request.reuses if may_be_reused(workflow, each.step)]
        asked = {step.node for step in workflow.to_remember}
        memories = [each for each in request.memories if each.node in asked]
        others = [node for node in request.others if node in asked]
        facts: list[WorkflowEvent] = [NodesReused(reuses=reuses)] if reuses else []
        if memories or others:
            facts.append(NodesRemembered(memories=memories, others=others))
        return self._changed(workflow, facts)

    async def change(self, request: ChangeWorkflow, caller: Identity) -> Decision[WorkflowChanged]:
        """Halt, resume, other limits."""
        workflow = await self._found(request.workflow)
        if not self._administers(caller):
            self._require_owner(workflow, caller)
        facts: list[WorkflowEvent] = []
        if request.halt is not None and request.halt != workflow.halted:
            facts.append(
                WorkflowHalted(by=caller.name, reason=request.reason)
                if request.halt
                else WorkflowResumed(by=caller.name)
            )
        options = request.options or workflow.options
        categories = workflow.category_limits if request.categories is None else request.categories
        if (options, categories) != (workflow.options, workflow.category_limits):
            facts.append(WorkflowThrottled(options=options, categories=categories, by=caller.name))
        return self._changed(workflow, facts)

    def _changed(self, workflow: Workflow, facts: list[WorkflowEvent]) -> Decision[WorkflowChanged]:
        if facts and workflow.ended is None:
            self._following.changed(workflow.number, react(workflow, facts, time.time()))
        return Decision(lambda position: WorkflowChanged(position=position))

    async def show(self, request: ShowWorkflow, caller: Identity) -> WorkflowState:
        """How far a workflow is."""
        workflow = await self._known(request.workflow, caller)
        ended = workflow.ended
        return WorkflowState(
            workflow=workflow.number,
            owner=workflow.owner,
            files=workflow.started.files,
            directory=workflow.started.directory,
            counts={state.name.lower(): count for state in NodeState if (count := workflow.counts[state])},
            idle=workflow.procs[NodeJobKind.EVICTED],
            running=workflow.procs[NodeJobKind.STARTED],
            held=workflow.procs[NodeJobKind.HELD],
            options=workflow.options,
            reused=len(workflow.reuses),
            halted=workflow.halted,
            halted_because=workflow.halted_because,
            status=None if ended is None else ended.status,
            exit_code=None if ended is None else ended.exit_code,
            names=workflow.plan.names if request.nodes else [],
            states=bytes(map(workflow.state, range(len(workflow.states)))) if request.nodes else b"",
        )

    async def explain(self, request: ExplainNode, caller: Identity) -> NodeExplained:
        """Why a node is where it is."""
        workflow = await self._known(request.workflow, caller)
        names = workflow.plan.names
        try:
            node = names.index(request.node)
        except ValueError:
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"workflow {request.workflow} has no node {request.node}{did_you_mean(request.node, names)}",
            ) from None
        return explained(workflow, node, time.time())

    async def _known(self, number: int, caller: Identity) -> Workflow:
        """A workflow that the caller may look at: the gateway may look at all, and knows who may."""
        workflow = await self._found(number)
        if (caller.kind, caller.role) != _GATEWAY:
            self._require_owner(workflow, caller)
        return workflow

    async def _found(self, number: int) -> Workflow:
        """A workflow, also one that is over; what is told of it is recorded first."""
        self._record.flush()
        workflow = await self._record.find(number)
        if workflow is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"there is no workflow {number}: no DAG job of this number has run (kettle why {number} says where it is)",
            )
        return workflow

    def _require_owner(self, workflow: Workflow, caller: Identity) -> None:
        if not caller.is_person(workflow.owner):
            raise RefusedError(RefusalCode.DENIED, f"workflow {workflow.number} belongs to {workflow.owner}")


def _made(started: WorkflowStarted) -> Workflow:
    """
    Raises ValueError for a plan that is none, or from whose beginning others would read another number of nodes.
    """
    nodes = node_count(started.plan)
    workflow = Workflow(started)
    if nodes != len(workflow.states):
        raise ValueError("that is no plan of a workflow: it has the names of its nodes twice")
    return workflow
