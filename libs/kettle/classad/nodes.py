"""
The syntax tree: frozen, comparable, shared by everyone who parsed the same text.

Parentheses are nodes, so that an expression is written back the way its author wrote it.
A `key` is the lower-case name: names are compared without regard to case but keep their spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from kettle.classad.values import Scalar


class Node(msgspec.Struct, frozen=True):
    """An expression."""


class Literal(Node, frozen=True, eq=False):
    """
    A value that stands for itself.

    Equality is identity of type and value: 1, 1.0 and true are three literals.
    """

    value: Scalar

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._identity() == other._identity()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[type, object]:
        value = self.value
        return type(value), repr(value) if isinstance(value, float) else value


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
    """``[ name = expression; ... ]``: each name once, in its first spelling, with its last expression."""

    attributes: tuple[tuple[str, Node], ...]


def reference(name: str) -> Reference:
    """An unscoped reference."""
    return Reference(name, name.lower())
