"""Where there is no ordinary value: what two operands mask together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kettle.classad.columnar.column import Tag
from kettle.classad.columnar.vector import NOTHING_ERROR, Data, Mask, Vector, both, either, inverse

if TYPE_CHECKING:
    import numpy.typing as npt

    from kettle.classad.columnar.column import Booleans


def exceptional(left: Vector, right: Vector, *, all_rows: bool = False) -> Vector:
    """
    What two operands mask together: error before undefined.

    With `all_rows` one of them has no ordinary value in any row.
    """
    error = either(left.error, right.error)
    if all_rows:
        return Vector(Tag.UNDEFINED, undefined=inverse(error), error=error)
    undefined = either(left.undefined, right.undefined)
    if error is not False and undefined is not False:
        undefined = both(undefined, inverse(error))
    return Vector(Tag.BOOLEAN, False, undefined, error)


def type_error(left: Vector, right: Vector) -> Vector:
    """Operands that do not go together: an error wherever both are there."""
    if left.clean and right.clean:
        return NOTHING_ERROR
    mask = exceptional(left, right)
    return Vector(Tag.UNDEFINED, undefined=mask.undefined, error=inverse(mask.undefined))


def masked(kind: int, data: Any, left: Vector, right: Vector) -> Vector:
    """The result of a strict operator of two vectors, where both have an ordinary value."""
    plain = _plain(data)
    if left.clean and right.clean:
        return Vector(kind, plain)
    mask = exceptional(left, right)
    return Vector(kind, plain, mask.undefined, mask.error)


def _plain(data: Any) -> Data:
    """An array, or the value that two constants (of which one is masked in places) give."""
    if isinstance(data, np.ndarray):
        array = cast("npt.NDArray[np.generic]", data)
        return array if array.ndim else cast("int", array.item())
    return cast("int", data.item()) if isinstance(data, np.generic) else data


def as_mask(data: object) -> Mask:
    """Truth values as a mask."""
    return cast("Booleans", data) if isinstance(data, np.ndarray) else bool(data)
