"""
The syntax tree: frozen, comparable, shared by everyone who parsed the same text.

Parentheses are nodes, so that an expression is written back the way its author wrote it.
A `key` is the lower-case name: names are compared without regard to case but keep their spelling.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kettle.classad.values import Scalar


class Node(msgspec.Struct, frozen=True, eq=False):
    """
    An expression.

    Trees may be deeper than Python's stack, so they are compared in a loop,
    and the hash is that of the outermost nodes.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return all(mine == theirs for mine, theirs in _side_by_side(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(islice(_leaves(self), _HASHED)))


class Literal(Node, frozen=True):
    """
    A value that stands for itself.

    Equality is identity of type and value: 1, 1.0 and true are three literals.
    """

    value: Scalar


class RelTimeLiteral(Node, frozen=True):
    """
    ``relTime("1:05")``, read when the expression is: its value is the real number of seconds, no duration.

    Only where the expression itself is written, and not its value, does it show that it was one.
    """

    seconds: float


_HASHED: Final = 48


def _by_name(attribute: tuple[str, Node]) -> str:
    return attribute[0].lower()


def _inside(part: object) -> Sequence[object] | None:
    """
    The parts of a node or a tuple, preceded by what distinguishes it from others; None for anything else.
    """
    if isinstance(part, Literal):
        value = part.value
        return Literal, type(value), repr(value) if isinstance(value, float) else value
    if isinstance(part, RelTimeLiteral):
        return RelTimeLiteral, repr(part.seconds)
    if isinstance(part, AdLiteral):
        return AdLiteral, *sorted(part.attributes, key=_by_name)
    if isinstance(part, Node):
        return type(part), *(getattr(part, field) for field in part.__struct_fields__)
    if isinstance(part, tuple):
        members = cast("tuple[object, ...]", part)
        return len(members), *members
    return None


def _leaves(node: Node) -> Iterator[object]:
    pending: deque[object] = deque([node])
    while pending:
        part = pending.popleft()
        inside = _inside(part)
        if inside is None:
            yield part
        else:
            pending.extend(inside)


def _side_by_side(left: object, right: object) -> Iterator[tuple[object, object]]:
    """
    The parts of two trees in pairs; trees of different shape make a pair that differs before they come apart.
    """
    pending = [(left, right)]
    while pending:
        left, right = pending.pop()
        if left is right:
            continue
        inside, other = _inside(left), _inside(right)
        if inside is None or other is None:
            yield left, right
        else:
            yield inside[0], other[0]
            pending.extend(zip(inside[1:], other[1:], strict=False))


class Reference(Node, frozen=True):
    """``name``, ``base.name``, or ``.name``, which starts at the root (`absolute`)."""

    name: str
    key: str
    base: Node | None = None
    absolute: bool = False


class Unary(Node, frozen=True):
    """A prefix operator: ``-``, ``+``, ``!``, ``~``."""

    op: str
    operand: Node


class Parentheses(Node, frozen=True):
    """``( inner )``."""

    inner: Node


class Binary(Node, frozen=True):
    """A binary operator that evaluates both sides: arithmetic, bits, comparison, identity."""

    op: str
    left: Node
    right: Node


class Logical(Node, frozen=True):
    """``&&`` or ``||``: the left side may decide alone."""

    op: str
    left: Node
    right: Node


class Conditional(Node, frozen=True):
    """``condition ? then : otherwise``."""

    condition: Node
    then: Node
    otherwise: Node


class Elvis(Node, frozen=True):
    """``preferred ?: fallback``."""

    preferred: Node
    fallback: Node


class Subscript(Node, frozen=True):
    """``base[index]``."""

    base: Node
    index: Node


class Call(Node, frozen=True):
    """``name(arguments)``; whether the function exists is found out at evaluation."""

    name: str
    key: str
    arguments: tuple[Node, ...]


class ListLiteral(Node, frozen=True):
    """``{ items }``."""

    items: tuple[Node, ...]


class AdLiteral(Node, frozen=True):
    """
    ``[ name = expression; ... ]``: each name once, in its first spelling, with its last expression.

    The order in which they were written does not matter to equality.
    """

    attributes: tuple[tuple[str, Node], ...]


def held(node: Node) -> Scalar | Node:
    """What an ad or a list holds of an expression: of a literal its value."""
    return node.value if isinstance(node, Literal) else node


def reference(name: str) -> Reference:
    """An unscoped reference."""
    return Reference(name, name.lower())
