"""
A graph of very many nodes as a picture of few figures.

Splices and the instances of one job are one figure each; of the others those that wait for the same figures, if they are many; and
what is left of a level that is still too wide, or of a graph that is too high.  What a figure stands for never changes.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from kettle.dag.edges import Adjacency
from kettle.dag.view.reasons import edges_of
from kettle_wire.workflows import Plan

Fold = Literal["auto", "groups", "none"]
Kind = Literal["job", "final", "provisioner", "service", "group", "many"]
"""What a figure is: a node of this kind, nodes that belong together by their names, or others."""
FEW: Final = 12
"""So many nodes with the same parents stand for themselves."""
WIDE: Final = 30
"""Figures of a level."""
HIGH: Final = 80
"""Levels of a picture; of a higher graph several are one."""


class Figure(msgspec.Struct, frozen=True, gc=False):
    """One box of a picture."""

    name: str
    """Of its node; of several what their names have in common."""
    kind: Kind
    nodes: int
    level: int
    """How many levels are above it."""


class Arrow(msgspec.Struct, frozen=True, gc=False):
    """From one figure to another, by their places; weak: none waits for a success."""

    parent: int
    child: int
    weak: bool = False


class Picture(msgspec.Struct, frozen=True):
    """The figures of a graph."""

    figures: Sequence[Figure]
    arrows: Sequence[Arrow]
    figure_of: "array[int]"
    """By node the place of its figure."""

    def counts(self, states: bytes | bytearray) -> list[Counter[int]]:
        """By figure how many of its nodes are in which state."""
        found: list[Counter[int]] = [Counter() for _ in self.figures]
        for figure, state in zip(self.figure_of, states, strict=True):
            found[figure][state] += 1
        return found


def picture(plan: Plan, fold: Fold) -> Picture:
    """The picture of a plan."""
    return _Folding(plan, fold).picture()


def group_of(name: str) -> str:
    """
    What a node belongs to by its name: the splice of the outermost file, or the job of which it is an instance; empty: nothing.
    """
    splice, plus, _ = name.partition("+")
    if plus and splice:
        return f"{splice}+"
    job, slash, index = name.rpartition("/")
    return f"{job}/" if slash and index.isdecimal() else ""


class _Folding:
    """The folding of one plan."""

    def __init__(self, plan: Plan, fold: Fold) -> None:
        self._plan = plan
        self._fold = fold
        self._count = len(plan.names)
        edges = edges_of(plan)
        self._children: Adjacency = edges.children()
        self._parents: Adjacency = edges.parents()
        self._band = 1
        """So many levels of the graph are one of the picture."""
        self._levels = self._levelled()
        self._figure_of = array("l", [-1]) * self._count
        self._members: list[list[int]] = []

    def picture(self) -> Picture:
        if self._fold != "none":
            self._fold_groups()
        by_level: defaultdict[int, list[int]] = defaultdict(list)
        for node, level in enumerate(self._levels):
            if self._figure_of[node] < 0:
                by_level[level].append(node)
        for level in sorted(by_level):
            self._fold_level(by_level[level])
        return Picture(
            [self._figure(members) for members in self._members], list(self._arrows()), self._figure_of
        )

    def _levelled(self) -> list[int]:
        """By node how many levels are above it; what is in no graph comes first, or last."""
        waiting = [self._parents.count(vertex) for vertex in range(self._count + self._plan.joins)]
        depth = [0] * len(waiting)
        order = [vertex for vertex, parents in enumerate(waiting) if not parents]
        for vertex in order:  # grows on the way
            below = depth[vertex] + (vertex < self._count)
            for child in self._children.of(vertex):
                depth[child] = max(depth[child], below)
                waiting[child] -= 1
                if not waiting[child]:
                    order.append(child)
        levels = depth[: self._count]
        first = self._plan.provisioner is not None
        levels = [level + first for level in levels]
        if self._plan.provisioner is not None:
            levels[self._plan.provisioner] = 0
        if self._plan.final is not None:
            levels[self._plan.final] = 0
            levels[self._plan.final] = max(levels) + 1
        height = max(levels, default=0) + 1
        self._band = -(-height // HIGH) if self._fold == "auto" else 1
        return [level // self._band for level in levels]

    def _make(self, members: list[int]) -> None:
        for node in members:
            self._figure_of[node] = len(self._members)
        self._members.append(members)

    def _fold_groups(self) -> None:
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for node, name in enumerate(self._plan.names):
            if group := group_of(name):
                groups[group].append(node)
        for members in groups.values():
            if len(members) > 1:
                self._make(members)

    def _fold_level(self, nodes: list[int]) -> None:
        """The nodes of a level that belong to no group; those above have their figures."""
        if self._band > 1:
            self._make(nodes)
            return
        if self._fold != "auto" or len(nodes) <= FEW:
            for node in nodes:
                self._make([node])
            return
        alike: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for node in nodes:
            alike[self._above(node)].append(node)
        few = FEW if self._figures_with(alike.values(), FEW) <= WIDE else 1
        if self._figures_with(alike.values(), few) > WIDE:
            self._make(nodes)
            return
        for members in alike.values():
            for part in [members] if len(members) > few else [[node] for node in members]:
                self._make(part)

    def _figures_with(self, classes: Iterable[list[int]], few: int) -> int:
        return sum(1 if len(members) > few else len(members) for members in classes)

    def _above(self, node: int) -> tuple[int, ...]:
        """The figures for which a node waits; a join stands for itself, below zero."""
        parents = self._parents.of(node)
        return tuple(
            sorted({~parent if parent >= self._count else self._figure_of[parent] for parent in parents})
        )

    def _figure(self, members: list[int]) -> Figure:
        names, node = self._plan.names, members[0]
        level = min(self._levels[each] for each in members)
        if len(members) == 1:
            return Figure(names[node], self._kind(node), 1, level)
        if (group := group_of(names[node])) and all(group_of(names[each]) == group for each in members):
            return Figure(group.rstrip("+/"), "group", len(members), level)
        common = _common([names[each] for each in members])
        return Figure(f"{common}\N{HORIZONTAL ELLIPSIS}", "many", len(members), level)

    def _kind(self, node: int) -> Kind:
        plan = self._plan
        if node in {plan.final, plan.provisioner}:
            return "final" if node == plan.final else "provisioner"
        return "service" if node in plan.services else "job"

    def _arrows(self) -> Iterable[Arrow]:
        found: dict[tuple[int, int], bool] = {}
        through: defaultdict[int, dict[int, bool]] = defaultdict(dict)

        def draw(parent: int, child: int, *, weak: bool) -> None:
            if parent != child:
                found[parent, child] = found.get((parent, child), True) and weak

        for node in range(self._count):
            figure = self._figure_of[node]
            weakness = self._children.weakness_of(node)
            for child, weak in zip(self._children.of(node), weakness, strict=True):
                if child < self._count:
                    draw(figure, self._figure_of[child], weak=bool(weak))
                else:
                    through[child][figure] = through[child].get(figure, True) and bool(weak)
        for join, parents in through.items():
            for child in {self._figure_of[each] for each in self._children.of(join)}:
                for parent, weak in parents.items():
                    draw(parent, child, weak=weak)
        return (Arrow(parent, child, weak) for (parent, child), weak in found.items())


def _common(names: Sequence[str]) -> str:
    """How all of them begin."""
    first, last = min(names), max(names)
    return next((first[:place] for place, letter in enumerate(first) if last[place] != letter), first)
