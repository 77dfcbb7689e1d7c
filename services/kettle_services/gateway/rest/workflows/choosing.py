"""Which nodes of a workflow somebody asks for, out of all of them, and how they are told."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fnmatch import translate
from itertools import groupby
from re import compile as compiled
from typing import Final, Literal, get_args

import msgspec

from kettle.dag.view.run_view import RunView
from kettle_services.gateway.rest.page_tokens import page_token, place_of
from kettle_services.gateway.rest.refusals import refused_field
from kettle_services.gateway.rest.workflows.views import Watched
from kettle_wire.codes import NodePart, NodeState
from kettle_wire.rest.workflows import NodeAttempt, NodeChoice, NodeJobs, NodeStateName, WorkflowNode
from kettle_wire.workflows import Count

PARTS: Final[dict[int, Literal["pre", "job", "post", "hold"]]] = {
    NodePart.PRE: "pre",
    NodePart.JOB: "job",
    NodePart.POST: "post",
    NodePart.HOLD: "hold",
}


STATE_NAMES: Final[dict[NodeState, NodeStateName]] = {
    NodeState[name.upper()]: name for name in get_args(NodeStateName)
}


class _NodePlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a list of nodes goes on: with this one."""

    node: Count


class Chosen(msgspec.Struct, frozen=True):
    """A page of nodes."""

    nodes: Sequence[int]
    count: int
    """On all pages."""
    next: str | None


def moment(at: float) -> datetime:
    """Seconds since the epoch as a time."""
    return datetime.fromtimestamp(at, tz=UTC)


async def chosen(watched: Watched, asked: NodeChoice) -> Chosen:
    """The nodes that are asked for; raises RequestRefused."""
    of_figure = None
    if asked.figure is not None:
        picture, _ = await watched.picture("auto")
        if asked.figure >= len(picture.figures):
            raise refused_field(
                "/query/figure", f"the graph has {len(picture.figures)} figures, and the first is 0"
            )
        of_figure = picture.figure_of
    # A page of the list and one of the time line are of the same nodes, and so have the same token.
    question = NodeChoice(**{name: getattr(asked, name) for name in NodeChoice.__struct_fields__})
    first = place_of(question, asked.page, _NodePlace).node if asked.page else 0
    found = await asyncio.to_thread(_found, watched.view, asked, of_figure)
    page = [node for node in found if node >= first][: asked.limit + 1]
    more = len(page) > asked.limit
    following = page_token(question, _NodePlace(page[-1])) if more else None
    return Chosen(page[: asked.limit], len(found), following)


def _found(view: RunView, asked: NodeChoice, figure_of: Sequence[int] | None) -> list[int]:
    states = {NodeState[name.upper()] for name in asked.state} or set(NodeState)
    names, is_named = view.plan.names, _named(asked.name)
    return [
        node
        for node, state in enumerate(view.states)
        if state in states
        and (figure_of is None or figure_of[node] == asked.figure)
        and (is_named is None or is_named(names[node]))
    ]


def _named(pattern: str) -> Callable[[str], bool] | None:
    if not pattern:
        return None
    if "*" in pattern or "?" in pattern:
        plain = pattern.replace("[", "[[]")  # only these two stand for others
        match = compiled(translate(plain)).match
        return lambda name: match(name) is not None
    return lambda name: pattern in name


def described(watched: Watched, node: int, reason: str) -> WorkflowNode:
    """A node as the interface tells it."""
    view = watched.view
    last = view.steps.last(node)
    jobs = sorted(view.jobs.get(node, ()), key=lambda each: each.attempt)
    attempts = [
        NodeAttempt(
            attempt=attempt,
            jobs=[
                NodeJobs(
                    part=PARTS[each.part],
                    id=f"{each.cluster}.0@{watched.schedd}",
                    count=each.jobs,
                    value=each.value,
                )
                for each in made
            ],
        )
        for attempt, made in groupby(jobs, lambda each: each.attempt)
    ]
    return WorkflowNode(
        name=view.plan.names[node],
        state=STATE_NAMES[view.state(node)],
        since=moment(view.began if last is None else last.at),
        reason=reason,
        attempts=attempts,
    )
