"""What is asked about workflows and their nodes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

import msgspec

from kettle.bus.ports import Bus
from kettle.dag.view.drawing import by_name
from kettle.dag.view.run_view import RunView
from kettle.dag.view.steps import Phase
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.page_tokens import page_token, place_of
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_services.gateway.rest.workflows import listing
from kettle_services.gateway.rest.workflows.access import WorkflowAccess, no_such_workflow
from kettle_services.gateway.rest.workflows.choosing import STATE_NAMES, chosen, described
from kettle_services.gateway.rest.workflows.views import Watched
from kettle_wire.codes import DagStatus, NodeState, Universe
from kettle_wire.commands.dagman import EXPLAIN_NODE, ExplainNode
from kettle_wire.rest.jobs import GetJob, Job, Jobs, ListHistory, ListJobs
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.workflows import (
    GetNodeWhy,
    GetWorkflow,
    ListNodes,
    ListWorkflows,
    NodeWhy,
    Workflow,
    WorkflowJobs,
    WorkflowLimits,
    WorkflowNodes,
    Workflows,
    WorkflowStateName,
)

_EVERYBODY: Final = "*"
_WITHIN_S: Final = 10.0
Listing = Callable[[Asked], Awaitable[Answer]]


class _ListPlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a list of workflows goes on: in the queues or in the history, and the page token there."""

    where: Literal["queue", "history"]
    page: Annotated[str, msgspec.Meta(max_length=2048)]


class WorkflowQuestions:
    """Answers them."""

    def __init__(
        self, bus: Bus, access: WorkflowAccess, jobs: Listing, job: Listing, freshness: Freshness
    ) -> None:
        """`jobs`: lists of jobs; `job`: one job."""
        self._bus = bus
        self._access = access
        self._jobs = jobs
        self._job = job
        self._freshness = freshness

    async def workflows(self, asked: Asked) -> Answer:
        """Workflows in the queues, then those in the history."""
        parameters: ListWorkflows = asked.parameters
        owners = self._owners(asked, parameters)
        wanted = listing.filter_of(parameters.state, parameters.name)
        place = place_of(parameters, parameters.page, _ListPlace) if parameters.page else None
        found: list[Job] = []
        following: _ListPlace | None = place or _ListPlace("queue", "")
        frames: dict[str, int] = {}
        while following is not None and len(found) < parameters.limit:
            kind = ListJobs if following.where == "queue" else ListHistory
            question = kind(
                owner=[*owners],
                schedd=parameters.schedd,
                filter=wanted,
                fields=[*listing.FIELDS],
                limit=parameters.limit - len(found),
                page=following.page,
                at_least=parameters.at_least,
            )
            page = await self._listed(asked, question)
            found += page.jobs or ()
            frames = page.frames
            following = _following(parameters, following, page)
            if page.next and not page.jobs:
                break  # it has searched for as long as it may
        token = page_token(parameters, following) if following is not None else None
        return Answer(Workflows(workflows=[*map(listing.of_job, found)], next=token, frames=frames))

    def _owners(self, asked: Asked, parameters: ListWorkflows) -> Sequence[str]:
        """Raises RequestRefused: they may not be looked at."""
        me = asked.person.name
        if not parameters.owner or parameters.owner == [me]:
            return [me]
        if not self._access.administers(asked.person):
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                f"workflows of others are for administrators to list, and {me} is none: leave owner out",
            )
        return [] if _EVERYBODY in parameters.owner else parameters.owner

    async def _listed(self, asked: Asked, question: msgspec.Struct) -> Jobs:
        answer = await self._jobs(msgspec.structs.replace(asked, parameters=question, headers={}))
        assert isinstance(answer.reply, Jobs)
        return answer.reply

    async def get(self, asked: Asked) -> Answer:
        """One workflow."""
        parameters: GetWorkflow = asked.parameters
        await self._freshness.wait(parameters.at_least)
        schedd, number = await self._access.place(parameters.id)
        job = await self._dag_job(asked, f"{number}.0@{schedd}")
        known = listing.of_job(job) if job is not None else None
        if known is not None:
            self._access.require_may_look(asked, known.owner, parameters.id)
        try:
            watched = await self._access.watched(asked, f"{number}@{schedd}")
        except RequestRefused as refusal:
            if refusal.status != 404 or known is None or known.ended is not None:
                raise
            return Answer(known)  # its DAG job waits
        return Answer(_told(watched, known))

    async def _dag_job(self, asked: Asked, name: str) -> Job | None:
        """The job of a workflow; None: it is not in the tables, or not yet."""
        question = GetJob(id=name, fields=[*listing.FIELDS, "JobUniverse"])
        try:
            answer = await self._job(msgspec.structs.replace(asked, parameters=question, headers={}))
        except RequestRefused as refusal:
            if refusal.status != 404:
                raise
            return None
        assert isinstance(answer.reply, Job)
        if (answer.reply.attributes or {}).get("JobUniverse") != Universe.SCHEDULER:
            raise no_such_workflow(name.replace(".0@", "@"))
        return answer.reply

    async def nodes(self, asked: Asked) -> Answer:
        """Nodes with their attempts."""
        parameters: ListNodes = asked.parameters
        watched = await self._access.watched(asked, parameters.id)
        page = await chosen(watched, parameters)
        reasons = await watched.reasons()
        nodes = [described(watched, node, reasons.of(node)) for node in page.nodes]
        return Answer(WorkflowNodes(nodes=nodes, count=page.count, next=page.next))

    async def why(self, asked: Asked) -> Answer:
        """Why a node is where it is."""
        parameters: GetNodeWhy = asked.parameters
        watched = await self._access.watched(asked, parameters.id)
        view = watched.view
        names = view.plan.names
        if parameters.node not in names:
            near = await asyncio.to_thread(did_you_mean, parameters.node, names)
            raise refused_field(
                "/query/node",
                f"workflow {watched.id} has no node {parameters.node}{near}",
                code=ProblemCode.NOT_FOUND,
                status=404,
            )
        request = ExplainNode(workflow=view.started.workflow, node=parameters.node)
        told = await self._bus.call(EXPLAIN_NODE, watched.schedd, request, deadline=_WITHIN_S)
        reason = (await watched.reasons()).of(names.index(parameters.node))
        sentences = list(told.sentences)
        if reason and told.state in {NodeState.QUEUED, NodeState.FAILED}:  # what the service does not keep
            sentences.append(f"{reason[:1].upper()}{reason[1:]}.")
        return Answer(
            NodeWhy(
                node=told.node,
                state=STATE_NAMES[NodeState(told.state)],
                sentences=sentences,
                job=f"{told.cluster}.0@{watched.schedd}" if told.cluster else "",
            )
        )


