"""The page of one workflow."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, get_args

import msgspec
from markupsafe import Markup

from kettle_services.gateway.pages.page import Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.workflows.drawing import WAITS, Lines, Part, bar_of, graph_of, lines_of
from kettle_services.gateway.pages.workflows.list_page import done_of
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.jobs import Page as PageToken
from kettle_wire.rest.route import Moment
from kettle_wire.rest.streams import ClusterName
from kettle_wire.rest.workflow_views import (
    GET_GRAPH,
    GET_WORKFLOW_TIMELINE,
    GetGraph,
    GetTimelineOfWorkflow,
    WaitsFor,
    WorkflowGraph,
    WorkflowTimeline,
)
from kettle_wire.rest.workflows import (
    GET_NODE_WHY,
    GET_WORKFLOW,
    LIST_NODES,
    GetNodeWhy,
    GetWorkflow,
    ListNodes,
    NodePattern,
    NodeStateName,
    NodeWhy,
    Workflow,
    WorkflowNodes,
)

_ROWS: Final = 25


class ShowWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be asked of the page."""

    id: ClusterName
    state: list[NodeStateName] = []
    name: NodePattern = ""
    figure: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] | None = None
    """Only the nodes of this figure."""
    page: PageToken = ""
    why: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    """The node about which that is said."""
    running_only: bool = False
    """The time line without what waits."""
    as_of: Moment | None = None


WORKFLOW: Final = Page(
    "/workflows/{id}",
    "Workflow",
    template="workflows/workflow.html",
    parameters=ShowWorkflow,
    live="workflows/workflow_live.html",
    only_now=True,
)


class WorkflowView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    asked: ShowWorkflow
    workflow: Workflow
    parts: Sequence[Part]
    done: int
    graph: Markup
    figure: str
    """The name of the figure whose nodes are shown; empty: all are."""
    nodes: WorkflowNodes
    lines: Lines | None
    waits: Mapping[WaitsFor, str]
    why: NodeWhy | None
    no_reason: str
    states: Sequence[str]


class WorkflowPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def show(self, asked: Asked) -> Shown:
        """How far it is, its graph, some of its nodes, and when these ran."""
        wanted: ShowWorkflow = asked.parameters
        ask = self._questions.ask
        workflow = await ask(asked, GET_WORKFLOW, GetWorkflow(id=wanted.id), Workflow)
        nodes, lines, graph, figure = WorkflowNodes(nodes=[], count=0), None, Markup(), ""
        if workflow.started is not None:
            chosen = {
                "id": wanted.id,
                "state": wanted.state,
                "name": wanted.name,
                "figure": wanted.figure,
                "limit": _ROWS,
                "page": wanted.page,
            }
            drawn = await ask(asked, GET_GRAPH, GetGraph(id=wanted.id), WorkflowGraph)
            nodes = await ask(asked, LIST_NODES, msgspec.convert(chosen, ListNodes), WorkflowNodes)
            timed = msgspec.convert(chosen, GetTimelineOfWorkflow)
            timeline = await ask(asked, GET_WORKFLOW_TIMELINE, timed, WorkflowTimeline)
            lines = lines_of(timeline, waiting=not wanted.running_only)
            graph = graph_of(drawn, lambda place: f"?figure={place}#nodes")
            figure = drawn.figures[wanted.figure].name if wanted.figure is not None else ""
        why, no_reason = None, ""
        if wanted.why:
            question = GetNodeWhy(id=wanted.id, node=wanted.why)
            why, no_reason = await self._questions.ask_or_say(asked, GET_NODE_WHY, question, NodeWhy)
        view = WorkflowView(
            asked=wanted,
            workflow=workflow,
            parts=bar_of(workflow.counts),
            done=done_of(workflow.counts),
            graph=graph,
            figure=figure,
            nodes=nodes,
            lines=lines,
            waits=WAITS,
            why=why,
            no_reason=no_reason,
            states=get_args(NodeStateName),
        )
        return Shown(view, title=f"Workflow {workflow.cluster}")
