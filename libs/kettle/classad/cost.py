"""
How far an expression goes before it enters another one: the bill for evaluating it, and the room that it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec

from kettle.classad.functions import FUNCTIONS
from kettle.classad.nodes import AdLiteral, Call, ListLiteral, Node
from kettle.classad.reference_analysis import children

if TYPE_CHECKING:
    from kettle.classad.scope import Scope
    from kettle.classad.values import Value

Code: TypeAlias = "Callable[[Scope], Value]"

_MOST_NODES: Final = 500_000
_T = TypeVar("_T")


class Kept(dict[int, _T]):
    """
    What is known about expressions, by the identity of the node: a hash of the tree would have to walk it.

    An entry holds its node, so that no other node gets the same identity while it is here.
    All entries go when the expressions have too many nodes together: anybody may send long ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self._nodes = 0

    def keep(self, node: Node, entry: _T, nodes: int) -> _T:
        """Add an entry for an expression of so many nodes."""
        self._nodes += nodes
        if self._nodes > _MOST_NODES:
            self.clear()
            self._nodes = nodes
        self[id(node)] = entry
        return entry


class Extent(msgspec.Struct, eq=False):
    """
    What is known about an expression.

    `size` is the number of its nodes, without those that it evaluates later if ever: members of lists and of
    nested ads, arguments that a function evaluates itself.
    `height` is the number of levels that it goes down, whichever of its branches are taken.
    `code` is what it was compiled to, once somebody needed that.
    """

    node: Node
    size: int
    height: int
    code: Code | None = None


EXTENTS: Final[Kept[Extent]] = Kept()


def extent_of(node: Node) -> Extent:
    """The extent of `node`, found out once."""
    extent = EXTENTS.get(id(node))
    if extent is None:
        extent = Extent(node, *_measured(node))
        EXTENTS.keep(node, extent, extent.size)
    return extent


def _measured(expression: Node) -> tuple[int, int]:
    """Size and height, from the leaves up; without recursion, for trees deeper than Python's stack."""
    known: dict[int, tuple[int, int]] = {}
    pending = [expression]
    while pending:
        node = pending[-1]
        parts, level = _parts(node)
        missing = [part for part in parts if id(part) not in known]
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        measures = [known[id(part)] for part in parts]
        size = 1 + sum(size for size, _ in measures)
        known[id(node)] = size, level + max((height for _, height in measures), default=0)
    return known[id(expression)]


def _parts(node: Node) -> tuple[tuple[Node, ...], int]:
    """The expressions that are evaluated as part of `node`, and how many levels below it they are."""
    if isinstance(node, Call):
        function = FUNCTIONS.get(node.key)
        if function is None or not function.accepts(len(node.arguments)):
            return (), 0
        return () if function.lazy is not None else node.arguments, 1
    if isinstance(node, ListLiteral | AdLiteral):
        return (), 0
    parts = tuple(children(node))
    return parts, 1 if parts else 0
