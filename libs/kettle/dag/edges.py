"""
Who waits for whom, compact: arrays of indices, that a million nodes fit into little memory.

A line `PARENT a b CHILD c d` would be four edges, and with a thousand names on either side a million.  Where both sides
have more than one name, a *join* stands between them: a vertex without a name, behind the nodes in numbering, which waits
for all parents and for which all children wait.  People never see it: counts, names and pictures go through it.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

import msgspec

MANY: Final = 50_000
"""Edges from which on it pays to load `kettle.dag.edge_tables`."""


class Edges(msgspec.Struct, frozen=True, gc=False):
    """
    The edges of a graph by their parents, as little-endian numbers of 32 bits, so that msgspec can encode them.

    Vertices below `nodes` are nodes, the others joins.  The children of vertex `v` are `ends[starts[v]:starts[v + 1]]`.
    """

    nodes: int
    joins: int
    starts: bytes
    ends: bytes
    weak: bytes
    """For each of `ends` one byte: 1 if the child only waits until the parent has been carried out, however it ended."""

    @property
    def vertices(self) -> int:
        """Nodes and joins together."""
        return self.nodes + self.joins

    def children(self) -> "Adjacency":
        """For each vertex those that wait for it."""
        return Adjacency(self.nodes, _numbers(self.starts), _numbers(self.ends), self.weak)

    def parents(self) -> "Adjacency":
        """For each vertex those that it waits for; each call makes the list again."""
        if len(self.weak) >= MANY:
            from kettle.dag.edge_tables import reversed_edges

            starts, ends, weak = reversed_edges(self.starts, self.ends, self.weak, self.vertices)
            return Adjacency(self.nodes, _numbers(starts), _numbers(ends), weak)
        bounds, targets = _numbers(self.starts), _numbers(self.ends)
        sources = [
            vertex for vertex in range(self.vertices) for _ in range(bounds[vertex], bounds[vertex + 1])
        ]
        order = sorted(range(len(targets)), key=targets.__getitem__)
        return Adjacency(
            self.nodes,
            _numbers(_starts(targets, self.vertices)),
            _numbers(_words(sources[place] for place in order)),
            bytes(self.weak[place] for place in order),
        )


class Adjacency:
    """One direction of the edges, opened for reading: neighbours by vertex, in the order of their indices."""

    __slots__ = ("_ends", "_nodes", "_starts", "_weak")

    def __init__(self, nodes: int, starts: memoryview, ends: memoryview, weak: bytes) -> None:
        self._nodes = nodes
        self._starts = starts
        self._ends = ends
        self._weak = weak

    def of(self, vertex: int) -> list[int]:
        """The neighbours of a vertex; joins among them."""
        return self._ends[self._starts[vertex] : self._starts[vertex + 1]].tolist()

    def weakness_of(self, vertex: int) -> bytes:
        """For each of its neighbours 1 if that edge is weak, else 0."""
        return self._weak[self._starts[vertex] : self._starts[vertex + 1]]

    def count(self, vertex: int) -> int:
        """How many neighbours it has, joins counted as one."""
        return int(self._starts[vertex + 1] - self._starts[vertex])

    def nodes_of(self, node: int) -> Iterator[int]:
        """The nodes that are its neighbours, seen through joins, each once."""
        neighbours = self.of(node)
        if not neighbours or neighbours[-1] < self._nodes:
            yield from neighbours
            return
        seen: set[int] = set()
        for neighbour in neighbours:
            for each in (neighbour,) if neighbour < self._nodes else self.of(neighbour):
                if each not in seen:
                    seen.add(each)
                    yield each


class EdgeCollector:
    """Takes edges while files are read; a join is told from a node by its negative number."""

    def __init__(self) -> None:
        self._sources = array("i")
        self._targets = array("i")
        self._weak = bytearray()
        self._joins = 0

    def connect(self, parents: Sequence[int], children: Sequence[int], *, is_weak: bool) -> None:
        """Let every one of the children wait for every one of the parents."""
        if len(parents) > 1 and len(children) > 1:
            self._joins += 1
            join = (-self._joins,)
            self._all_to_all(parents, join, is_weak=is_weak)
            self._all_to_all(join, children, is_weak=False)
        else:
            self._all_to_all(parents, children, is_weak=is_weak)

    def _all_to_all(self, parents: Sequence[int], children: Sequence[int], *, is_weak: bool) -> None:
        for parent in parents:
            self._sources.extend([parent] * len(children))
            self._targets.extend(children)
        self._weak.extend(bytes((is_weak,)) * (len(parents) * len(children)))

    def edges(self, nodes: int) -> Edges:
        """All edges, each pair once; a strong edge stands for a weak one of the same pair."""
        vertices = nodes + self._joins
        if len(self._weak) >= MANY:
            from kettle.dag.edge_tables import ordered

            starts, ends, weak = ordered(self._sources, self._targets, bytes(self._weak), nodes, vertices)
        else:
            first: dict[tuple[int, int], int] = {}
            for source, target, is_weak in zip(self._sources, self._targets, self._weak, strict=True):
                pair = _vertex(source, nodes), _vertex(target, nodes)
                first[pair] = first.get(pair, 1) & is_weak
            pairs = sorted(first)
            starts = _starts((source for source, _ in pairs), vertices)
            ends, weak = _words(target for _, target in pairs), bytes(map(first.__getitem__, pairs))
        return Edges(nodes=nodes, joins=self._joins, starts=starts, ends=ends, weak=weak)


def _vertex(number: int, nodes: int) -> int:
    return number if number >= 0 else nodes - 1 - number


def _starts(sources: Iterable[int], vertices: int) -> bytes:
    counts = [0] * (vertices + 1)
    for source in sources:
        counts[source + 1] += 1
    return _words(accumulate(counts))


def _words(numbers: Iterable[int]) -> bytes:
    return array("I", numbers).tobytes()


def _numbers(data: bytes) -> memoryview:
    return memoryview(data).cast("I")
