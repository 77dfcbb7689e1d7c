"""
Who waits for whom, compact: arrays of indices, that a million nodes fit into little memory.

A line `PARENT a b CHILD c d` would be four edges, and with a thousand names on either side a million.  Where both sides
have more than one name, a *join* stands between them: a vertex without a name, behind the nodes in numbering, which waits
for all parents and for which all children wait.  People never see it: counts, names and pictures go through it.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

_INDEX: Final = "<u4"


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
        bounds = np.frombuffer(self.starts, dtype=_INDEX).astype(np.int64)
        sources = np.repeat(np.arange(self.vertices, dtype=_INDEX), bounds[1:] - bounds[:-1])
        targets = np.frombuffer(self.ends, dtype=_INDEX)
        order = np.argsort(targets, kind="stable")
        starts = _starts(targets, self.vertices)
        weak = np.frombuffer(self.weak, dtype=np.uint8)[order]
        return Adjacency(self.nodes, _numbers(starts), _numbers(sources[order].tobytes()), weak.tobytes())


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
        sources = _vertices(self._sources, nodes)
        targets = _vertices(self._targets, nodes)
        pairs = np.unique((sources << 32 | targets) << 1 | np.frombuffer(bytes(self._weak), dtype=np.uint8))
        is_first = np.ones(len(pairs), dtype=bool)
        is_first[1:] = (pairs[1:] >> 1) != (pairs[:-1] >> 1)  # the strong one of a pair comes first
        pairs = pairs[is_first]
        return Edges(
            nodes=nodes,
            joins=self._joins,
            starts=_starts(pairs >> 33, nodes + self._joins),
            ends=(pairs >> 1 & 0xFFFFFFFF).astype(_INDEX).tobytes(),
            weak=(pairs & 1).astype(np.uint8).tobytes(),
        )


def _vertices(numbers: "array[int]", nodes: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    found = (
        np.frombuffer(numbers, dtype=np.int32).astype(np.int64) if numbers else np.zeros(0, dtype=np.int64)
    )
    return np.where(found < 0, nodes - 1 - found, found)


def _starts(sources: "np.ndarray[tuple[int], np.dtype[np.integer]]", vertices: int) -> bytes:
    counts = np.bincount(sources.astype(np.int64), minlength=vertices)
    return np.concatenate(([0], np.cumsum(counts))).astype(_INDEX).tobytes()


def _numbers(data: bytes) -> memoryview:
    return memoryview(data).cast("I")
