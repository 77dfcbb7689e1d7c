"""
What can be told about the graph of a DAG: cycles, levels, the critical path, what is reached from where.

Only JOB and SUBDAG nodes belong to it.  Joins take part in the walk and are never shown.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kettle.dag.structure import Dag


class Levels(msgspec.Struct, frozen=True, gc=False):
    """How far from the beginning each node is."""

    of: tuple[int, ...]
    """By node, from 1; 0 for nodes that belong to no graph, and for those that are in a cycle or behind one."""
    widths: tuple[int, ...]
    """How many nodes each level has, from the first."""

    @property
    def height(self) -> int:
        """The number of levels: the longest chain of nodes that wait for each other."""
        return len(self.widths)

    @property
    def width(self) -> int:
        """The number of nodes of the widest level: as many may run at a time."""
        return max(self.widths, default=0)


class CriticalPath(msgspec.Struct, frozen=True, gc=False):
    """The chain of nodes that takes longest."""

    nodes: tuple[int, ...]
    seconds: float


def order(dag: Dag) -> list[int]:
    """
    Vertices so that each stands behind all that it waits for.

    Those in a cycle, and behind one, are missing.
    """
    children = dag.edges.children()
    waiting = _parent_counts(dag)
    found = [vertex for vertex in range(dag.edges.vertices) if not waiting[vertex]]
    for vertex in found:  # grows on the way
        for child in children.of(vertex):
            waiting[child] -= 1
            if not waiting[child]:
                found.append(child)
    return found


def levels(dag: Dag) -> Levels:
    """The levels of all nodes."""
    children = dag.edges.children()
    nodes = len(dag.nodes)
    depth = [1] * nodes + [0] * dag.edges.joins
    reached = bytearray(dag.edges.vertices)
    for vertex in order(dag):
        reached[vertex] = 1
        own = depth[vertex]
        for child in children.of(vertex):
            below = own + 1 if child < nodes else own
            depth[child] = max(depth[child], below)
    of = tuple(
        depth[index] if reached[index] and node.is_ordinary else 0 for index, node in enumerate(dag.nodes)
    )
    counts = Counter(of)
    return Levels(of, tuple(counts[level] for level in range(1, max(of, default=0) + 1)))


def cycles(dag: Dag) -> Iterator[tuple[int, ...]]:
    """
    Cycles, each as the nodes in their order; no node is in two of them.

    When all of them are cut, others may appear that had nodes in common with them.
    """
    free = bytearray(dag.edges.vertices)
    for vertex in order(dag):
        free[vertex] = 1
    parents = dag.edges.parents()
    nodes = len(dag.nodes)
    for start in range(dag.edges.vertices):
        place: dict[int, int] = {}
        at: int | None = start
        while at is not None and not free[at] and at not in place:
            place[at] = len(place)
            at = next((parent for parent in parents.of(at) if not free[parent]), None)
        if at is not None and at in place:
            cycle = list(place)[place[at] :]
            yield tuple(each for each in reversed(cycle) if each < nodes)
        for each in place:
            free[each] = 1


def critical_path(dag: Dag, seconds: Mapping[int, float] | None = None) -> CriticalPath:
    """
    The chain that takes longest, by estimates in seconds for nodes; one without an estimate takes 1.

    Of chains that take equally long the one whose nodes come first is told.
    """
    children = dag.edges.children()
    nodes = len(dag.nodes)
    longest = remaining(dag, seconds)
    starts = [index for index, node in enumerate(dag.nodes) if node.is_ordinary]
    if not starts:
        return CriticalPath((), 0.0)
    vertex = max(starts, key=lambda index: longest[index])
    total = longest[vertex]
    path: list[int] = []
    while True:
        if vertex < nodes:
            path.append(vertex)
        following = children.of(vertex)
        if not following or longest[vertex] == 0:
            return CriticalPath(tuple(path), total)
        vertex = max(following, key=lambda index: longest[index])


def remaining(dag: Dag, seconds: Mapping[int, float] | None = None) -> Sequence[float]:
    """
    For each vertex how long it takes until the last of those behind it has ended, its own time included.

    Vertices in a cycle, and behind one, have 0.
    """
    children = dag.edges.children()
    nodes = len(dag.nodes)
    longest = [0.0] * dag.edges.vertices
    for vertex in reversed(order(dag)):
        behind = max((longest[child] for child in children.of(vertex)), default=0.0)
        own = 0.0 if vertex >= nodes or not dag.nodes[vertex].is_ordinary else 1.0
        if own and seconds is not None:
            own = seconds.get(vertex, own)
        longest[vertex] = own + behind
    return longest


def _parent_counts(dag: Dag) -> list[int]:
    parents = dag.edges.parents()
    return [parents.count(vertex) for vertex in range(dag.edges.vertices)]
