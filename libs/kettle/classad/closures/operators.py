"""
Closures for what combines values: the frequent types at once, all others as `kettle.classad.operators` has it.
"""

from __future__ import annotations

from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import TYPE_CHECKING, Any, Final

from kettle.classad.evaluation import CHARS_PER_STEP
from kettle.classad.operators import BINARY, LONG_TEXT, truth
from kettle.classad.operators import unary as unary_of_value
from kettle.classad.values import (
    ERROR,
    INTEGER_MAX,
    INTEGER_MIN,
    UNDEFINED,
    Exceptional,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kettle.classad.cost import Code
    from kettle.classad.scope import Scope

COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne,
}  # fmt: skip
_ARITHMETIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"+": add, "-": sub, "*": mul}
MIRRORED: Final[Mapping[str, str]] = {
    "<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!=", "=?=": "=?=", "=!=": "=!=",
}  # fmt: skip
_INFINITY: Final = float("inf")


class Constant:
    """A value that is known beforehand, as a closure; operators look into it."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, scope: Scope) -> Value:
        """Evaluate, like any closure."""
        return self.value


def unary(op: str, operand: Code) -> Code:
    """A prefix operator."""
    if isinstance(operand, Constant):
        return Constant(unary_of_value(op, operand.value))
    if op == "!":

        def negation(scope: Scope) -> Value:
            value = operand(scope)
            return not value if type(value) is bool else unary_of_value(op, value)

        return negation
    return lambda scope: unary_of_value(op, operand(scope))


def binary(op: str, left: Code, right: Code) -> Code:
    """An operator that evaluates both sides."""
    if isinstance(left, Constant):
        if isinstance(right, Constant):
            return Constant(BINARY[op](left.value, right.value))
        if op in MIRRORED:
            left, right, op = right, left, MIRRORED[op]
    if op in COMPARE:
        return (
            _comparison_with(op, left, right.value)
            if isinstance(right, Constant)
            else _comparison(op, left, right)
        )
    if op in _ARITHMETIC:
        return _arithmetic(op, left, right)
    if isinstance(right, Constant) and op in {"=?=", "=!="} and isinstance(right.value, bool | Exceptional):
        return _identity_with(right.value, left, same=op == "=?=")
    general = BINARY[op]
    return lambda scope: general(left(scope), right(scope))


def _comparison(op: str, left: Code, right: Code) -> Code:
    compare, general = COMPARE[op], BINARY[op]

    def code(scope: Scope) -> Value:
        first, second = left(scope), right(scope)
        if type(first) is int and type(second) is int:
            return compare(first, second)
        if type(first) is str and len(first) >= CHARS_PER_STEP and type(second) is str:
            scope.state.charge(min(first, second, key=len))
        return general(first, second)

    return code


def _comparison_with(op: str, operand: Code, constant: Value) -> Code:
    """With a literal: a string is put into lower case once."""
    compare, general = COMPARE[op], BINARY[op]
    if isinstance(constant, str) and constant.isascii():
        lowered = constant.lower()
        longest = len(constant) + LONG_TEXT

        def with_text(scope: Scope) -> Value:
            value = operand(scope)
            if type(value) is str and value.isascii() and len(value) <= longest:
                return compare(value.lower(), lowered)
            return general(value, constant)

        return with_text
    if type(constant) is not int:
        return _comparison(op, operand, Constant(constant))

    def with_integer(scope: Scope) -> Value:
        value = operand(scope)
        return compare(value, constant) if type(value) is int else general(value, constant)

    return with_integer


def _arithmetic(op: str, left: Code, right: Code) -> Code:
    calculate, general = _ARITHMETIC[op], BINARY[op]

    def code(scope: Scope) -> Value:
        first, second = left(scope), right(scope)
        if type(first) is int and type(second) is int:
            whole = calculate(first, second)
            return whole if INTEGER_MIN <= whole <= INTEGER_MAX else general(first, second)
        if type(first) is float and type(second) is float:
            real = calculate(first, second)
            return ERROR if real == _INFINITY else real
        return general(first, second)

    return code


def _identity_with(constant: bool | Exceptional, operand: Code, *, same: bool) -> Code:  # noqa: FBT001 - a value
    """``=?= undefined`` and its like: there is one object for each of these values."""
    if same:
        return lambda scope: operand(scope) is constant
    return lambda scope: operand(scope) is not constant


def chain(clauses: tuple[Code, ...], *, decisive: bool) -> Code:
    """
    ``&&`` and ``||``: the first clause that decides or is an error is the value, else undefined if one is.

    After a first clause that is an error only for being no boolean, the second is evaluated nevertheless.
    """
    indifferent = not decisive
    first, second = clauses[:2]

    def code(scope: Scope) -> Value:
        result: Value = indifferent
        for clause in clauses:
            value = clause(scope)
            if value is indifferent:
                continue
            if type(value) is not bool:
                known = truth(value)
                if known is ERROR:
                    if clause is first and value is not ERROR:
                        second(scope)
                    return ERROR
                value = known
            if value is decisive:
                return value
            if value is UNDEFINED:
                result = value
        return result

    return code


def conditional(condition: Code, then: Code, otherwise: Code, *, is_choice: bool) -> Code:
    """``condition ? then : otherwise``; a choice, ``ifThenElse``, never evaluates both."""

    def code(scope: Scope) -> Value:
        chosen = condition(scope)
        if type(chosen) is not bool:
            known = truth(chosen)
            if isinstance(known, Exceptional):
                if known is not chosen and not is_choice:
                    then(scope)
                    otherwise(scope)
                return known
            chosen = known
        return then(scope) if chosen else otherwise(scope)

    return code


def elvis(preferred: Code, fallback: Code) -> Code:
    """``preferred ?: fallback``."""

    def code(scope: Scope) -> Value:
        value = preferred(scope)
        return fallback(scope) if value is UNDEFINED else value

    return code
