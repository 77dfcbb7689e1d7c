"""Who waits for whom: how far what a node came to reaches."""

from array import array
from collections.abc import Iterator
from itertools import pairwise

from kettle_wire.workflows import Plan


class Graph:
    """
    The edges of a plan, and for how many parents each vertex still waits.

    Joins are passed through at once: nobody sees them.
    """

    def __init__(self, plan: Plan) -> None:
        """Raises ValueError for edges that do not belong together."""
        self.nodes = len(plan.names)
        vertices = self.nodes + plan.joins
        self._starts, self._ends = words(plan.starts), words(plan.ends)
        if plan.joins > len(self._ends):  # before there is memory for them: a number is soon said
            raise ValueError(f"{plan.joins} joins have {len(self._ends)} edges, and each waits for somebody")
        if not plan.starts:
            self._starts = array("I", bytes(4 * (vertices + 1)))
        self._weak = plan.weak
        self._check(vertices)
        self._waiting = array("I", bytes(4 * vertices))
        for end in self._ends:
            self._waiting[end] += 1
        self._dead = bytearray(vertices)
        """Which vertices can never be reached."""

    def _check(self, vertices: int) -> None:
        starts, ends = self._starts, self._ends
        if (
            len(starts) != vertices + 1
            or starts[0]
            or starts[-1] != len(ends)
            or len(self._weak) != len(ends)
        ):
            raise ValueError(f"the edges of {vertices} vertices are not complete")
        if any(before > after for before, after in pairwise(starts)):
            raise ValueError("the edges are not in the order of their parents")
        if len(ends) and max(ends) >= vertices:
            raise ValueError(f"an edge leads to vertex {max(ends)}, and there are {vertices}")

    def waits(self, node: int) -> int:
        """For how many of its parents, joins among them, a node waits."""
        return self._waiting[node]

    def finished(self, node: int, *, well: bool) -> Iterator[tuple[int, bool]]:
        """
        Count a node as finished: the nodes that wait for nobody any more (True), and those that can never run now (False).
        """
        stack = [(node, well)]
        while stack:
            vertex, good = stack.pop()
            for place in range(self._starts[vertex], self._starts[vertex + 1]):
                child = self._ends[place]
                if not good and not self._weak[place]:
                    yield from self.unreachable_from(child)
                    continue
                self._waiting[child] -= 1
                if self._waiting[child]:
                    continue
                if child < self.nodes:
                    yield child, True
                elif not self._dead[child]:
                    stack.append((child, True))

    def never_ran(self, node: int) -> Iterator[tuple[int, bool]]:
        """A node will never run: those that can never run now (False). It satisfies nobody."""
        for place in range(self._starts[node], self._starts[node + 1]):
            yield from self.unreachable_from(self._ends[place])

    def unreachable_from(self, vertex: int) -> Iterator[tuple[int, bool]]:
        """The vertex itself, or those behind it if it is a join; each vertex once."""
        stack = [vertex]
        while stack:
            each = stack.pop()
            if self._dead[each]:
                continue
            self._dead[each] = True
            if each < self.nodes:
                yield each, False
            else:
                stack.extend(self._ends[self._starts[each] : self._starts[each + 1]])

    def parents_of(self, node: int) -> list[int]:
        """The nodes for which a node waits at the beginning, seen through joins; looks at all edges."""
        found: list[int] = []
        wanted = {node}
        for _ in range(2):  # a join's parents are nodes
            wanted = {
                vertex
                for vertex in range(len(self._starts) - 1)
                if not wanted.isdisjoint(self._ends[self._starts[vertex] : self._starts[vertex + 1]])
            }
            found += [vertex for vertex in wanted if vertex < self.nodes]
            wanted = {vertex for vertex in wanted if vertex >= self.nodes}
            if not wanted:
                break
        return sorted(set(found))


def words(data: bytes) -> "array[int]":
    """Numbers of a plan. Raises ValueError."""
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes of a plan are no words of 32 bits")
    found = array("I")
    found.frombytes(data)
    return found
