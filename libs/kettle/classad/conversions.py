"""From one type to another, as ``int() real() string() bool()`` do it."""

import math
import re
from typing import Final

from kettle.classad.ad import ClassAd, as_node
from kettle.classad.printing import real_text, unparse
from kettle.classad.times import absolute_text, relative_text
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
)

_NUMBER: Final = re.compile(
    r"[ \t\n\v\f\r]*([+-]?)(?:"
    r"(0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?)"
    r"|((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(inf(?:inity)?|nan))",
    re.IGNORECASE,
)


def leading_number(text: str) -> float | None:
    """The number that `text` starts with, read as C's `strtod` reads it; None if it starts with none."""
    match = _NUMBER.match(text)
    if match is None:
        return None
    sign, hexadecimal, decimal, special = match.groups()
    number = _hexadecimal(hexadecimal) if hexadecimal else float(decimal or special)
    return -number if sign == "-" else number


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return math.inf


def truncated(number: float) -> int:
    """A real cut to an integer; what does not fit is the smallest integer, as on x86-64."""
    if not math.isfinite(number):
        return INTEGER_MIN
    whole = int(number)
    return whole if INTEGER_MIN <= whole <= INTEGER_MAX else INTEGER_MIN


def to_real(value: Value) -> float | Exceptional:
    """``real()``."""
    match value:
        case bool() | int() | float():
            return float(value)
        case str():
            number = leading_number(value)
            return ERROR if number is None else number
        case AbsTime():
            return float(value.seconds)
        case RelTime():
            return float(narrowed(value.seconds))
        case Exceptional():
            return value
        case _:
            return ERROR


def to_integer(value: Value) -> int | Exceptional:
    """``int()``."""
    if isinstance(value, int):
        return int(value)
    number = to_real(value)
    return number if isinstance(number, Exceptional) else truncated(number)


def to_string(value: Value) -> str | Exceptional:
    """``string()``."""
    match value:
        case str() | Exceptional():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return real_text(value)
        case AbsTime():
            return absolute_text(value)
        case RelTime():
            return relative_text(value.seconds)
        case _:
            return _collection_text(value)


def _collection_text(value: List | ClassAd) -> str:
    return unparse(as_node(value))


def to_boolean(value: Value) -> bool | Exceptional:
    """``bool()``: of strings only "true" and "false" mean anything, the rest is undefined."""
    match value:
        case bool() | int() | float():
            return bool(value)
        case str():
            return {"true": True, "false": False}.get(value.lower(), UNDEFINED)
        case RelTime():
            return narrowed(value.seconds) != 0
        case Exceptional():
            return value
        case _:
            return ERROR
