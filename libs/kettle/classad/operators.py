"""
The operators over values: arithmetic, bits, comparison, identity.

All of them are strict: error wins over undefined, undefined over any complaint about types.
Only identity (``=?=``, ``=!=``) looks at undefined and error as at any other value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kettle.classad.values import (
    ERROR,
    INTEGER_MAX,
    INTEGER_MIN,
    UNDEFINED,
    AbsTime,
    Exceptional,
    List,
    RelTime,
    Value,
    narrowed,
    octets,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

BinaryOperator: TypeAlias = Callable[[Value, Value], Value]


def _integer_division(left: int, right: int) -> Value:
    if right == 0:
        return ERROR
    if right == -1:
        return INTEGER_MAX if left == INTEGER_MIN else -left
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _integer_remainder(left: int, right: int) -> Value:
    if right == 0:
        return ERROR
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _real_division(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


_INTEGER: Final[Mapping[str, Callable[[int, int], Value]]] = {
    "+": lambda a, b: wrapped(a + b),
    "-": lambda a, b: wrapped(a - b),
    "*": lambda a, b: wrapped(a * b),
    "/": _integer_division,
    "%": _integer_remainder,
}
_REAL: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _real_division,
}


def arithmetic(op: str, left: Value, right: Value) -> Value:
    """``+ - * / %`` of operands that are neither undefined nor error."""
    if isinstance(left, int) and isinstance(right, int):
        return _INTEGER[op](int(left), int(right))
    if isinstance(left, int | float) and isinstance(right, int | float):
        if op == "%":
            return ERROR
        result = _REAL[op](float(left), float(right))
        return ERROR if result == math.inf else result
    return _time_arithmetic(op, left, right)


def _time_arithmetic(op: str, left: Value, right: Value) -> Value:
    match op, left, right:
        case "-", AbsTime(), AbsTime():
            return RelTime(float(left.seconds - right.seconds))
        case "+" | "-", AbsTime(), RelTime():
            shift = narrowed(right.seconds)
            return AbsTime(left.seconds + (shift if op == "+" else -shift), left.offset)
        case "+", RelTime(), AbsTime():
            return AbsTime(right.seconds + narrowed(left.seconds), right.offset)
        case "+" | "-", RelTime(), RelTime():
            return RelTime(_REAL[op](left.seconds, right.seconds))
        case "*" | "/", RelTime(), int() | float() if not isinstance(right, bool):
            return RelTime(_REAL[op](left.seconds, float(right)))
        case "*", int() | float(), RelTime() if not isinstance(left, bool):
            return RelTime(float(left) * right.seconds)
        case _:
            return ERROR


def _shift_right(number: int, count: int) -> int:
    if number < 0:
        return number >> min(max(count, 0), 64)
    return number >> count % 64


def _shift_right_unsigned(number: int, count: int) -> int:
    if number >= 0:
        return number >> count % 64
    return (number >> 1 & INTEGER_MAX) >> (count - 1) % 64


_BITS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: wrapped(a << b % 64),
    ">>": _shift_right,
    ">>>": _shift_right_unsigned,
}


def bits(op: str, left: Value, right: Value) -> Value:
    """``& | ^ << >> >>>``: integers only, booleans are none."""
    if type(left) is int and type(right) is int:
        return _BITS[op](left, right)
    return ERROR


_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne,
}  # fmt: skip


LONG_TEXT: Final = 4096
"""
Of two texts that are longer than this together, the longer one is compared only as far as it can matter.

A character is at most four octets.
"""


def comparison(op: str, left: Value, right: Value) -> Value:
    """``< <= > >= == !=``: numbers by value, strings without regard to (ASCII) case, times by the second."""
    if isinstance(left, str) and isinstance(right, str):
        if len(left) + len(right) > LONG_TEXT:
            left, right = left[: 4 * len(right) + 4], right[: 4 * len(left) + 4]
        if left.isascii() and right.isascii():
            return _COMPARE[op](left.lower(), right.lower())
        return _COMPARE[op](octets(left).lower(), octets(right).lower())
    if isinstance(left, int) and isinstance(right, int):
        return _COMPARE[op](left, right)
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _COMPARE[op](float(left), float(right))
    if (isinstance(left, AbsTime) and isinstance(right, AbsTime)) or (
        isinstance(left, RelTime) and isinstance(right, RelTime)
    ):
        return _COMPARE[op](left.seconds, right.seconds)
    return ERROR


def identical(left: Value, right: Value) -> bool | Exceptional:
    """
    ``=?=``: the same type and the same value; two lists or two ads cannot be compared (error).

    A list that was written and one that a function made are of two types.
    """
    if type(left) is not type(right):
        return False
    if isinstance(left, List) and isinstance(right, List):
        return ERROR if (left.scope is None) is (right.scope is None) else False
    if not isinstance(left, int | float | str | Exceptional | AbsTime | RelTime):
        return ERROR
    return left == right


def distinct(left: Value, right: Value) -> bool | Exceptional:
    """``=!=``."""
    same = identical(left, right)
    return same if isinstance(same, Exceptional) else not same


def _strict(op: str, body: Callable[[str, Value, Value], Value]) -> BinaryOperator:
    def apply(left: Value, right: Value) -> Value:
        if isinstance(left, Exceptional) or isinstance(right, Exceptional):
            return ERROR if left is ERROR or right is ERROR else UNDEFINED
        return body(op, left, right)

    return apply


BINARY: Final[Mapping[str, BinaryOperator]] = {
    **{op: _strict(op, arithmetic) for op in _INTEGER},
    **{op: _strict(op, bits) for op in _BITS},
    **{op: _strict(op, comparison) for op in _COMPARE},
    "=?=": identical,
    "=!=": distinct,
}


def unary(op: str, value: Value) -> Value:
    """``- + ! ~`` before a value."""
    if isinstance(value, Exceptional):
        return value
    if op == "!":
        return not value if isinstance(value, int | float) else ERROR
    if op == "~":
        return ~value if type(value) is int else ERROR
    if isinstance(value, bool):
        return ERROR
    if isinstance(value, int):
        return wrapped(-value) if op == "-" else value
    if isinstance(value, float):
        return -value if op == "-" else value
    if isinstance(value, RelTime):
        return RelTime(-value.seconds) if op == "-" else value
    return ERROR


def truth(value: Value) -> bool | Exceptional:
    """
    What `value` means to a logical operator: numbers count, anything else that is no boolean is an error.
    """
    if isinstance(value, int | float):
        return bool(value)
    return UNDEFINED if value is UNDEFINED else ERROR
