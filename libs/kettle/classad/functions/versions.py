"""Version numbers, in their natural order: 1.9 before 1.10."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kettle.classad.functions.conversion import text_of
from kettle.classad.functions.registry import Function, strict
from kettle.classad.functions.texts import comparison
from kettle.classad.values import ERROR, UNDEFINED, Exceptional, Value, octets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kettle.classad.scope import Scope

_REMEMBERED: Final = 256
"""Octets of two versions whose order is kept for the next evaluation."""
_DIGITS: Final = re.compile(rb"[0-9]*")


def natural_order(left: bytes, right: bytes) -> int:
    """Compare as `_natural_order`; long texts are not remembered."""
    return (_natural_order if len(left) + len(right) <= _REMEMBERED else _natural_order.__wrapped__)(
        left, right
    )


@lru_cache(maxsize=4096)
def _natural_order(left: bytes, right: bytes) -> int:
    """
    Negative, zero or positive, as C's `strverscmp` orders.

    The first difference decides, unless it touches a number in both: then the longer number is the greater,
    and among numbers with leading zeros the one with more of them comes first, like a fraction.
    """
    first = _common(left, right)
    difference = _at(left, first) - _at(right, first)
    if difference == 0:
        return 0
    start = first - len(_digits_before(left[:first]))
    if start == first and not (left[first : first + 1].isdigit() and right[first : first + 1].isdigit()):
        return difference
    mine, theirs = _number(left, start), _number(right, start)
    zeros, other_zeros = _leading_zeros(mine), _leading_zeros(theirs)
    if zeros != other_zeros:
        return other_zeros - zeros
    if zeros or len(mine) == len(theirs):
        return difference
    return len(mine) - len(theirs)


def _common(left: bytes, right: bytes) -> int:
    for position, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return position
    return min(len(left), len(right))


def _at(text: bytes, position: int) -> int:
    """An octet as C's `char` has it: signed."""
    octet = text[position] if position < len(text) else 0
    return octet - 256 if octet > 127 else octet


def _digits_before(text: bytes) -> bytes:
    return text[len(text.rstrip(b"0123456789")) :]


def _number(text: bytes, start: int) -> bytes:
    match = _DIGITS.match(text, start)
    return match[0] if match else b""


def _leading_zeros(number: bytes) -> int:
    """A zero that ends the number is a digit of its own."""
    zeros = len(number) - len(number.lstrip(b"0"))
    return zeros - 1 if zeros and zeros == len(number) else zeros


def _in_range(arguments: Sequence[Value], scope: Scope) -> Value:
    if arguments[1] is UNDEFINED or arguments[2] is UNDEFINED:
        return UNDEFINED
    version, low, high = (text_of(value, scope.state) for value in arguments)
    if isinstance(version, Exceptional) or isinstance(low, Exceptional) or isinstance(high, Exceptional):
        return ERROR
    return (
        natural_order(octets(low), octets(version)) <= 0 and natural_order(octets(version), octets(high)) <= 0
    )


FAMILY: Final[Mapping[str, Function]] = {
    "versioncmp": comparison(natural_order),
    "versionlt": comparison(lambda left, right: natural_order(left, right) < 0),
    "versionle": comparison(lambda left, right: natural_order(left, right) <= 0),
    "versiongt": comparison(lambda left, right: natural_order(left, right) > 0),
    "versionge": comparison(lambda left, right: natural_order(left, right) >= 0),
    "versioneq": comparison(lambda left, right: natural_order(left, right) == 0),
    "version_in_range": strict(_in_range, 3),
}
