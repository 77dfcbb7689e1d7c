"""
The value of an expression in many rows at once: one kind of ordinary value, and where there is none.

A part that is the same in all rows is a plain Python value: constants cost nothing, and `False` as a mask means
that there is nothing to mask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from kettle.classad.columnar.column import Tag
from kettle.classad.values import ERROR, UNDEFINED, Exceptional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from kettle.classad.columnar.column import Booleans, Column, Integers
    from kettle.classad.values import Scalar, Stored

Mask: TypeAlias = "Booleans | bool"
Data: TypeAlias = "npt.NDArray[np.generic] | bool | int | float | str"


class Unknown(Exception):  # noqa: N818 - it says what happened, and never leaves this package
    """A value that no vector holds, or a construct that has no kernel: let a closure look at it."""


class Overrun(Exception):  # noqa: N818 - the same
    """Depth or steps may run out: only an evaluation from the start can tell."""


class Exhausted(Exception):  # noqa: N818 - the same
    """All rows together have taken what they may."""


class Partition(Exception):  # noqa: N818 - the same
    """
    The rows have different kinds of value here and have to be looked at kind by kind.

    `groups` are the positions of the rows of each kind; each is smaller than the whole.
    """

    def __init__(self, groups: Sequence[Integers]) -> None:
        super().__init__(f"{len(groups)} kinds")
        self.groups = groups


class Vector:
    """
    `kind` is the tag of the ordinary values, UNDEFINED if there are none.

    `data` holds the values, codes of interned strings in an array, or one value for all rows (a string as itself);
    it means nothing in rows that `undefined` or `error` masks.
    `column` is the column whose values these are, all of them and unchanged: what it remembers need not be computed.
    A vector never changes: several may hold the same arrays.
    """

    __slots__ = ("clean", "column", "data", "error", "kind", "undefined")

    def __init__(
        self,
        kind: int,
        data: Data = False,  # noqa: FBT002 - the simplest of values, and no masks
        undefined: Mask = False,  # noqa: FBT002 - the same
        error: Mask = False,  # noqa: FBT002 - the same
        column: Column | None = None,
    ) -> None:
        self.kind = kind
        self.data = data
        self.undefined = undefined
        self.error = error
        self.column = column
        self.clean = undefined is False and error is False
        """Whether all rows have an ordinary value."""

    @property
    def constant(self) -> bool:
        """Whether all rows have the same value."""
        return (
            (self.kind == Tag.UNDEFINED or not isinstance(self.data, np.ndarray))
            and isinstance(self.undefined, bool)
            and isinstance(self.error, bool)
        )

    def value(self) -> Scalar:
        """The value of a constant vector."""
        if self.error is True:
            return ERROR
        if self.undefined is True:
            return UNDEFINED
        assert not isinstance(self.data, np.ndarray), "a constant"
        return self.data


NOTHING_UNDEFINED: Final = Vector(Tag.UNDEFINED, undefined=True)
NOTHING_ERROR: Final = Vector(Tag.UNDEFINED, error=True)
TRUE: Final = Vector(Tag.BOOLEAN, data=True)
FALSE: Final = Vector(Tag.BOOLEAN, data=False)

_KINDS: Final[Mapping[type, int]] = {bool: Tag.BOOLEAN, int: Tag.INTEGER, float: Tag.REAL, str: Tag.STRING}


def of_value(value: Stored) -> Vector:
    """A vector with the same value in all rows."""
    if isinstance(value, Exceptional):
        return NOTHING_UNDEFINED if value is UNDEFINED else NOTHING_ERROR
    kind = _KINDS.get(type(value))
    if kind is None:
        raise Unknown
    assert isinstance(value, bool | int | float | str)
    return Vector(kind, value)


def spread(mask: Mask, rows: int) -> Booleans:
    """A mask as an array."""
    return np.full(rows, mask) if isinstance(mask, bool) else mask


def either(left: Mask, right: Mask) -> Mask:
    """Where one of the two masks."""
    if left is False or right is True:
        return right
    if right is False or left is True:
        return left
    return left | right


def both(left: Mask, right: Mask) -> Mask:
    """Where both mask."""
    if left is True or right is False:
        return right
    if right is True or left is False:
        return left
    return left & right


def inverse(mask: Mask) -> Mask:
    """Where it does not mask."""
    return not mask if isinstance(mask, bool) else ~mask
