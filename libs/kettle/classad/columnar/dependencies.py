"""Which columns the value of an expression may depend on: more may be named than do, never fewer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import OTHER, OWN
from kettle.classad.columnar.column import Column, Tag
from kettle.classad.errors import ClassAdParseError
from kettle.classad.match_ad import IN_MATCH
from kettle.classad.nodes import AdLiteral, Call, Literal, Node, Reference
from kettle.classad.parser import parse
from kettle.classad.reference_analysis import children
from kettle.classad.selection import is_bare

if TYPE_CHECKING:
    from kettle.classad.columnar.frame import Frame

_WHOLE: Final = frozenset({"my", "self", "target", "other", "parent", "root", "toplevel"}) | IN_MATCH
_HIDING: Final = frozenset({"unresolved"})
_CHANCE: Final = frozenset({"random"})


class Everything(Exception):  # noqa: N818 - it never leaves this package
    """Nothing less than the whole row, or not even that, determines the value."""


def dependencies(expression: Node, frame: Frame) -> frozenset[str]:
    """
    The keys of the columns that `expression`, written on the frame's side, may look at.

    Raises `Everything` if they cannot be determined.
    """
    search = _Search(frame)
    search.follow(expression, mine=frame.mine)
    return frozenset(search.columns)


class _Search:
    """
    Names are followed on the side on which they are written, `loose` ones (in nested ads, or in the context of
    other ads) on both.
    """

    def __init__(self, frame: Frame) -> None:
        self.columns: set[str] = set()
        self._shared = frame.shared
        self._seen: set[tuple[str, bool, bool]] = set()
        self._pending: list[tuple[Node, bool, bool]] = []

    def follow(self, expression: Node, *, mine: bool) -> None:
        self._pending.append((expression, mine, False))
        while self._pending:
            node, mine, loose = self._pending.pop()
            if isinstance(node, Reference):
                self._reference(node, mine=mine, loose=loose)
                continue
            if isinstance(node, Call):
                loose |= self._call(node, mine=mine, loose=loose)
            loose |= isinstance(node, AdLiteral)
            self._pending.extend((child, mine, loose) for child in children(node))

    def _reference(self, node: Reference, *, mine: bool, loose: bool) -> None:
        base = node.base
        if node.key in _WHOLE:
            raise Everything
        if base is None:
            self._name(node.key, mine=mine, beyond=True, loose=loose or node.absolute)
        elif not isinstance(base, Reference) or base.base is not None or base.absolute:
            self._name(node.key, mine=mine, beyond=True, loose=True)
            self._pending.append((base, mine, True))
        elif base.key in OWN | OTHER:
            self._name(base.key, mine=mine, beyond=True, loose=loose)
            self._name(node.key, mine=mine != (base.key in OTHER), beyond=False, loose=loose)
        else:
            if base.key in _WHOLE:
                raise Everything
            self._name(node.key, mine=mine, beyond=True, loose=True)
            self._name(base.key, mine=mine, beyond=True, loose=True)

    def _name(self, key: str, *, mine: bool, beyond: bool, loose: bool) -> None:
        everywhere = self._enter(key, mine=mine, loose=loose)
        if loose or (beyond and not everywhere):
            self._enter(key, mine=not mine, loose=loose)

    def _enter(self, key: str, *, mine: bool, loose: bool) -> bool:
        """The expressions of a name on one side; returns whether all ads there have it."""
        shared = self._shared
        first = (key, mine, loose) not in self._seen
        self._seen.add((key, mine, loose))
        if not mine:
            stored = None if shared.ad is None else shared.ad.find(key)
            if first and isinstance(stored, Node):
                self._pending.append((stored, mine, loose))
            return stored is not None
        overlaid = shared.overlay.get(key)
        if overlaid is not None and not isinstance(overlaid, Column):
            self.columns.add(key)
            return True
        column = shared.table.columns.get(key) if overlaid is None else overlaid
        if column is None:
            return False
        if first:
            self.columns.add(key)
            stored_in_rows = shared.table.expressions_of(column) if column.counts[Tag.EXPRESSION] else ()
            self._pending.extend((node, mine, loose) for node in stored_in_rows if isinstance(node, Node))
        return sum(column.counts) == shared.count

    def _call(self, node: Call, *, mine: bool, loose: bool) -> bool:
        """Whether what a function's arguments mention is looked for on both sides."""
        if node.key in _CHANCE or node.key in _HIDING:
            raise Everything
        if node.key == "unparse" and not all(is_bare(argument) for argument in node.arguments):
            raise Everything
        if node.key == "eval":
            if len(node.arguments) != 1 or not isinstance(node.arguments[0], Literal):
                raise Everything
            text = node.arguments[0].value
            if isinstance(text, str):
                try:
                    self._pending.append((parse(text), mine, loose))
                except ClassAdParseError:
                    return False
        return node.key in {"evalineachcontext", "countmatches", "unparse"}
