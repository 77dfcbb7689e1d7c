"""
The graph with the state of its nodes, for Graphviz (command DOT).

Pure, but for the name of a file that is not to be overwritten.
"""

from collections.abc import Iterable, Iterator
from datetime import tzinfo
from pathlib import Path

from kettle.dag.files.times import at_length
from kettle_wire.codes import NodeStatus

_SHAPES = {
    NodeStatus.PRERUN: ("ellipse", "Pre", " style=dotted"),
    NodeStatus.SUBMITTED: ("ellipse", "R", " peripheries=2"),
    NodeStatus.POSTRUN: ("ellipse", "Post", " style=dotted"),
    NodeStatus.DONE: ("ellipse", "Done", " style=bold"),
    NodeStatus.ERROR: ("box", "E", ""),
}
"""Form, letters and line of a node; all others wait."""


def graph(
    at: float,
    nodes: Iterable[tuple[str, NodeStatus]],
    edges: Iterable[tuple[str, str]],
    included: tuple[str, str] | None = None,
    zone: tzinfo | None = None,
) -> Iterator[str]:
    """The lines of the file; `included`: name and text of the file that stands before the nodes."""
    yield "digraph DAG {"
    yield f'    label="DAGMan Job status at {at_length(at, zone)}";'
    yield ""
    if included is not None:
        name, text = included
        yield f"// Beginning of commands included from {name}."
        yield from text.splitlines()
        yield f"// End of commands included from {name}."
        yield ""
    for name, status in nodes:
        shape, letters, line = _SHAPES.get(status, ("ellipse", "I", ""))
        yield f'    "{_escaped(name)}" [shape={shape} label="{_escaped(name)} ({letters})"{line}];'
    yield ""
    for parent, child in edges:
        yield f'    "{_escaped(parent)}" -> "{_escaped(child)}";'
    yield "}"


def _escaped(name: str) -> str:
    return name.replace('"', '\\"')


def unused(path: Path) -> Path:
    """The first of `path.0`, `path.1`, … that is not there."""
    number = 0
    while (free := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return free
