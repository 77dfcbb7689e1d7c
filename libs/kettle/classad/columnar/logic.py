"""Three-valued logic over vectors, and vectors put together row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kettle.classad.columnar.column import Tag
from kettle.classad.columnar.masks import as_mask
from kettle.classad.columnar.vector import (
    NOTHING_ERROR,
    NOTHING_UNDEFINED,
    Data,
    Mask,
    Unknown,
    Vector,
    both,
    either,
    inverse,
)

if TYPE_CHECKING:
    from kettle.classad.columnar.column import Booleans


def truth(vector: Vector) -> Vector:
    """What a vector means to a logical operator."""
    if vector.kind in {Tag.BOOLEAN, Tag.UNDEFINED}:
        return vector
    if vector.kind == Tag.STRING:
        if vector.clean:
            return NOTHING_ERROR
        return Vector(Tag.UNDEFINED, undefined=vector.undefined, error=inverse(vector.undefined))
    data = vector.data
    return Vector(
        Tag.BOOLEAN, data != 0 if isinstance(data, np.ndarray) else bool(data), vector.undefined, vector.error
    )


def holds(vector: Vector) -> Mask:
    """Where a vector is true."""
    return _where(truth(vector), wanted=True)


def _where(vector: Vector, *, wanted: bool) -> Mask:
    """Where a vector of truth values has this one."""
    if vector.kind == Tag.UNDEFINED:
        return False
    data = as_mask(vector.data)
    there = data if wanted else inverse(data)
    return there if vector.clean else both(there, inverse(either(vector.undefined, vector.error)))


def logical(op: str, left: Vector, right: Vector) -> Vector:
    """
    ``&&`` or ``||`` of two vectors of truth values.

    An error on the left wins, then a left side that decides, an error on the right, a right side that decides, and
    then undefined.
    """
    decisive = op == "||"
    if left.clean and right.clean:
        first, second = left.data, right.data
        if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
            return Vector(
                Tag.BOOLEAN, np.logical_or(first, second) if decisive else np.logical_and(first, second)
            )
        combined = either if decisive else both
        return Vector(Tag.BOOLEAN, combined(as_mask(left.data), as_mask(right.data)))
    left_decides = _where(left, wanted=decisive)
    error = either(left.error, both(right.error, inverse(left_decides)))
    decided = either(left_decides, both(_where(right, wanted=decisive), inverse(left.error)))
    undefined = both(either(left.undefined, right.undefined), inverse(either(error, decided)))
    return _truths(decided if decisive else inverse(decided), undefined, error)


def _truths(data: Mask, undefined: Mask, error: Mask) -> Vector:
    if undefined is True:
        return NOTHING_UNDEFINED
    if error is True:
        return NOTHING_ERROR
    return Vector(Tag.BOOLEAN, data, undefined, error)


def merge(chosen: Booleans, first: Vector, second: Vector) -> Vector:
    """`first` where `chosen`, `second` elsewhere; both of one kind, or one of no kind."""
    kind = first.kind if first.kind != Tag.UNDEFINED else second.kind
    if second.kind not in {kind, Tag.UNDEFINED}:
        raise Unknown
    undefined = _chosen(chosen, first.undefined, second.undefined)
    error = _chosen(chosen, first.error, second.error)
    if Tag.UNDEFINED in {first.kind, second.kind}:
        known = second if first.kind == Tag.UNDEFINED else first
        return Vector(kind, known.data, undefined, error)
    if kind == Tag.STRING and (isinstance(first.data, str) or isinstance(second.data, str)):
        raise Unknown  # the code of a constant is not known to the table
    data = cast("Data", np.where(chosen, cast("Any", first.data), cast("Any", second.data)))
    return Vector(kind, data, undefined, error)


def _chosen(chosen: Booleans, first: Mask, second: Mask) -> Mask:
    if first is False and second is False:
        return False
    return both(chosen, first) if second is False else either(both(chosen, first), both(~chosen, second))
