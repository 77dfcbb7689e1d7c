"""
The part of a ClassAd constraint that the tables of the queue and of the history can decide by themselves.

Pure. The condition that comes out is implied by the constraint: it may let too much through, never too little, so
evaluating the constraint on the remaining rows finds every match. It uses columns that have an index.
"""

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from kettle.classad import ClassAd, Context, EvaluationFailed, Node, evaluate
from kettle.classad.ad import OWN
from kettle.classad.nodes import Binary, Call, Literal, Logical, Parentheses, Reference, Unary
from kettle.projections.jobs.searchable_attributes import COLUMNS, EXACT, IDENTITY, REAL, plain

_MAGIC: Final = frozenset({"my", "self", "parent", "root", "toplevel", "currenttime"})
"""Names that mean something without being anybody's attribute."""
_DEEPEST: Final = 50
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!=", "=?="})
"""What is never true of an attribute that is not there; `=!=` is."""
_EQUAL: Final = frozenset({"==", "=?="})
_ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "%"})

Known: TypeAlias = bool | int | float | str


class Searchable(msgspec.Struct, frozen=True, kw_only=True):
    """What a table can tell of ads; attributes are in lower case."""

    exact: Mapping[str, str]
    """Attributes that every ad has as integers, and the column or the term of SQL for each."""
    numbers: Mapping[str, str] = {}
    """Attributes in columns that are null where `search` has to say so."""
    texts: Mapping[str, str] = {}
    """Attributes that every ad has as text, and the column of each."""
    document: bool = True
    """Whether all others are in a document `search`."""


HISTORY: Final = Searchable(exact=IDENTITY, numbers=COLUMNS)
QUEUE: Final = Searchable(
    exact={
        **IDENTITY,
        "numshadowstarts": "attempts",
        "qdate": "floor(extract(epoch FROM submitted_at))::bigint",
        "enteredcurrentstatus": "extract(epoch FROM entered_at)::bigint",
    },
    texts={"owner": "owner"},
    document=False,
)


class _Leaf(msgspec.Struct, frozen=True):
    """A condition with a place `{}` for each value and its type."""

    text: str
    values: tuple[tuple[object, str], ...] = ()


class _All(msgspec.Struct, frozen=True):
    parts: "tuple[_Condition, ...]"


class _Any(msgspec.Struct, frozen=True):
    parts: "tuple[_Condition, ...]"


_Condition: TypeAlias = _Leaf | _All | _Any


def prefilter(
    constraint: Node, context: Context, *, first: int = 1, table: Searchable = HISTORY
) -> tuple[str, list[object]]:
    """
    A condition in SQL on a row of `jobs.history`, or another table, and its arguments, the first of which is `$first`.

    "true" if the tables cannot decide anything. `context` is that in which the constraint will be evaluated.
    """
    condition = _implied(constraint, context, table, 0)
    arguments: list[object] = []
    if condition is None:
        return "true", arguments
    return _written(condition, arguments, first), arguments


def _written(condition: _Condition, arguments: list[object], first: int) -> str:
    match condition:
        case _Leaf(text, values):
            places: list[str] = []
            for value, kind in values:
                places.append(f"${first + len(arguments)}::{kind}")
                arguments.append(value)
            return text.format(*places)
        case _All(parts):
            return f"({' AND '.join(_written(part, arguments, first) for part in parts)})"
        case _Any(parts):
            return f"({' OR '.join(_written(part, arguments, first) for part in parts)})"


def _implied(node: Node, context: Context, table: Searchable, depth: int) -> _Condition | None:
    """What holds wherever the expression is true; None: nothing is known."""
    if depth > _DEEPEST:
        return None
    match node:
        case Parentheses(inner=inner):
            return _implied(inner, context, table, depth + 1)
        case Logical(op="&&", left=left, right=right):
            parts = [_implied(side, context, table, depth + 1) for side in (left, right)]
            known = tuple(part for part in parts if part is not None)
            return _All(known) if len(known) == 2 else next(iter(known), None)
        case Logical(op="||", left=left, right=right):
            one, other = (_implied(side, context, table, depth + 1) for side in (left, right))
            return None if one is None or other is None else _Any((one, other))
        case Binary(op=op, left=left, right=right):
            return _comparison(op, left, right, context, table)
        case _:
            return None


