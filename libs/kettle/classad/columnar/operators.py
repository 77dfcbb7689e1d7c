"""
The binary operators over vectors.

Each does what `kettle.classad.operators` does to two values, for all rows at once.
What is rare (bits, the order of strings, times) is left to closures: it raises `Unknown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from kettle.classad.columnar.arithmetic import arithmetic, as_integers, as_reals
from kettle.classad.columnar.column import Tag
from kettle.classad.columnar.masks import as_mask, exceptional, masked, type_error
from kettle.classad.columnar.vector import (
    FALSE,
    TRUE,
    Mask,
    Unknown,
    Vector,
    both,
    either,
    inverse,
    of_value,
)
from kettle.classad.operators import BINARY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kettle.classad.columnar.column import Integers
    from kettle.classad.columnar.interning import Strings

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    ">": np.greater,
}
_NUMERIC: Final = frozenset({Tag.BOOLEAN, Tag.INTEGER, Tag.REAL})
_ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "%"})
_BITS: Final = frozenset({"&", "|", "^", "<<", ">>", ">>>"})


def binary(op: str, left: Vector, right: Vector, strings: Strings) -> Vector:
    """A strict operator, or identity, of two vectors."""
    if left.constant and right.constant:
        return of_value(BINARY[op](left.value(), right.value()))
    if op in {"=?=", "=!="}:
        return identical(left, right, strings, negated=op == "=!=")
    if Tag.UNDEFINED in {left.kind, right.kind}:
        return exceptional(left, right, all_rows=True)
    if op in COMPARISONS:
        return _comparison(op, left, right, strings)
    if left.kind not in _NUMERIC or right.kind not in _NUMERIC:
        if op in _ARITHMETIC | _BITS:
            return type_error(left, right)
        raise Unknown
    if op in _ARITHMETIC:
        return arithmetic(op, left, right)
    raise Unknown


def _comparison(op: str, left: Vector, right: Vector, strings: Strings) -> Vector:
    if left.kind == right.kind == Tag.STRING:
        if op not in {"==", "!="}:
            raise Unknown
        if isinstance(left.data, str) and isinstance(right.data, str):
            return masked(Tag.BOOLEAN, BINARY[op](left.data, right.data), left, right)
    elif Tag.STRING in {left.kind, right.kind}:
        return type_error(left, right)
    result = masked(Tag.BOOLEAN, _compared(op, left, right, strings), left, right)
    if left.column is not None and right.clean and not isinstance(right.data, np.ndarray):
        left.column.remember((op, type(right.data), right.data), result)
    return result


def _compared(op: str, left: Vector, right: Vector, strings: Strings) -> Any:
    """The bare comparison of what can be compared."""
    compare = COMPARISONS[op]
    if left.kind == Tag.STRING:
        return compare(_folds(left, strings), _folds(right, strings))
    if left.kind == right.kind != Tag.BOOLEAN:
        return compare(left.data, right.data)
    if Tag.REAL in {left.kind, right.kind}:
        return compare(as_reals(left), as_reals(right))
    return compare(as_integers(left), as_integers(right))


def _folds(vector: Vector, strings: Strings) -> Integers | int:
    if isinstance(vector.data, str):
        return strings.fold(vector.data)
    codes = cast("Integers", vector.data)
    return strings.folds(codes) if vector.column is None else vector.column.folded(len(codes), strings)


def _codes(vector: Vector, strings: Strings) -> Integers | int:
    return strings.code(vector.data) if isinstance(vector.data, str) else cast("Integers", vector.data)


def identical(left: Vector, right: Vector, strings: Strings, *, negated: bool) -> Vector:
    """``=?=`` and ``=!=``: there is an answer in every row."""
    same: Mask = either(both(left.undefined, right.undefined), both(left.error, right.error))
    if left.kind == right.kind != Tag.UNDEFINED:
        equal: Any
        if isinstance(left.data, str) and isinstance(right.data, str):
            equal = left.data == right.data
        elif left.kind == Tag.STRING:
            equal = np.equal(_codes(left, strings), _codes(right, strings))
        else:
            equal = np.equal(cast("Any", left.data), cast("Any", right.data))
        ordinary = inverse(either(either(left.undefined, left.error), either(right.undefined, right.error)))
        same = either(same, both(as_mask(equal), ordinary))
    answer = inverse(same) if negated else same
    if isinstance(answer, bool):
        return TRUE if answer else FALSE
    return Vector(Tag.BOOLEAN, answer)
