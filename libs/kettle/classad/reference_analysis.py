"""
Which attributes an expression depends on.

Text inside of strings is not looked at: `eval("x")` hides its reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from kettle.classad.ad import OTHER, OWN
from kettle.classad.nodes import (
    AdLiteral,
    Binary,
    Call,
    Conditional,
    Elvis,
    ListLiteral,
    Literal,
    Logical,
    Node,
    Parentheses,
    Reference,
    Subscript,
    Unary,
)
from kettle.classad.scope import MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kettle.classad.ad import ClassAd

_MAGIC: Final = MAGIC | OTHER
_HIDING: Final = frozenset({"eval", "unresolved"})
"""Functions that look at attributes which are named in no reference."""
_WHOLE: Final = OTHER | {"parent", "root", "toplevel"}
"""Whole ads as values, among them the other one."""


class References(msgspec.Struct, frozen=True):
    """
    `internal` are attributes the ad defines, in the ad's spelling.

    `external` are those it leaves open: ``name``, or ``TARGET.name`` where the other ad is named.
    """

    internal: frozenset[str]
    external: frozenset[str]


def references(expression: Node, ad: ClassAd | None = None) -> References:
    """All attributes `expression` depends on, through the attributes of `ad` and its chained ad."""
    search = _Search(ad)
    search.follow(expression)
    return References(frozenset(search.internal.values()), frozenset(search.external.values()))


def external_references(expression: Node, ad: ClassAd | None = None) -> frozenset[str]:
    """The attributes that `expression` asks of the other ad, without prefix; one spelling of each."""
    names: dict[str, str] = {}
    for name in sorted(references(expression, ad).external):
        names.setdefault(trimmed(name).lower(), trimmed(name))
    return frozenset(names.values())


def trimmed(name: str) -> str:
    """An external reference without ``TARGET.``."""
    return name[7:] if name[:7].upper() == "TARGET." else name


def hides(expression: Node) -> bool:
    """Whether `expression` may ask something of the other ad that its references do not show."""
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.key in _HIDING:
            return True
        if isinstance(node, Reference):
            if node.base is None and node.key in _WHOLE:
                return True
            if _is_side(node.base, OTHER):
                continue
        pending.extend(children(node))
    return False


def conceals(expression: Node) -> bool:
    """
    Whether `expression` may look at attributes of its own ad that its references do not show.

    It evaluates text, or chooses from a whole ad: the names of what is asked for may be anything.
    """
    pending = [expression]
    while pending:
        node = pending.pop()
        match node:
            case Call() if node.key in _HIDING:
                return True
            case Reference() if _is_side(node.base, OWN | OTHER):
                continue
            case Reference() if node.base is not None or node.key in OWN | _WHOLE:
                return True
            case Subscript(index=index) if not (isinstance(index, Literal) and isinstance(index.value, int)):
                return True
            case _:
                pending.extend(children(node))
    return False


def calls(expression: Node, function: str) -> bool:
    """Whether `expression` calls a function, which is named in lower case."""
    return any(isinstance(node, Call) and node.key == function for node in nodes(expression))


def depends_on_time(expression: Node) -> bool:
    """Whether `expression` asks what time it is."""
    return calls(expression, "time") or any(
        isinstance(node, Reference) and node.base is None and node.key == "currenttime"
        for node in nodes(expression)
    )


def nodes(expression: Node) -> Iterator[Node]:
    """`expression` and everything in it."""
    pending = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(children(node))


def asks_own(expression: Node) -> bool:
    """Whether `expression` asks for its own ad by name, as in ``MY.name``."""
    pending = [expression]
    while pending:
        node = pending.pop()
        if _is_side(node, OWN):
            return True
        pending.extend(children(node))
    return False


def _is_side(node: Node | None, names: frozenset[str]) -> bool:
    return isinstance(node, Reference) and node.base is None and node.key in names


class _Search:
    """Each attribute is entered once, so circles end; `_shadows` are the names that nested ads define."""

    def __init__(self, ad: ClassAd | None) -> None:
        self.internal: dict[str, str] = {}
        self.external: dict[str, str] = {}
        self._ad = ad

    def follow(self, expression: Node) -> None:
        pending: list[tuple[Node, frozenset[str]]] = [(expression, frozenset())]
        while pending:
            node, shadows = pending.pop()
            if isinstance(node, Reference):
                pending.extend(self._enter(node, shadows))
            else:
                inner = (
                    shadows | {name.lower() for name, _ in node.attributes}
                    if isinstance(node, AdLiteral)
                    else shadows
                )
                pending.extend((child, inner) for child in children(node))

    def _enter(self, node: Reference, shadows: frozenset[str]) -> Iterable[tuple[Node, frozenset[str]]]:
        base = node.base
        if base is None:
            return () if node.key in shadows else self._named(node)
        if not isinstance(base, Reference) or base.base is not None or base.key not in OWN | OTHER:
            return ((base, shadows),)
        if base.key in shadows or (self._ad is not None and base.key in self._ad):
            return ((base, shadows),)
        if base.key in OTHER:
            self.external.setdefault(f"target.{node.key}", f"TARGET.{node.name}")
            return ()
        return () if node.key in shadows else self._named(node)

    def _named(self, node: Reference) -> Iterable[tuple[Node, frozenset[str]]]:
        if self._ad is None or node.key not in self._ad:
            if node.key not in _MAGIC or node.base is not None:
                self.external.setdefault(node.key, node.name)
            return ()
        if node.key in self.internal:
            return ()
        self.internal[node.key] = self._ad.spelling(node.key)
        stored = self._ad.find(node.key)
        return ((stored, frozenset()),) if isinstance(stored, Node) else ()


def children(node: Node) -> Iterator[Node]:
    """The expressions directly within `node`."""
    match node:
        case Unary(operand=inner) | Parentheses(inner=inner):
            yield inner
        case Binary(left=left, right=right) | Logical(left=left, right=right):
            yield from (left, right)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            yield from (condition, then, otherwise)
        case Elvis(preferred=first, fallback=second) | Subscript(base=first, index=second):
            yield from (first, second)
        case Call(arguments=inside) | ListLiteral(items=inside):
            yield from inside
        case AdLiteral(attributes=attributes):
            yield from (expression for _, expression in attributes)
        case Reference(base=base) if base is not None:
            yield base
        case _:
            return


def conjuncts(expression: Node) -> list[Node]:
    """
    The clauses that `expression` joins with ``&&`` at its top, left to right, without their parentheses.

    All of them must be true for the whole to be true, which is how a requirement that fails is explained.
    """
    clauses: list[Node] = []
    pending = [expression]
    while pending:
        node = pending.pop()
        while isinstance(node, Parentheses):
            node = node.inner
        if isinstance(node, Logical) and node.op == "&&":
            pending.extend((node.right, node.left))
        else:
            clauses.append(node)
    return clauses
