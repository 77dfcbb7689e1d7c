"""A workflow over HTTP as it is watched: its graph, its time line, its events."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.rest.route import Moment, Route
from kettle_wire.rest.streams import ClusterName
from kettle_wire.rest.workflows import WORKFLOW_ERRORS, NodeChoice, NodeStateName

WaitsFor = Literal["parents", "turn", "script", "submission", "machine", "held", "running"]
"""
What a node waits for: nodes before it, its turn, its script, the submission of its jobs, a machine, somebody who releases its jobs;
`running`: for nothing, a job of it runs.
"""


class GetGraph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get the graph of a workflow as figures and arrows, with how far the nodes of each figure are: as JSON, as text for Graphviz, or
    drawn as SVG, in levels from top to bottom.
    """

    id: ClusterName
    format: Literal["json", "dot", "svg"] = "json"
    fold: Literal["auto", "groups", "none"] = "auto"
    """
    `groups`: a splice, and the instances of one job, are one figure. `auto`: that, and what is many in a level, or much too high. `none`:
    each node is a figure, of 2,000 at most.
    """


class GraphFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of the graph; where it is folded never changes."""

    name: str
    """Of its node; of several what their names have in common."""
    kind: Literal["job", "final", "provisioner", "service", "group", "many"]
    nodes: int
    level: int
    """How many levels are above it."""
    states: dict[str, int]
    """How many of its nodes are in which state."""


class GraphArrow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From one figure to one that waits for it, by their places."""

    parent: int
    child: int
    weak: bool = False
    """Whether it only waits until the other has finished, well or not."""


class WorkflowGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The graph of a workflow."""

    id: str
    nodes: int
    figures: list[GraphFigure]
    arrows: list[GraphArrow]
    events: int
    """So many are in it: who follows the events from here on misses none."""


class GetTimelineOfWorkflow(NodeChoice, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get for each attempt of nodes what it waited for and when it ran, and how long that was for all nodes of the workflow together.
    """


class NodePhase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a node waited for, or that it ran."""

    what: WaitsFor
    since: Moment
    until: Moment | None = None
    """Absent: it goes on."""


class NodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a node."""

    node: str
    attempt: int
    state: NodeStateName
    """Of the node now."""
    phases: list[NodePhase]


class WorkflowTimeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of a time line."""

    id: str
    began: Moment
    until: Moment
    """When the workflow ended, else now."""
    seconds: dict[str, float]
    """Of all nodes together, by what they waited for."""
    lines: list[NodeLine]
    """All attempts of the nodes of this page."""
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""


class FollowWorkflowEvents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Follow what happens to a workflow. The id of each event is its number: who comes back with Last-Event-ID, or with `after`, misses
    none; `cut` says why the stream ends, which it does after the last event of the workflow.
    """

    id: ClusterName
    after: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    """Begin behind this event; 0: with the first; absent: with what happens from now on."""


class NodeHappened(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node came into a state."""

    node: str
    state: NodeStateName
    attempt: int = 0
    value: int = 0
    """The exit code, or the number of a signal below zero."""
    because: str = ""
    """Of a node that can never run the one because of which."""


class NodeJobHappened(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something happened to a job of a node."""

    node: str
    job: str
    """`CLUSTER.PROC`; of a whole cluster `CLUSTER`."""
    what: str
    """`submitted`, `started`, `evicted`, `held`, `released`, `completed`, `removed` and so on."""
    part: Literal["pre", "job", "post", "hold"] = "job"
    attempt: int = 0
    value: int = 0
    """
    Of `submitted` how many jobs there are, of `completed` the exit code, or the number of a signal below zero, of `held` the HoldReasonCode.
    """
    reason: str = ""


class WorkflowHappening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a workflow."""

    number: int
    """From 1."""
    type: str
    """As it is recorded, such as `workflow.nodes_changed/1`."""
    at: Moment
    nodes: list[NodeHappened] = []
    jobs: list[NodeJobHappened] = []
    by: str = ""
    reason: str = ""
    status: str = ""
    """Of one that ends: `ok`, `node_failed`, `aborted`, `removed` and so on."""
    exit_code: int | None = None


GET_GRAPH = Route(
    "GET",
    "/workflows/{id}/graph",
    "get_graph",
    parameters=GetGraph,
    reply=WorkflowGraph,
    errors=(*WORKFLOW_ERRORS, 422),
    others=("text/vnd.graphviz", "image/svg+xml"),
)
GET_WORKFLOW_TIMELINE = Route(
    "GET",
    "/workflows/{id}/timeline",
    "get_workflow_timeline",
    parameters=GetTimelineOfWorkflow,
    reply=WorkflowTimeline,
    errors=WORKFLOW_ERRORS,
)
FOLLOW_WORKFLOW_EVENTS = Route(
    "GET",
    "/workflows/{id}/events",
    "follow_workflow",
    parameters=FollowWorkflowEvents,
    reply=WorkflowHappening,
    stream=True,
    errors=WORKFLOW_ERRORS,
    headers=("Last-Event-ID",),
)
