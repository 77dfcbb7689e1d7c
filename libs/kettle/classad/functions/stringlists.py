"""Lists written as one string, from the days before lists."""

from __future__ import annotations

import re
from functools import lru_cache, reduce
from operator import add
from typing import TYPE_CHECKING, Final

from kettle.classad.conversions import leading_number, truncated
from kettle.classad.functions.patterns import limited
from kettle.classad.functions.pcre import compile_pattern
from kettle.classad.functions.registry import Function, strict
from kettle.classad.values import ERROR, UNDEFINED, Value, from_octets, octets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kettle.classad.scope import Scope

_REMEMBERED: Final = 4096
"""Characters of a list whose items are kept for the next evaluation."""
_REMEMBERED_DELIMITERS: Final = 64
_BLANKS: Final = " \t\n\v\f\r"
_FEW: Final = ", "
_MANY: Final = ", \t\r\n"
_WHOLE: Final = re.compile(r"[-+0-9]*\Z")

# Where the minimum and the maximum start: the largest and the smallest positive 32-bit real.
# So the maximum of only negative numbers is 0.
_LARGEST: Final = 3.4028234663852886e38
_SMALLEST: Final = 1.1754943508222875e-38


@lru_cache(maxsize=1024)
def items(text: str, delimiters: str) -> tuple[str, ...]:
    """The items of a string list, without blanks around them and without the empty ones."""
    found: list[str] = []
    position = 0
    for delimiter in _separator_of(delimiters).finditer(text):
        found.append(text[position : delimiter.start()])
        position = delimiter.end()
    found.append(text[position:])
    return tuple(item for piece in found if (item := piece.strip(_BLANKS)))


def _items(text: str, delimiters: str) -> tuple[str, ...]:
    """Long ones are not remembered: anybody may send them."""
    short = len(text) + len(delimiters) <= _REMEMBERED
    return items(text, delimiters) if short else items.__wrapped__(text, delimiters)


def _separator_of(delimiters: str) -> re.Pattern[str]:
    short = len(delimiters) <= _REMEMBERED_DELIMITERS
    return _separator(delimiters) if short else _separator("".join(sorted(set(delimiters))))


@lru_cache(maxsize=256)
def _separator(delimiters: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(delimiters)}]" if delimiters else r"(?!)")


@lru_cache(maxsize=1024)
def _set_of(text: str, delimiters: str, *, folded: bool) -> frozenset[str]:
    """The items to look among; most often the same constant for a thousand ads."""
    found = _items(text, delimiters)
    return frozenset(map(_folded, found) if folded else found)


def _folded(text: str) -> str:
    """Without case, as C sees it: of ASCII letters only."""
    return text.lower() if text.isascii() else from_octets(octets(text).lower())


def _texts(arguments: Sequence[Value]) -> list[str] | None:
    texts = [value for value in arguments if isinstance(value, str)]
    return texts if len(texts) == len(arguments) else None


def _size(arguments: Sequence[Value], _: Scope) -> Value:
    texts = _texts(arguments)
    return ERROR if texts is None else len(_items(texts[0], texts[1] if len(texts) > 1 else _FEW))


def _numbers(arguments: Sequence[Value]) -> tuple[list[float], bool] | None:
    """The numbers of a list, and whether all are written as integers; None if one is no number."""
    texts = _texts(arguments)
    if texts is None:
        return None
    entries = _items(texts[0], texts[1] if len(texts) > 1 else _FEW)
    numbers = [number for entry in entries if (number := leading_number(entry)) is not None]
    if len(numbers) != len(entries):
        return None
    return numbers, all(_WHOLE.match(entry) for entry in entries)


def _sum(numbers: Sequence[float]) -> float:
    """One after the other; Python's own `sum` corrects itself, C does not."""
    return reduce(add, numbers, 0.0)


def _summarizing(summary: Callable[[list[float]], float], empty: Value) -> Function:
    def body(arguments: Sequence[Value], _: Scope) -> Value:
        read = _numbers(arguments)
        if read is None:
            return ERROR
        numbers, whole = read
        if not numbers:
            return empty
        return truncated(summary(numbers)) if whole else summary(numbers)

    return strict(body, 1, 2)


def _compared_texts(arguments: Sequence[Value]) -> tuple[str, str, str] | Value:
    """Two texts and the delimiters; undefined counts as the empty string, unless both are."""
    if any(not isinstance(value, str) and value is not UNDEFINED for value in arguments):
        return ERROR
    if arguments[0] is UNDEFINED and arguments[1] is UNDEFINED:
        return UNDEFINED
    left, right = (value if isinstance(value, str) else "" for value in arguments[:2])
    delimiters = arguments[2] if len(arguments) > 2 else UNDEFINED
    return left, right, delimiters if isinstance(delimiters, str) else _MANY


def _matching(*, subset: bool, folded: bool) -> Function:
    """A list that is not empty but has no items is no subset of anything."""

    def body(arguments: Sequence[Value], _: Scope) -> Value:
        texts = _compared_texts(arguments)
        if not isinstance(texts, tuple):
            return texts
        left, right, delimiters = texts
        set_of = _set_of if len(left) + len(right) + len(delimiters) <= _REMEMBERED else _set_of.__wrapped__
        known = set_of(right, delimiters, folded=folded)
        if not subset:
            return (_folded(left) if folded else left) in known
        wanted = set_of(left, delimiters, folded=folded)
        return left == "" or (bool(wanted) and wanted <= known)

    return strict(body, 2, 3)


def _regexp_member(arguments: Sequence[Value], scope: Scope) -> Value:
    texts = _texts(arguments)
    if texts is None:
        return ERROR
    pattern = compile_pattern(texts[0], texts[3].lower() if len(texts) > 3 else "")
    if pattern is None:
        return ERROR
    entries = _items(texts[1], texts[2] if len(texts) > 2 else _FEW)
    spend = scope.state.spend
    return any(pattern.occurs(octets(entry), spend=spend) for entry in entries) if entries else UNDEFINED


def _intersect(arguments: Sequence[Value], _: Scope) -> Value:
    for exceptional in (ERROR, UNDEFINED):
        if any(value is exceptional for value in arguments):
            return exceptional
    texts = _texts(arguments)
    if texts is None:
        return ERROR
    delimiters = (texts[2] if len(texts) > 2 else "") or _FEW
    separator = _separator_of(delimiters)
    return not set(filter(None, separator.split(texts[0]))).isdisjoint(separator.split(texts[1]))


FAMILY: Final[Mapping[str, Function]] = {
    "stringlistsize": strict(_size, 1, 2),
    "stringlistsum": _summarizing(_sum, 0.0),
    "stringlistavg": _summarizing(lambda numbers: _sum(numbers) / len(numbers), 0.0),
    "stringlistmin": _summarizing(
        lambda numbers: reduce(min, numbers, _LARGEST),
        UNDEFINED,
    ),
    "stringlistmax": _summarizing(
        lambda numbers: reduce(max, numbers, _SMALLEST),
        UNDEFINED,
    ),
    "stringlistmember": _matching(subset=False, folded=False),
    "stringlistimember": _matching(subset=False, folded=True),
    "stringlistsubsetmatch": _matching(subset=True, folded=False),
    "stringlistisubsetmatch": _matching(subset=True, folded=True),
    "stringlist_regexpmember": strict(limited(_regexp_member), 2, 4),
    "stringlistsintersect": strict(_intersect, 2, 3),
}
