"""Workflows over HTTP: those that there are and were, their nodes, and how fast they go."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import At, Limit, Page
from kettle_wire.rest.route import Moment, Route
from kettle_wire.rest.streams import ClusterName
from kettle_wire.workflows import Count

WorkflowStateName = Literal["waiting", "running", "halted", "held", "done", "failed", "removed"]
"""
Of a workflow: its DAG job has not begun; it runs; somebody has halted it; its DAG job is on hold; all has succeeded; something has
failed; it was removed.
"""
NodeStateName = Literal[
    "waiting", "ready", "pre", "queued", "running", "post", "done", "failed", "futile", "skipped"
]
"""
Of a node: one that comes before it has not finished; it waits for its turn; its PRE script is to be run or runs; its jobs are to be
submitted or wait; a job of it runs; its POST script is to be run or runs; it has succeeded; it has failed; it can never run, because
another has failed; its PRE script said that nothing is to be done.
"""
NodeName = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
NodePattern = Annotated[str, msgspec.Meta(max_length=4096)]
"""Where `*` stands for any letters and `?` for one; without them the names that contain it."""
WORKFLOW_ERRORS = (404, 409)


class ListWorkflows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List workflows, those in the queues first, of these the last submitted first: one's own; administrators may name others. How far
    they are is as their DAG jobs have told it, some seconds ago.
    """

    owner: list[Name] = []
    """Of these persons, `*` of all; none: one's own."""
    state: list[WorkflowStateName] = []
    name: Annotated[str, msgspec.Meta(max_length=256)] = ""
    """A part of its name, in any case of letters."""
    schedd: list[Name] = []
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""
    at_least: At | None = None
    """Wait until this is visible: `position` of the answer to a write."""


class WorkflowJobs(msgspec.Struct, frozen=True):
    """How many jobs of its nodes are in the queue."""

    idle: int
    running: int
    held: int


class WorkflowLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a workflow goes; 0: there is no limit."""

    max_jobs: int
    """Nodes that have jobs in the queue."""
    max_idle: int
    """Their jobs that wait for a machine."""
    max_pre: int
    """PRE scripts at a time."""
    max_post: int
    max_hold: int
    categories: dict[str, int] = {}
    """By category the nodes that have jobs in the queue."""


class Workflow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workflow.  What is absent is not known, or there is nothing of it yet."""

    id: str
    """`CLUSTER@SCHEDD` of its DAG job."""
    schedd: str
    cluster: int
    owner: str
    name: str
    state: WorkflowStateName
    submitted: Moment
    started: Moment | None = None
    ended: Moment | None = None
    nodes: int = 0
    counts: dict[str, int] = {}
    """How many nodes are in which state; states without nodes are left out."""
    jobs: WorkflowJobs | None = None
    reason: str = ""
    """Why it is on hold or halted, was removed, or has ended like that."""
    exit_code: int | None = None
    """Of its DAG job."""
    files: list[str] = []
    """What it was made of; only of one that is asked for by its id, as all below."""
    limits: WorkflowLimits | None = None
    seconds: dict[str, float] = {}
    """How long all nodes together waited for what, and ran (`running`); see the time line."""
    events: int = 0
    """So many are recorded of it: who follows them from here on misses none."""


