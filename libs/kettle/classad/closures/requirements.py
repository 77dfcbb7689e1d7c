"""
The comparisons that a Requirements consists of: what the other ad has, against a literal or an own attribute.

They look at both ads themselves, which spares two calls for each; whatever is not plain they leave to the closure
for the operator at large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kettle.classad.ad import OTHER, OWN
from kettle.classad.closures.operators import COMPARE, MIRRORED
from kettle.classad.nodes import Literal, Node, Parentheses, Reference
from kettle.classad.operators import LONG_TEXT
from kettle.classad.scope import MAGIC
from kettle.classad.selection import is_bare

if TYPE_CHECKING:
    from kettle.classad.cost import Code
    from kettle.classad.scope import Scope
    from kettle.classad.values import Value


def comparison(op: str, left: Node, right: Node, otherwise: Code) -> Code:
    """``TARGET.name op literal`` or ``TARGET.name op name``, either way round; `otherwise` for all else."""
    if op not in COMPARE:
        return otherwise
    left, right = _bared(left), _bared(right)
    theirs = _attribute_of_other(left)
    if theirs is None:
        op, left, right = MIRRORED[op], right, left
        theirs = _attribute_of_other(left)
    if theirs is None:
        return otherwise
    own = _own_attribute(right)
    if own is not None:
        return _with_own(op, theirs, own, otherwise)
    value = right.value if isinstance(right, Literal) else None
    if isinstance(value, str) and value.isascii():
        return _with_text(op, theirs, value.lower(), otherwise)
    return _with_integer(op, theirs, value, otherwise) if type(value) is int else otherwise


def _bared(node: Node) -> Node:
    while isinstance(node, Parentheses):
        node = node.inner
    return node


def _attribute_of_other(node: Node) -> str | None:
    """The name in ``TARGET.name``."""
    side = node.base if isinstance(node, Reference) else None
    return node.key if isinstance(node, Reference) and side and is_bare(side) and side.key in OTHER else None


def _own_attribute(node: Node) -> str | None:
    """The name in ``MY.name``, or a mere name."""
    if not isinstance(node, Reference) or node.absolute:
        return None
    if node.base is None:
        return None if node.key in MAGIC | OTHER else node.key
    return node.key if is_bare(node.base) and node.base.key in OWN else None


def _with_own(op: str, key: str, own: str, otherwise: Code) -> Code:
    compare = COMPARE[op]

    def code(scope: Scope) -> Value:
        theirs, mine = scope.theirs, scope.own
        if theirs is not None and mine is not None:
            value, limit = theirs.get(key), mine.get(own)
            if type(value) is int and type(limit) is int:
                return compare(value, limit)
        return otherwise(scope)

    return code


def _with_integer(op: str, key: str, constant: int, otherwise: Code) -> Code:
    compare = COMPARE[op]

    def code(scope: Scope) -> Value:
        theirs = scope.theirs
        if theirs is not None:
            value = theirs.get(key)
            if type(value) is int:
                return compare(value, constant)
        return otherwise(scope)

    return code


def _with_text(op: str, key: str, lowered: str, otherwise: Code) -> Code:
    compare = COMPARE[op]
    longest = len(lowered) + LONG_TEXT

    def code(scope: Scope) -> Value:
        theirs = scope.theirs
        if theirs is not None:
            value = theirs.get(key)
            if type(value) is str and value.isascii() and len(value) <= longest:
                return compare(value.lower(), lowered)
        return otherwise(scope)

    return code
