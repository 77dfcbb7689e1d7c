"""The graph and the time line of a workflow."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Final, get_args

from aiohttp import web

from kettle.dag.view.drawing import by_name, dot, svg
from kettle.dag.view.run_view import RunView
from kettle.dag.view.steps import Phase, Step
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.refusals import refused_field
from kettle_services.gateway.rest.workflows.access import WorkflowAccess
from kettle_services.gateway.rest.workflows.choosing import STATE_NAMES, chosen, moment
from kettle_wire.rest.workflow_views import (
    GetGraph,
    GetTimelineOfWorkflow,
    GraphArrow,
    GraphFigure,
    NodeLine,
    NodePhase,
    WaitsFor,
    WorkflowGraph,
    WorkflowTimeline,
)

MOST_UNFOLDED: Final = 2_000
MOST_ARROWS: Final = 20_000
_WAITS: Final[dict[Phase, WaitsFor]] = {Phase[name.upper()]: name for name in get_args(WaitsFor)}


class WorkflowPictures:
    """Answers with them."""

    def __init__(self, access: WorkflowAccess) -> None:
        self._access = access

    async def graph(self, asked: Asked) -> Answer | web.Response:
        """The graph, with how far the nodes are."""
        parameters: GetGraph = asked.parameters
        watched = await self._access.watched(asked, parameters.id)
        nodes = len(watched.view.states)
        if parameters.fold == "none" and nodes > MOST_UNFOLDED:
            raise _too_large(
                f"the workflow has {nodes:,} nodes, and a graph has {MOST_UNFOLDED:,} figures at most"
            )
        picture, places = await watched.picture(parameters.fold)
        if max(len(picture.figures), len(picture.arrows)) > MOST_ARROWS:
            raise _too_large(
                f"the graph has {len(picture.figures):,} figures and {len(picture.arrows):,} arrows"
            )
        counts = picture.counts(watched.view.states)
        match parameters.format:
            case "svg":
                return web.Response(text=svg(picture, places, counts), content_type="image/svg+xml")
            case "dot":
                text = "".join(f"{line}\n" for line in dot(picture, counts, watched.id))
                return web.Response(text=text, content_type="text/vnd.graphviz")
            case _:
                figures = [
                    GraphFigure(
                        name=each.name,
                        kind=each.kind,
                        nodes=each.nodes,
                        level=each.level,
                        states=by_name(counts[place]),
                    )
                    for place, each in enumerate(picture.figures)
                ]
                arrows = [
                    GraphArrow(parent=each.parent, child=each.child, weak=each.weak)
                    for each in picture.arrows
                ]
                return Answer(
                    WorkflowGraph(
                        id=watched.id, nodes=nodes, figures=figures, arrows=arrows, events=watched.view.events
                    )
                )

    async def timeline(self, asked: Asked) -> Answer:
        """What attempts of nodes waited for, and when they ran."""
        parameters: GetTimelineOfWorkflow = asked.parameters
        watched = await self._access.watched(asked, parameters.id)
        view = watched.view
        page = await chosen(watched, parameters)
        now = view.until(datetime.now(UTC).timestamp())
        seconds = view.seconds(now)
        return Answer(
            WorkflowTimeline(
                id=watched.id,
                began=moment(view.began),
                until=moment(now),
                seconds={name: round(seconds[phase], 3) for phase, name in _WAITS.items()},
                lines=[line for node in page.nodes for line in lines_of(view, node)],
                next=page.next,
            )
        )


def lines_of(view: RunView, node: int) -> Iterator[NodeLine]:
    """The attempts of a node."""
    first = Step(view.began, Phase.PARENTS, 0)
    steps = [first, *view.steps.of(node)]
    end = None if view.ended is None else view.ended[0]
    ends = [step.at for step in steps[1:]] + [end]
    timed = [(step, until) for step, until in zip(steps, ends, strict=True) if step.phase is not Phase.OVER]
    for attempt, its in groupby(timed, lambda each: each[0].attempt):
        phases = [
            NodePhase(
                what=_WAITS[step.phase], since=moment(step.at), until=None if until is None else moment(until)
            )
            for step, until in its
            if until is None or until > step.at
        ]
        yield NodeLine(
            node=view.plan.names[node], attempt=attempt, state=STATE_NAMES[view.state(node)], phases=phases
        )


def _too_large(what: str) -> Exception:
    return refused_field("/query/fold", f"{what}: let it be folded", status=422)