class Workflows(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of workflows."""

    workflows: list[Workflow]
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""
    frames: dict[str, int] = {}
    """How far each queue has been read: the number of its last frame in this answer."""


class GetWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get a workflow: its state, how far its nodes are, and its limits. Its owner may, and administrators."""

    id: ClusterName
    """Of its DAG job."""
    at_least: At | None = None
    """Wait until this is visible."""


class NodeChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which nodes of a workflow are meant."""

    id: ClusterName
    state: list[NodeStateName] = []
    name: NodePattern = ""
    """A part of the name, or a pattern with `*` and `?`."""
    figure: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] | None = None
    """The nodes of this figure of the graph, as it is folded if nothing is said about that."""
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""


class ListNodes(NodeChoice, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List nodes of a workflow in the order in which it has them, each with the jobs of all attempts."""


class NodeJobs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Jobs that were submitted for a part of a node."""

    part: Literal["pre", "job", "post", "hold"]
    id: str
    """Of the first of them, `CLUSTER.PROC@SCHEDD`."""
    count: int = 1
    value: int | None = None
    """
    The exit code, the number of the signal below zero, or -1002 for one that was removed, of the first that failed, else 0; absent: they
    have not ended.
    """


class NodeAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a node."""

    attempt: int
    """From 0."""
    jobs: list[NodeJobs]
    """In the order of their submission, scripts too."""


class WorkflowNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node."""

    name: str
    state: NodeStateName
    since: Moment
    """Since when it waits for what it waits for, or does what it does; of one that has ended: when it did."""
    reason: str = ""
    """Why it is in this state, in words."""
    attempts: list[NodeAttempt] = []


class WorkflowNodes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of nodes."""

    nodes: list[WorkflowNode]
    count: int
    """How many there are of this kind, on all pages."""
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""


class GetNodeWhy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get why a node of a workflow is where it is: what it waits for, which limit is reached, or why its job waits.
    """

    id: ClusterName
    node: NodeName


class NodeWhy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a node is where it is."""

    node: str
    state: NodeStateName
    sentences: list[str]
    job: str = ""
    """The first of its jobs in the queue; empty: it has none there."""


class ControlWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Halt a workflow, so that nothing new is submitted and it ends when all that runs has ended, or let it go on. Its owner may, and
    administrators of its access point.
    """

    id: ClusterName
    action: Literal["halt", "resume"]


class WorkflowOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why."""

    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class ChangeLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Change how fast a workflow goes; what is not named stays. Its owner may, and administrators of its access point.
    """

    id: ClusterName


class NewLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits, 0: none, and the priority."""

    max_jobs: Count | None = None
    max_idle: Count | None = None
    max_pre: Count | None = None
    max_post: Count | None = None
    max_hold: Count | None = None
    categories: dict[Name, Count] | None = None
    """Of these categories; others keep theirs."""
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    """Of its DAG job and of the jobs of nodes that are in the queue; jobs that come later have that of their descriptions."""


class DeleteWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Remove a workflow: its jobs are removed, its FINAL node runs, and it ends."""

    id: ClusterName
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class WorkflowTold(msgspec.Struct, frozen=True, kw_only=True):
    """That is recorded, or was so before."""

    id: str
    position: str
    """`SHARD:FRAME` of the last of it."""


LIST_WORKFLOWS = Route(
    "GET", "/workflows", "list_workflows", parameters=ListWorkflows, reply=Workflows, errors=(404,)
)
GET_WORKFLOW = Route(
    "GET", "/workflows/{id}", "get_workflow", parameters=GetWorkflow, reply=Workflow, errors=WORKFLOW_ERRORS
)
LIST_NODES = Route(
    "GET",
    "/workflows/{id}/nodes",
    "list_nodes",
    parameters=ListNodes,
    reply=WorkflowNodes,
    errors=WORKFLOW_ERRORS,
)
GET_NODE_WHY = Route(
    "GET", "/workflows/{id}/why", "get_node_why", parameters=GetNodeWhy, reply=NodeWhy, errors=WORKFLOW_ERRORS
)
CONTROL_WORKFLOW = Route(
    "POST",
    "/workflows/{id}/{action}",
    "control_workflow",
    parameters=ControlWorkflow,
    body=WorkflowOrder,
    reply=WorkflowTold,
    level="WRITE",
    errors=(404, 409, 413, 415, 422),
    headers=("Idempotency-Key",),
)
CHANGE_LIMITS = Route(
    "PATCH",
    "/workflows/{id}",
    "change_workflow",
    parameters=ChangeLimits,
    body=NewLimits,
    reply=WorkflowTold,
    level="WRITE",
    errors=(404, 409, 413, 415, 422),
    headers=("Idempotency-Key",),
)
DELETE_WORKFLOW = Route(
    "DELETE",
    "/workflows/{id}",
    "delete_workflow",
    parameters=DeleteWorkflow,
    reply=WorkflowTold,
    level="WRITE",
    errors=(404, 409, 422),
    headers=("Idempotency-Key",),
)
