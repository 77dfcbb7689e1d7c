"""Strings: put together, cut, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.conversions import to_integer
from kettle.classad.functions.conversion import text_of
from kettle.classad.functions.registry import Function, lazy, strict
from kettle.classad.nodes import Node
from kettle.classad.times import units
from kettle.classad.values import (
    ERROR,
    UNDEFINED,
    Exceptional,
    List,
    Value,
    from_octets,
    joined,
    low_half,
    octets,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kettle.classad.scope import Scope


def _strcat(arguments: Sequence[Node], scope: Scope) -> Value:
    """The first undefined or error decides; what stands behind it is not looked at."""
    parts: list[str] = []
    for argument in arguments:
        part = text_of(scope.evaluate(argument), scope.state)
        if isinstance(part, Exceptional):
            return part
        scope.state.charge(part)
        parts.append(part)
    return joined(parts)


def _join(arguments: Sequence[Value], scope: Scope) -> Value:
    """
    A last argument that is a list stands for its members if there is at most a separator before it.

    The separator is only put after something: empty items at the start vanish.
    """
    separator: Value = ""
    items: Iterable[Value]
    if arguments and len(arguments) <= 2 and isinstance(arguments[-1], List):
        items = scope.members(arguments[-1])
        separator = arguments[0] if len(arguments) == 2 else ""
    else:
        items = arguments[1:]
        separator = arguments[0] if arguments else ""
    glue = text_of(separator, scope.state)
    if glue is ERROR:
        return ERROR
    return _joined(glue, items, scope)


def _joined(glue: str | Exceptional, items: Iterable[Value], scope: Scope) -> Value:
    """Undefined if something is and nothing but the separator has a value."""
    parts: list[str] = []
    seen, undefined = False, isinstance(glue, Exceptional)
    glue = "" if isinstance(glue, Exceptional) else glue
    for item in items:
        part = text_of(item, scope.state)
        if part is ERROR:
            return ERROR
        if isinstance(part, Exceptional):
            undefined = True
            continue
        seen = True
        if parts or part:
            scope.state.charge(glue)
            parts += [glue, part] if parts else [part]
            scope.state.charge(part)
    return UNDEFINED if undefined and not seen else joined(parts)


def _changing_case(change: Callable[[bytes], bytes], plainly: Callable[[str], str]) -> Function:
    """Only ASCII letters have another case; text of nothing else need not become octets."""

    def body(arguments: Sequence[Value], scope: Scope) -> Value:
        text = text_of(arguments[0], scope.state)
        if isinstance(text, Exceptional):
            return text
        return plainly(text) if text.isascii() else from_octets(change(octets(text)))

    return strict(body, 1)


def _substr(arguments: Sequence[Value], _: Scope) -> Value:
    if any(value is UNDEFINED for value in arguments):
        return UNDEFINED
    text, offset, *rest = arguments
    length = rest[0] if rest else None
    if (
        not isinstance(text, str)
        or type(offset) is not int
        or (length is not None and type(length) is not int)
    ):
        return ERROR
    data = octets(text)
    offset = low_half(offset)
    start = max(len(data) + offset, 0) if offset < 0 else offset
    end = len(data)
    if isinstance(length, int):
        length = low_half(length)
        end = end + length if length < 0 else start + length
    return from_octets(data[start : max(end, start)])


def comparison(compare: Callable[[bytes, bytes], bool | int]) -> Function:
    """A function of two texts, by their octets."""

    def body(arguments: Sequence[Value], scope: Scope) -> Value:
        if any(value is UNDEFINED for value in arguments):
            return UNDEFINED
        left, right = (text_of(value, scope.state) for value in arguments)
        if isinstance(left, Exceptional) or isinstance(right, Exceptional):
            return ERROR
        return compare(octets(left), octets(right))

    return strict(body, 2)


def _order(left: bytes, right: bytes) -> int:
    return (left > right) - (left < right)


def _interval(arguments: Sequence[Value], _: Scope) -> Value:
    """Only the leading unit carries the sign; the number is cut to 32 bits first."""
    number = to_integer(arguments[0])
    if isinstance(number, Exceptional):
        return ERROR
    days, hours, minutes, seconds = units(low_half(number))
    if days:
        return f"{days}+{abs(hours):02d}:{abs(minutes):02d}:{abs(seconds):02d}"
    if hours:
        return f"{hours}:{abs(minutes):02d}:{abs(seconds):02d}"
    return f"{minutes}:{abs(seconds):02d}" if minutes else str(seconds)


FAMILY: Final[Mapping[str, Function]] = {
    "strcat": lazy(_strcat, 0, None),
    "join": strict(_join, 0, None),
    "toupper": _changing_case(bytes.upper, str.upper),
    "tolower": _changing_case(bytes.lower, str.lower),
    "substr": strict(_substr, 2, 3),
    "strcmp": comparison(_order),
    "stricmp": comparison(lambda left, right: _order(left.lower(), right.lower())),
    "interval": strict(_interval, 1),
}