def _following(parameters: ListWorkflows, at: _ListPlace, page: Jobs) -> _ListPlace | None:
    """Where the list goes on behind a page; None: nowhere."""
    if page.next:
        return _ListPlace(at.where, page.next)
    if at.where == "queue" and listing.may_have_left(parameters.state):
        return _ListPlace("history", "")
    return None


def _told(watched: Watched, known: Workflow | None) -> Workflow:
    """All of a workflow; `known`: what its DAG job says."""
    view = watched.view
    began = datetime.fromtimestamp(view.began, tz=UTC)
    now = datetime.now(UTC)
    seconds = dict(zip((phase.name.lower() for phase in Phase), view.seconds(now.timestamp()), strict=True))
    idle, running, held = view.job_counts
    options = view.options
    found = known or Workflow(
        id=watched.id,
        schedd=watched.schedd,
        cluster=view.started.workflow,
        owner=view.started.owner,
        name=", ".join(view.started.files),
        state="running",
        submitted=began,
    )
    return msgspec.structs.replace(
        found,
        state=_state(view, found.state),
        started=began,
        ended=None if view.ended is None else datetime.fromtimestamp(view.ended[0], tz=UTC),
        nodes=len(view.plan.names),
        counts=counts_of(view),
        jobs=None if view.ended else WorkflowJobs(idle, running, held),
        reason=_reason(view, found),
        exit_code=view.ended[1].exit_code if view.ended else None,
        files=view.started.files,
        limits=WorkflowLimits(
            max_jobs=options.max_jobs,
            max_idle=options.max_idle,
            max_pre=options.max_pre,
            max_post=options.max_post,
            max_hold=options.max_hold,
            categories=view.categories,
        ),
        seconds={name: round(amount, 3) for name, amount in seconds.items() if name != "over"},
        events=view.events,
    )


def counts_of(view: RunView) -> dict[str, int]:
    """How many nodes are in which state."""
    return by_name({state: view.counts[state] for state in NodeState})


def _state(view: RunView, of_job: WorkflowStateName) -> WorkflowStateName:
    if view.ended is not None:
        match DagStatus(view.ended[1].status):
            case DagStatus.OK:
                return "done"
            case DagStatus.REMOVED:
                return "removed"
            case _:
                return "failed"
    if of_job == "held":
        return "held"
    return "halted" if view.halted else "running"


def _reason(view: RunView, found: Workflow) -> str:
    if view.ended is not None:
        status = DagStatus(view.ended[1].status)
        if status is DagStatus.REMOVED and view.removed_because:
            return view.removed_because
        words = "" if status in {DagStatus.OK, DagStatus.REMOVED} else status.name.lower().replace("_", " ")
        return view.ended[1].reason or words
    return found.reason or view.removed_because or (view.halted_because if view.halted else "")
