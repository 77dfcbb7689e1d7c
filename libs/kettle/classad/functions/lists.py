"""Functions that walk a list; its members are evaluated in the scope of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.functions.registry import Function, lazy, strict
from kettle.classad.nodes import Node
from kettle.classad.operators import BINARY
from kettle.classad.values import ERROR, UNDEFINED, List, Value, octets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kettle.classad.scope import Scope

_COMPARISONS: Final = {
    **{op: BINARY[op] for op in ("<", "<=", "==", "!=", ">=", ">")},
    "is": BINARY["=?="],
    "isnt": BINARY["=!="],
}


def _size(arguments: Sequence[Value], _: Scope) -> Value:
    match arguments[0]:
        case str(text):
            return len(text) if text.isascii() else len(octets(text))
        case List() | ClassAd() as collection:
            return len(collection)
        case value:
            return UNDEFINED if value is UNDEFINED else ERROR


def _membership(*, identity: bool) -> Function:
    same = BINARY["=?=" if identity else "=="]

    def body(arguments: Sequence[Value], scope: Scope) -> Value:
        wanted, values = arguments
        if values is UNDEFINED or (wanted is UNDEFINED and not identity):
            return UNDEFINED
        if (
            not isinstance(values, List)
            or isinstance(wanted, List | ClassAd)
            or (wanted is ERROR and not identity)
        ):
            return ERROR
        return any(same(member, wanted) is True for member in scope.members(values))

    return strict(body, 2)


def _defined_numbers(values: List, scope: Scope) -> Iterator[int | float | None]:
    """The numbers of a list, leaving out what is undefined; None for what is no number."""
    for member in scope.members(values):
        if member is not UNDEFINED:
            yield member if isinstance(member, int | float) else None


def _total(values: List, scope: Scope) -> tuple[Value, int]:
    """The sum, and the number of summands."""
    total: Value = 0
    count = 0
    for number in _defined_numbers(values, scope):
        if number is None:
            return ERROR, count
        total = BINARY["+"](total, number) if count else number
        count += 1
    return total, count


def _not_a_list(value: Value) -> Value:
    return UNDEFINED if value is UNDEFINED else ERROR


def _sum(arguments: Sequence[Value], scope: Scope) -> Value:
    values = arguments[0]
    return _total(values, scope)[0] if isinstance(values, List) else _not_a_list(values)


def _avg(arguments: Sequence[Value], scope: Scope) -> Value:
    values = arguments[0]
    if not isinstance(values, List):
        return _not_a_list(values)
    total, count = _total(values, scope)
    return BINARY["/"](total, float(count)) if count else total


def _extreme(op: str) -> Function:
    better = BINARY[op]

    def body(arguments: Sequence[Value], scope: Scope) -> Value:
        values = arguments[0]
        if not isinstance(values, List):
            return _not_a_list(values)
        numbers: list[int | float] = []
        for number in _defined_numbers(values, scope):
            if number is None:
                return ERROR
            numbers.append(number)
        if not numbers:
            return UNDEFINED
        best = numbers[0]
        for number in numbers[1:]:
            best = number if better(number, best) is True else best
        return best if len(numbers) == 1 else _promoted(best, numbers)

    return strict(body, 1)


def _promoted(best: float, numbers: Sequence[int | float]) -> int | float:
    """Among several numbers one real makes the result real, and a boolean counts as an integer."""
    return float(best) if any(isinstance(number, float) for number in numbers) else int(best)


def _comparing(*, every: bool) -> Function:
    """The operator and the list may decide before the next argument is looked at."""

    def body(arguments: Sequence[Node], scope: Scope) -> Value:
        op = scope.evaluate(arguments[0])
        if op is UNDEFINED:
            return UNDEFINED
        compare = _COMPARISONS.get(op) if isinstance(op, str) else None
        if compare is None:
            return ERROR
        values = scope.evaluate(arguments[1])
        if not isinstance(values, List):
            return _not_a_list(values)
        wanted = scope.evaluate(arguments[2])
        for member in scope.members(values):
            result = compare(member, wanted)
            if result is ERROR:
                return ERROR
            if result is UNDEFINED:
                return False
            if result is not every:
                return not every
        return every

    return lazy(body, 3)


FAMILY: Final[Mapping[str, Function]] = {
    "size": strict(_size, 1),
    "member": _membership(identity=False),
    "identicalmember": _membership(identity=True),
    "sum": strict(_sum, 1),
    "avg": strict(_avg, 1),
    "min": _extreme("<"),
    "max": _extreme(">"),
    "anycompare": _comparing(every=False),
    "allcompare": _comparing(every=True),
}
