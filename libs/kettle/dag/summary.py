"""What a check of a DAG tells besides faults: nodes, edges, height, width, the longest chain."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.dag import graph
from kettle.dag.faults import Fault
from kettle.dag.structure import Dag, NodeKind

_MOST_TOLD: Final = 20
"""Names of one cycle."""


class Summary(msgspec.Struct, frozen=True):
    """The shape of a DAG."""

    files: tuple[str, ...]
    nodes: int
    """All of them, also those beside the graph."""
    kinds: dict[str, int]
    edges: int
    """Pairs of nodes of which one waits for the other."""
    weak_edges: int
    splices: int
    height: int
    """How many nodes wait for each other at most, one after the other."""
    width: int
    """How many nodes may run at a time at most."""
    widths: tuple[int, ...]
    """How many nodes there are at each level."""
    critical_path: tuple[str, ...]
    """The nodes of the longest chain."""
    done: int
    """Nodes that have succeeded before."""


def summary(dag: Dag) -> Summary:
    """The shape of a DAG."""
    levels = graph.levels(dag)
    kinds = Counter(node.kind for node in dag.nodes)
    edges, weak = _edge_counts(dag)
    return Summary(
        files=dag.files,
        nodes=len(dag.nodes),
        kinds={str(kind): kinds[kind] for kind in NodeKind},
        edges=edges,
        weak_edges=weak,
        splices=len(dag.splices),
        height=levels.height,
        width=levels.width,
        widths=levels.widths,
        critical_path=tuple(dag.nodes[index].name for index in graph.critical_path(dag).nodes),
        done=sum(node.is_done for node in dag.nodes),
    )


def cycle_faults(dag: Dag) -> Sequence[Fault]:
    """Each cycle as a fault, at the place of its first node."""
    found: list[Fault] = []
    for cycle in graph.cycles(dag):
        start = min(range(len(cycle)), key=lambda at: cycle[at])
        turned = (*cycle[start:], *cycle[:start])
        first = dag.nodes[turned[0]]
        names = [dag.nodes[index].name for index in turned]
        shown = names if len(names) <= _MOST_TOLD else [*names[: _MOST_TOLD - 1], f"... ({len(names)} nodes)"]
        sentence = f"these nodes wait for each other in a circle: {' -> '.join([*shown, names[0]])}"
        found.append(Fault(dag.files[first.file], first.line, sentence))
    return found


def _edge_counts(dag: Dag) -> tuple[int, int]:
    """
    All edges, joins multiplied out, and how many of them are weak.

    What two lines with many names say twice counts twice.
    """
    children = dag.edges.children()
    nodes = len(dag.nodes)
    every = weak = 0
    for vertex in range(nodes):
        for child, is_weak in zip(children.of(vertex), children.weakness_of(vertex), strict=True):
            pairs = children.count(child) if child >= nodes else 1
            every += pairs
            weak += pairs * is_weak
    return every, weak