def _comparison(op: str, left: Node, right: Node, context: Context, table: Searchable) -> _Condition | None:
    if op not in _COMPARISONS:
        return None
    for attribute, other, said in ((left, right, op), (right, left, _MIRRORED.get(op, op))):
        name = _attribute(attribute)
        if name is None or (value := _value(other, context)) is None:
            continue
        key, doubts = name
        known = _known(key, said, value, table)
        if known is None or (doubts and not table.document):
            return None
        return _Any((known, *map(_unsaid, doubts))) if doubts else known
    return None


def _attribute(node: Node) -> tuple[str, tuple[str, ...]] | None:
    """An attribute of the ad, and the attributes that would give it another meaning if the ad had them."""
    match node:
        case Parentheses(inner=inner):
            return _attribute(inner)
        case Reference(key=key, base=None, absolute=False) if key not in _MAGIC:
            return key, ()
        case Reference(key=key, base=Reference(key=side, base=None, absolute=False), absolute=False):
            return (key, (side,)) if side in OWN and key not in _MAGIC else None
        case _:
            return None


def _value(node: Node, context: Context) -> Known | None:
    """What an expression without attributes is, such as `time() - 86400`."""
    if not _is_constant(node, 0):
        return None
    try:
        value = evaluate(node, ClassAd(), None, context)
    except EvaluationFailed:
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _is_constant(node: Node, depth: int) -> bool:
    match node:
        case _ if depth > _DEEPEST:
            return False
        case Literal():
            return True
        case Parentheses(inner=inner):
            return _is_constant(inner, depth + 1)
        case Unary(op="-" | "+", operand=operand):
            return _is_constant(operand, depth + 1)
        case Binary(op=op, left=left, right=right):
            return op in _ARITHMETIC and _is_constant(left, depth + 1) and _is_constant(right, depth + 1)
        case Call(key="time", arguments=()):
            return True
        case _:
            return False


def _known(key: str, op: str, value: Known, table: Searchable) -> _Condition | None:
    if key in table.exact:
        return None if isinstance(value, str) else _bounds(table.exact[key], op, value)
    if key in table.texts:
        return _same_text(table.texts[key], value) if op in _EQUAL else None
    if not table.document:
        return None
    if key not in table.numbers:
        return _equal(key, value) if op in _EQUAL else None
    unsaid = _unsaid(key)
    if isinstance(value, str):
        return unsaid  # numbers do not compare with text
    bounds = _bounds(table.numbers[key], op, value)
    return None if bounds is None else _Any((bounds, unsaid))


def _same_text(column: str, value: Known) -> _Condition | None:
    """The database folds the case of more letters than the language: it may let too much through."""
    if not isinstance(value, str) or not value.isascii() or "\0" in value:
        return None
    return _Leaf(f"lower({column}) = {{}}", ((value.lower(), "text"),))


def _bounds(column: str, op: str, value: float) -> _Leaf | None:
    """
    A column of numbers is on one side of a value; with the value itself, which costs nothing and spares doubts.
    """
    if not math.isfinite(value) or abs(value) >= EXACT:
        return None  # integers and reals do not compare as the columns do
    if column in REAL:
        low = high = float(value)
        kind = "double precision"
    else:
        low, high, kind = math.floor(value), math.ceil(value), "bigint"
    match op:
        case "<" | "<=":
            return _Leaf(f"{column} <= {{}}", ((high, kind),))
        case ">" | ">=":
            return _Leaf(f"{column} >= {{}}", ((low, kind),))
        case "==" | "=?=":
            return _Leaf(f"{column} BETWEEN {{}} AND {{}}", ((low, kind), (high, kind)))
        case "!=" if low == high == value:
            return _Leaf(f"{column} <> {{}}", ((low, kind),))
        case _:
            return None


def _equal(key: str, value: Known) -> _Condition:
    said = plain(value)
    return _unsaid(key) if said is None else _Any((_has(key, said), _unsaid(key)))


def _unsaid(key: str) -> _Leaf:
    """Only the ad has the value of the attribute."""
    return _has(key, None)


def _has(key: str, value: Known | None) -> _Leaf:
    return _Leaf("search @> {}::jsonb", ((msgspec.json.encode({key: value}).decode(), "text"),))
