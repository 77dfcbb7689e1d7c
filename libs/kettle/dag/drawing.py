"""A DAG as a picture: as text for Graphviz, and as a list of nodes and edges."""

from collections.abc import Iterator
from typing import Final

import msgspec

from kettle.dag.structure import Dag, NodeKind

_SHAPES: Final = {
    NodeKind.JOB: "ellipse",
    NodeKind.SUBDAG: "box3d",
    NodeKind.FINAL: "doublecircle",
    NodeKind.PROVISIONER: "house",
    NodeKind.SERVICE: "hexagon",
}


class DrawnNode(msgspec.Struct, frozen=True):
    """One figure of a picture."""

    name: str
    kind: str
    """As in a DAG file; `splice` for one that is folded."""
    nodes: int = 1
    """How many nodes it stands for."""
    done: bool = False
    """All of them have succeeded before."""
    splice: str = ""
    """The splice that it is in, if that is not folded."""


class DrawnEdge(msgspec.Struct, frozen=True):
    """One arrow."""

    parent: str
    child: str
    weak: bool = False


class Drawing(msgspec.Struct, frozen=True):
    """A picture."""

    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]


def drawing(dag: Dag, *, fold: bool) -> Drawing:
    """
    The figures and arrows of a DAG; joins are not among them.

    `fold`: each splice of the outermost file is one figure.  Between two figures there is one arrow, weak if all are.
    """
    outermost = [splice for splice in dag.splices if "+" not in splice.name]
    spliced = {index: splice for splice in outermost for index in range(splice.first, splice.last)}
    names = [
        spliced[index].name if fold and index in spliced else node.name
        for index, node in enumerate(dag.nodes)
    ]
    figures: dict[str, DrawnNode] = {}
    for index, node in enumerate(dag.nodes):
        splice = spliced.get(index)
        if splice is None or not fold:
            figures[node.name] = DrawnNode(
                node.name, str(node.kind), 1, node.is_done, splice.name if splice is not None else ""
            )
        elif splice.name not in figures:
            inner = dag.nodes[splice.first : splice.last]
            figures[splice.name] = DrawnNode(
                splice.name, "splice", len(inner), all(each.is_done for each in inner)
            )
    arrows: dict[tuple[str, str], bool] = {}
    for parent, child, is_weak in _pairs(dag):
        pair = (names[parent], names[child])
        if pair[0] != pair[1] or parent == child:
            arrows[pair] = arrows.get(pair, True) and is_weak
    edges = tuple(DrawnEdge(parent, child, is_weak) for (parent, child), is_weak in arrows.items())
    return Drawing(tuple(figures.values()), edges)


def _pairs(dag: Dag) -> Iterator[tuple[int, int, bool]]:
    """Each node with each that waits for it, and whether it does so weakly; seen through joins."""
    children = dag.edges.children()
    for parent in range(len(dag.nodes)):
        for child, is_weak in zip(children.of(parent), children.weakness_of(parent), strict=True):
            for end in (child,) if child < len(dag.nodes) else children.of(child):
                yield parent, end, bool(is_weak)


def dot(picture: Drawing, name: str) -> Iterator[str]:
    """The lines of a picture for Graphviz; splices that are not folded are frames."""
    yield f"digraph {_quoted(name)} {{"
    yield "  node [fontname=sans-serif];"
    frames: dict[str, list[DrawnNode]] = {}
    for node in picture.nodes:
        frames.setdefault(node.splice, []).append(node)
    for number, (splice, nodes) in enumerate(frames.items()):
        if splice:
            yield f"  subgraph cluster_{number} {{"
            yield f"    label={_quoted(splice)};"
        yield from (_figure(node) for node in nodes)
        if splice:
            yield "  }"
    for edge in picture.edges:
        style = " [style=dashed]" if edge.weak else ""
        yield f"  {_quoted(edge.parent)} -> {_quoted(edge.child)}{style};"
    yield "}"


def _figure(node: DrawnNode) -> str:
    shape = "folder" if node.kind == "splice" else _SHAPES[NodeKind(node.kind)]
    label = f"{node.name}\n{node.nodes} nodes" if node.kind == "splice" else node.name
    style = ", style=filled" if node.done else ""
    return f"    {_quoted(node.name)} [label={_quoted(label)}, shape={shape}{style}];"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
