"""Values of ClassAds as Python's and back."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, ClassVar, Final, Self, TypeAlias

from kettle import classad
from kettle.bindings.errors import ClassAdException
from kettle.classad.ad import as_node
from kettle.classad.nodes import AdLiteral, ListLiteral, Literal, Node, RelTimeLiteral
from kettle.classad.values import (
    INTEGER_MAX,
    INTEGER_MIN,
    AbsTime,
    Exceptional,
    List,
    RelTime,
    Scalar,
    Stored,
)


class Value(IntEnum):
    """The two values that are none."""

    Error = 1
    Undefined = 2


class AnyExpression:
    """An expression, as values know it: `ExprTree` of either version."""

    __slots__ = ()

    @classmethod
    def around(cls, node: Node, scope: AnyAd | None = None) -> Self:
        """The expression that a syntax tree is; `scope` is the ad in which it stands."""
        raise NotImplementedError

    @property
    def node(self) -> Node:
        """The syntax tree."""
        raise NotImplementedError


class AnyAd:
    """An ad, as values and expressions know it: `ClassAd` of either version."""

    __slots__ = ()
    expression: ClassVar[type[AnyExpression]]
    """What its expressions are."""

    @classmethod
    def around(cls, inner: classad.ClassAd) -> Self:
        """The ad with HTCondor's methods."""
        raise NotImplementedError

    @property
    def inner(self) -> classad.ClassAd:
        """The ad as Kettle's libraries know it."""
        raise NotImplementedError


Python: TypeAlias = bool | int | float | str | datetime | Value | list[Any] | AnyAd | AnyExpression
"""What is read out of an ad."""

_VALUES: Final = {classad.UNDEFINED: Value.Undefined, classad.ERROR: Value.Error}
_EXCEPTIONAL: Final = {value: key for key, value in _VALUES.items()}


CONTEXT: Final = classad.Context(
    now=lambda: int(time.time()),
    random=random.random,
    utc_offset=lambda instant: time.localtime(instant).tm_gmtoff,
)
"""The clock and the zone of this machine."""


def to_python(stored: Stored, kind: type[AnyAd], scope: AnyAd | None = None) -> Any:
    """
    A value, or an expression that is not evaluated, as Python's; ads become ads of `kind`.

    `scope` is the ad in which an expression stands, for the kinds whose expressions remember it.
    """
    match stored:
        case Exceptional():
            return _VALUES[stored]
        case AbsTime(seconds=seconds):
            return datetime.fromtimestamp(seconds, UTC)
        case RelTime(seconds=seconds):
            return seconds
        case RelTimeLiteral():
            return stored.seconds
        case Literal(value=value):
            return to_python(value, kind, scope)
        case List(items=items) | ListLiteral(items=items):
            return [to_python(item, kind, scope) for item in items]
        case classad.ClassAd():
            return kind.around(stored)
        case AdLiteral():
            return kind.around(classad.ClassAd.from_literal(stored))
        case Node():
            return kind.expression.around(stored, scope)
        case _:
            return stored


def to_node(value: Any) -> Node:
    """
    What a Python value is as an expression.

    Raises:
        ClassAdException: it is none.
    """
    match value:
        case AnyExpression():
            return value.node
        case AnyAd():
            return as_node(value.inner)
        case classad.ClassAd() | Node():
            return as_node(value)
        case Mapping():
            return _ad(value)  # pyright: ignore[reportUnknownArgumentType]
        case str() | bytes() | datetime() | None | int() | float():
            return Literal(_scalar(value))
        case Iterable():
            return ListLiteral(tuple(to_node(item) for item in value))  # pyright: ignore[reportUnknownVariableType]
        case _:
            raise ClassAdException(f"a {type(value).__name__} is no value of a ClassAd: {value!r}")


def _scalar(value: str | bytes | datetime | float | None) -> Scalar:
    match value:
        case Value():
            return _EXCEPTIONAL[value]
        case None:
            return classad.UNDEFINED
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case datetime():
            return AbsTime(int((value if value.tzinfo else value.astimezone(UTC)).timestamp()))
        case bool() | float() | str():
            return value
        case _:
            return _integer(value)


def _ad(mapping: Mapping[Any, Any]) -> Node:
    inner = classad.ClassAd()
    for name, value in mapping.items():
        inner[named(name)] = to_node(value)
    return as_node(inner)


def named(key: object) -> str:
    """The name of an attribute; raises TypeError for what is none."""
    if not isinstance(key, str):
        raise TypeError("ClassAd keys are strings")
    return key


def _integer(number: int) -> int:
    if not INTEGER_MIN <= number <= INTEGER_MAX:
        raise OverflowError(f"{number} does not fit into the 64 bits of an integer of a ClassAd")
    return int(number)
