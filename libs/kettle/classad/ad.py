"""
The ad itself: expressions by name, names compared without regard to case.

What came over the wire is kept as it came; an expression's text is parsed when it is first looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping
from functools import lru_cache
from typing import Final, TypeAlias

from kettle.classad.errors import ClassAdParseError
from kettle.classad.new_form import read_new
from kettle.classad.nodes import AdLiteral, ListLiteral, Literal, Node, RelTimeLiteral, held
from kettle.classad.parser import parse
from kettle.classad.printing import unparse, unparse_exact
from kettle.classad.values import ERROR, UNDEFINED, List, Stored, Value
from kettle_wire.ads.types import Ad, Expr, Scalar

Assignable: TypeAlias = "Value | Node | Expr"

OWN: Final = frozenset({"my", "self"})
OTHER: Final = frozenset({"target", "other"})
SIDES: Final = OWN | OTHER

_FEW: Final = 250
"""Names of an ad that are remembered; hardly any has more."""
_ADS: Final = 128
"""Sets of names that are remembered; what comes over the bus has a megabyte at most."""


class ClassAd(MutableMapping[str, Node]):
    """
    A mapping from attribute name to expression.

    `chained` is an ad that shows through where this one says nothing (a job's cluster ad); iteration leaves it out.
    `parent` is the ad in which this one is written, where its expressions look for what they do not find here.

    For evaluators: `stored` is what stands behind each lower-case name, as it came (`find` parses it), and
    `hides_sides` is false if surely none of these names is ``MY``, ``TARGET`` or what else these are called.
    """

    __slots__ = ("_names", "chained", "hides_sides", "parent", "stored")

    def __init__(
        self,
        attributes: Mapping[str, Assignable] | None = None,
        *,
        chained: ClassAd | None = None,
        parent: ClassAd | None = None,
    ) -> None:
        self._names: dict[str, str] = {}
        self.stored: dict[str, Stored | Expr] = {}
        self.hides_sides = False
        self.chained = chained
        self.parent = parent
        for name, value in (attributes or {}).items():
            self[name] = value

    @classmethod
    def from_wire(cls, wire: Mapping[str, Scalar], *, chained: ClassAd | None = None) -> ClassAd:
        """An ad as it travels; nothing is parsed or checked yet."""
        ad = cls(chained=chained)
        names = tuple(wire)
        keys, spelled, hides_sides = (_lowered if len(names) <= _FEW else _lowered.__wrapped__)(names)
        ad._names = spelled.copy()
        ad.stored = dict(zip(keys, wire.values(), strict=True))
        ad.hides_sides = hides_sides
        return ad

    @classmethod
    def from_keys(cls, names: dict[str, str], stored: dict[str, Stored | Expr]) -> ClassAd:
        """
        An ad as a reader has put it together: spellings and contents by lower-case name.

        Both dictionaries become the ad's own; literals are held as their values.
        """
        ad = cls()
        ad._names = names
        ad.stored = stored
        ad.hides_sides = not stored.keys().isdisjoint(SIDES)
        return ad

    @classmethod
    def from_literal(cls, node: AdLiteral, parent: ClassAd | None = None) -> ClassAd:
        """The ad that ``[ ... ]`` stands for, written inside of `parent`."""
        ad = cls(parent=parent)
        for name, expression in node.attributes:
            ad[name] = expression
        return ad

    @classmethod
    def parse(cls, text: str) -> ClassAd:
        """An ad written ``[ ... ]`` in new syntax."""
        plain = read_new(text)
        if plain is not None:
            return cls.from_keys(*plain)
        node = parse(text)
        if not isinstance(node, AdLiteral):
            raise ClassAdParseError("expected an ad, found an expression", text=text, at=0)
        return cls.from_literal(node)

    def to_wire(self) -> Ad:
        """The ad as it travels: scalars as themselves, the rest as text; chained attributes stay out."""
        return {self._names[key]: _to_wire(stored) for key, stored in self.stored.items()}

    def find(self, key: str) -> Stored | None:
        """
        The value of the lower-case name, here or in the chained ad; None if it is not defined.

        Text that does not parse is the value error: one bad ad must not stop code that processes thousands.
        """
        stored = self.stored.get(key)
        if stored is None:
            return self.chained.find(key) if self.chained is not None else None
        if isinstance(stored, Expr):
            try:
                parsed = parse(stored.expr)
            except ClassAdParseError:
                return ERROR
            stored = self.stored[key] = held(parsed)
        return stored

    def spelling(self, key: str) -> str:
        """The name as it was first written, here or in the chained ad."""
        name = self._names.get(key)
        if name is None:
            return self.chained.spelling(key) if self.chained is not None else key
        return name

    def collapse(self) -> ClassAd:
        """A copy that no longer needs the chained ad."""
        flat = self.copy()
        above, flat.chained = self.chained, None
        while above is not None:
            flat._names = above._names | flat._names  # noqa: SLF001 - an ad like this one
            flat.stored = above.stored | flat.stored
            flat.hides_sides |= above.hides_sides
            above = above.chained
        return flat

    def copy(self) -> ClassAd:
        """An ad with the same attributes, chain and parent, changed independently."""
        twin = ClassAd(chained=self.chained, parent=self.parent)
        twin._names, twin.stored = self._names.copy(), self.stored.copy()
        twin.hides_sides = self.hides_sides
        return twin

    def __getitem__(self, name: str) -> Node:
        key = name.lower()
        stored = self.stored.get(key)
        if isinstance(stored, Expr):
            return parse(stored.expr)
        found = self.find(key)
        if found is None:
            raise KeyError(name)
        return as_node(found)

    def __setitem__(self, name: str, value: Assignable) -> None:
        key = name.lower()
        self._names.setdefault(key, name)
        if key in SIDES:
            self.hides_sides = True
        if isinstance(value, Node):
            value = held(value)
        elif isinstance(value, ClassAd | List):
            value = as_node(value)
        self.stored[key] = value

    def __delitem__(self, name: str) -> None:
        """Take an attribute away; one that the chained ad also has becomes undefined instead."""
        key = name.lower()
        if self.chained is not None and name in self.chained:
            self[name] = UNDEFINED
            return
        if key not in self.stored:
            raise KeyError(name)
        del self.stored[key], self._names[key]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            name.lower() in self.stored or (self.chained is not None and name in self.chained)
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.values())

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClassAd) or self._names.keys() != other._names.keys():
            return NotImplemented if not isinstance(other, ClassAd) else False
        return all(self[name] == other[name] for name in self)

    __hash__ = None  # type: ignore[assignment]  # it can change

    def __repr__(self) -> str:
        return unparse(as_node(self))


@lru_cache(maxsize=_ADS)
def _lowered(names: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str], bool]:
    """Names in lower case, how each is spelled, and whether one of them is ``MY``, ``TARGET`` or the like."""
    keys = tuple(name.lower() for name in names)
    spelled = dict(zip(keys, names, strict=True))
    return keys, spelled, not spelled.keys().isdisjoint(SIDES)


def as_node(value: Value | Node) -> Node:
    """The expression that evaluates to `value`."""
    if isinstance(value, Node):
        return value
    if isinstance(value, ClassAd):
        return AdLiteral(tuple((name, _readable(value, name)) for name in value))
    if isinstance(value, List):
        return ListLiteral(tuple(as_node(item) for item in value.items))
    return Literal(value)


def _readable(ad: ClassAd, name: str) -> Node:
    """The expression behind a name; text that does not parse is the value error."""
    stored = ad.find(name.lower())
    return as_node(UNDEFINED if stored is None else stored)


def text_of(value: Value | Node) -> str:
    """A value or an expression in new syntax, on one line."""
    return unparse(as_node(value))


def _to_wire(stored: Stored | Expr) -> Scalar:
    """
    Octets that are no UTF-8 and reals that are no number have no form of their own outside of expressions.
    """
    if isinstance(stored, bool | int | Expr):
        return stored
    if isinstance(stored, float) and math.isfinite(stored):
        return stored
    if isinstance(stored, str) and (stored.isascii() or _is_unicode(stored)):
        return stored
    text = unparse_exact(as_node(stored))
    if isinstance(stored, RelTimeLiteral) and not text.startswith("relTime"):
        return stored.seconds  # no text of a duration has so many digits
    return Expr(text)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
