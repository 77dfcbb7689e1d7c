"""The drawings on the pages of workflows."""

from datetime import UTC, datetime, timedelta

import pytest

from kettle_services.gateway.pages.workflows.drawing import bar_of, graph_of, lines_of
from kettle_wire.rest.workflow_views import (
    GraphArrow,
    GraphFigure,
    NodeLine,
    NodePhase,
    WorkflowGraph,
    WorkflowTimeline,
)

BEGAN = datetime(2026, 11, 25, 14, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


TIMELINE = WorkflowTimeline(
    id="7@ap",
    began=BEGAN,
    until=at(100),
    seconds={"parents": 30.0, "machine": 10.0, "running": 60.0},
    lines=[
        NodeLine(
            node="a",
            attempt=0,
            state="running",
            phases=[
                NodePhase(what="parents", since=BEGAN, until=at(30)),
                NodePhase(what="machine", since=at(30), until=at(40)),
                NodePhase(what="running", since=at(40)),
            ],
        )
    ],
)


def test_waiting_and_running_are_bars_of_their_length() -> None:
    """A node is a row of bars in thousandths of the width, and each says in words what it is."""
    lines = lines_of(TIMELINE, waiting=True)
    [row] = lines.rows
    assert [("parents", 0, 300), ("machine", 300, 100), ("running", 400, 600)] == [
        (bar.state, bar.start, bar.width) for bar in row.bars
    ]
    assert "a, attempt 1: waited for a machine, 10 s" == row.bars[1].says
    assert [("parents", 300), ("machine", 100), ("running", 600)] == [
        (each.name, each.width) for each in lines.totals
    ]


def test_what_waits_can_be_left_out() -> None:
    """Long waits hide short runs."""
    [row] = lines_of(TIMELINE, waiting=False).rows
    assert ["running"] == [bar.state for bar in row.bars]


def test_a_bar_has_a_part_for_each_state() -> None:
    """The parts fill it, and states without nodes have none."""
    parts = bar_of({"done": 3, "failed": 1, "running": 0})
    assert ["done", "failed"] == [part.name for part in parts]
    assert 1000 == pytest.approx(sum(part.width for part in parts))


def test_each_figure_of_a_graph_leads_to_its_nodes() -> None:
    """Names are written as text."""
    graph = WorkflowGraph(
        id="7@ap",
        nodes=3,
        figures=[
            GraphFigure(name="<b>", kind="job", nodes=1, level=0, states={"done": 1}),
            GraphFigure(name="fit", kind="group", nodes=2, level=1, states={"running": 1, "waiting": 1}),
        ],
        arrows=[GraphArrow(parent=0, child=1)],
        events=9,
    )
    drawn = graph_of(graph, lambda place: f"?figure={place}")
    assert 'href="?figure=1"' in drawn
    assert "<b>" not in drawn
    assert "0 of 2 done" in drawn
