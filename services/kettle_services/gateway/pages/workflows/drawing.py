"""A workflow as drawings: bars of states, the graph, and the time line of its nodes."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from markupsafe import Markup

from kettle.dag.view.drawing import COLOURS, svg
from kettle.dag.view.figures import Arrow, Figure, Picture
from kettle.dag.view.layers import placed
from kettle_services.gateway.pages.gantt import Bar, Tick, ticks
from kettle_services.gateway.pages.wording import span
from kettle_wire.codes import NodeState
from kettle_wire.rest.workflow_views import NodeLine, WaitsFor, WorkflowGraph, WorkflowTimeline

_WIDTH: Final = 1000.0
_LEAST: Final = 2.0
"""So wide is a bar at least, so that it is seen."""
WAITS: Final[Mapping[WaitsFor, str]] = {
    "parents": "for nodes before it",
    "turn": "for its turn",
    "script": "for a script",
    "submission": "to be submitted",
    "machine": "for a machine",
    "held": "on hold",
    "running": "running",
}


class Part(msgspec.Struct, frozen=True):
    """A part of a bar."""

    name: str
    count: float
    start: float
    """In thousandths, as the width."""
    width: float


class Row(msgspec.Struct, frozen=True):
    """One attempt of a node on the time line."""

    node: str
    attempt: int
    bars: Sequence[Bar]


class Lines(msgspec.Struct, frozen=True):
    """A time line."""

    rows: Sequence[Row]
    ticks: Sequence[Tick]
    lasts: str
    totals: Sequence[Part]
    """Of all nodes together, in seconds."""


def bar_of(counts: Mapping[str, int]) -> list[Part]:
    """How many nodes are in which state."""
    return parts_of({state.name.lower(): counts.get(state.name.lower(), 0) for state in COLOURS})


def parts_of(amounts: Mapping[str, float]) -> list[Part]:
    """A bar whose parts are as wide as these amounts, without those of which there is nothing."""
    total, start = sum(amounts.values()), 0.0
    made: list[Part] = []
    for name, amount in amounts.items():
        if amount:
            width = _WIDTH * amount / total
            made.append(Part(name, amount, round(start, 1), round(width, 1)))
            start += width
    return made


def graph_of(graph: WorkflowGraph, link: Callable[[int], str]) -> Markup:
    """The graph, where each figure leads somewhere."""
    figures = [Figure(each.name, each.kind, each.nodes, each.level) for each in graph.figures]
    arrows = [Arrow(each.parent, each.child, each.weak) for each in graph.arrows]
    counts = [
        Counter[int]({int(NodeState[name.upper()]): count for name, count in each.states.items()})
        for each in graph.figures
    ]
    picture = Picture(figures, arrows, array("l"))
    return Markup(svg(picture, placed(picture), counts, link=link))  # noqa: S704 - it escapes what it writes


def lines_of(timeline: WorkflowTimeline, *, waiting: bool) -> Lines:
    """The time line of some nodes; without `waiting` only what runs."""
    begin, end = timeline.began, timeline.until
    length = max((end - begin).total_seconds(), 0.001)
    rows = [
        Row(each.node, each.attempt, list(_bars(each, begin, end, length, waiting=waiting)))
        for each in timeline.lines
    ]
    totals = parts_of({name: timeline.seconds.get(name, 0.0) for name in WAITS})
    return Lines(rows, list(ticks(begin, end, length)), span(length), totals)


def _bars(line: NodeLine, begin: datetime, end: datetime, length: float, *, waiting: bool) -> Iterator[Bar]:
    for phase in line.phases:
        if phase.what != "running" and not waiting:
            continue
        until = min(phase.until or end, end)
        start = min(_WIDTH * max((phase.since - begin).total_seconds(), 0.0) / length, _WIDTH - _LEAST)
        width = max(_WIDTH * (until - phase.since).total_seconds() / length, _LEAST)
        words = "ran" if phase.what == "running" and phase.until else WAITS[phase.what]
        took = span((until - phase.since).total_seconds())
        says = f"{line.node}, attempt {line.attempt + 1}: {words if words in {'ran', 'running'} else f'waited {words}'}, {took}"
        yield Bar(phase.what, round(start, 1), round(min(width, _WIDTH - start), 1), says)
