"""
The values of the language.

Booleans, integers (signed 64 bit), reals and strings are Python's own.
A string is a string of *octets* in ClassAds; here it is a `str` decoded as UTF-8 with `surrogateescape`,
so that text from the wire needs no conversion, and every octet string has exactly one form.
What counts octets (`size`, `substr`, ordering, patterns) goes through `octets` unless the string is ASCII.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, overload

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kettle.classad.ad import ClassAd
    from kettle.classad.nodes import Node


class Exceptional(Enum):
    """The two values that say that there is no ordinary value."""

    UNDEFINED = "undefined"
    ERROR = "error"

    def __repr__(self) -> str:
        return self.value

    def __bool__(self) -> bool:
        """Refuse: three-valued logic is lost the moment Python takes a side.  Use `is_true`."""
        raise TypeError(f"{self.value} is neither true nor false; ask is_true()")


UNDEFINED: Final = Exceptional.UNDEFINED
ERROR: Final = Exceptional.ERROR


class AbsTime(msgspec.Struct, frozen=True):
    """An instant in seconds since 1970 UTC, and the zone offset (seconds east of UTC) it is written in."""

    seconds: int
    offset: int = 0


class RelTime(msgspec.Struct, frozen=True):
    """A duration in seconds."""

    seconds: float


class ListScope(Protocol):
    """Where a list was written: what its members mean."""

    def member(self, item: Node, /) -> Value:
        """Evaluate a member on behalf of someone outside of the evaluation that made the list."""
        ...


class List:
    """
    A list of expressions, each evaluated when it is asked for, in the scope in which the list was written.

    `items` holds values as themselves and everything else as nodes; `scope` may be absent if all are values.
    """

    __slots__ = ("items", "scope")

    def __init__(self, items: tuple[Stored, ...], scope: ListScope | None = None) -> None:
        self.items = items
        self.scope = scope

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Value]:
        for index in range(len(self.items)):
            yield self[index]

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> list[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | list[Value]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self.items)))]
        item = self.items[index]
        if not isinstance(item, msgspec.Struct) or isinstance(item, AbsTime | RelTime):
            return item
        assert self.scope is not None, "a list of expressions knows where it was written"
        return self.scope.member(item)

    def __repr__(self) -> str:
        return f"List({self.items!r})"


Scalar: TypeAlias = bool | int | float | str | Exceptional | AbsTime | RelTime
Value: TypeAlias = "Scalar | List | ClassAd"
Stored: TypeAlias = "Scalar | List | ClassAd | Node"
"""What stands behind a name or in a list: a value that needs no evaluation, or an expression."""

INTEGER_MIN: Final = -(1 << 63)
INTEGER_MAX: Final = (1 << 63) - 1
_NARROW_MIN: Final = -(1 << 31)


def octets(text: str) -> bytes:
    """The octets that a ClassAd string stands for."""
    return text.encode("utf-8", "surrogateescape")


def from_octets(data: bytes) -> str:
    """The one `str` for these octets."""
    return data.decode("utf-8", "surrogateescape")


def joined(parts: list[str]) -> str:
    """Concatenate; halves of a UTF-8 sequence that meet become one character again."""
    text = "".join(parts)
    return text if text.isascii() else from_octets(octets(text))


def wrapped(number: int) -> int:
    """Two's complement arithmetic on 64 bits."""
    if INTEGER_MIN <= number <= INTEGER_MAX:
        return number
    return (number - INTEGER_MIN) % (1 << 64) + INTEGER_MIN


def narrowed(number: float) -> int:
    """
    A real cut to an integer of 32 bits; what does not fit is the smallest one, as on x86-64.

    HTCondor counts the seconds of a duration that way wherever it needs whole ones.
    """
    return int(number) if _NARROW_MIN - 1 < number < -_NARROW_MIN else _NARROW_MIN


def low_half(number: int) -> int:
    """The lower 32 of an integer's 64 bits, as a signed number."""
    return (number - _NARROW_MIN) % (1 << 32) + _NARROW_MIN


def is_true(value: Value) -> bool:
    """
    Whether a policy, a constraint or a Requirements with this value holds.

    Only true and numbers other than zero do; undefined, error, strings, lists and ads never.
    """
    return isinstance(value, bool | int | float) and bool(value)
