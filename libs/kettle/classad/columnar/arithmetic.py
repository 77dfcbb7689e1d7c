"""Arithmetic and prefix operators over vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from kettle.classad.columnar.column import Tag
from kettle.classad.columnar.masks import as_mask, masked, type_error
from kettle.classad.columnar.vector import Data, Mask, Vector, both, either, inverse, of_value
from kettle.classad.operators import unary as unary_of_value
from kettle.classad.values import INTEGER_MAX, INTEGER_MIN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kettle.classad.columnar.column import Integers, Reals


def as_reals(vector: Vector) -> Reals | float:
    """The ordinary values, which are numbers, as reals."""
    data = vector.data
    if vector.column is not None and vector.kind == Tag.INTEGER:
        return vector.column.floats(len(cast("Integers", data)))
    return data.astype(np.float64) if isinstance(data, np.ndarray) else float(data)


def as_integers(vector: Vector) -> Integers | int:
    """The ordinary values, which are booleans or integers, as integers."""
    data = vector.data
    return data.astype(np.int64) if isinstance(data, np.ndarray) else int(data)


def arithmetic(op: str, left: Vector, right: Vector) -> Vector:
    """Integers wrap around; what is real is plus infinity only as an error."""
    data: Any
    error: Mask
    if Tag.REAL not in {left.kind, right.kind}:
        data, zero = _INTEGER[op](_integer_array(left), _integer_array(right))
        error = as_mask(zero)
        result = masked(Tag.INTEGER, data, left, right)
    elif op == "%":
        return type_error(left, right)
    else:
        with np.errstate(all="ignore"):
            data = _REAL[op](as_reals(left), as_reals(right))
        error = as_mask(_plus_infinity(data))
        result = masked(Tag.REAL, data, left, right)
    if not np.any(error):
        return result
    if result.undefined is not False:
        error = both(error, inverse(result.undefined))
    return Vector(result.kind, result.data, result.undefined, either(result.error, error))


def _plus_infinity(data: Any) -> Any:
    """Where a result is an error; the maximum nearly always shows at once that it is nowhere."""
    if isinstance(data, np.ndarray) and data.size and np.isfinite(data.max()):
        return False
    return data == np.inf


def _integer_array(vector: Vector) -> Integers:
    return np.asarray(as_integers(vector), np.int64)


def _plain(
    operation: Callable[[Integers, Integers], Any],
) -> Callable[[Integers, Integers], tuple[Data, Mask]]:
    def apply(left: Integers, right: Integers) -> tuple[Data, Mask]:
        with np.errstate(all="ignore"):
            return operation(left, right), False

    return apply


def _divided(left: Integers, right: Integers) -> tuple[Data, Mask]:
    """Truncated towards zero; the least integer over -1 is the greatest one."""
    with np.errstate(all="ignore"):
        zero = right == 0
        divisor = np.where(zero | (right == -1), 1, right)
        quotient = left // divisor
        remainder = left - quotient * divisor
        quotient = quotient + ((remainder != 0) & ((left < 0) != (divisor < 0)))
        negated = np.where(left == INTEGER_MIN, INTEGER_MAX, -left)
        return np.where(right == -1, negated, quotient), zero


def _remainder(left: Integers, right: Integers) -> tuple[Data, Mask]:
    """With the sign of the dividend."""
    zero = right == 0
    return np.fmod(left, np.where(zero | (right == -1), 1, right)), zero


_INTEGER: Final[Mapping[str, Callable[[Integers, Integers], tuple[Data, Mask]]]] = {
    "+": _plain(np.add),
    "-": _plain(np.subtract),
    "*": _plain(np.multiply),
    "/": _divided,
    "%": _remainder,
}
_REAL: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


def unary(op: str, operand: Vector) -> Vector:
    """A prefix operator."""
    if operand.constant:
        return of_value(unary_of_value(op, operand.value()))
    if operand.kind == Tag.UNDEFINED:
        return operand
    if not isinstance(operand.data, np.ndarray):
        return _of_same(unary_of_value(op, operand.data), operand)
    data = cast("Any", operand.data)
    if op == "!" and operand.kind != Tag.STRING:
        answer = ~data if operand.kind == Tag.BOOLEAN else data == 0
        return Vector(Tag.BOOLEAN, answer, operand.undefined, operand.error)
    if op in "-+" and operand.kind in {Tag.INTEGER, Tag.REAL}:
        with np.errstate(all="ignore"):
            return Vector(operand.kind, -data if op == "-" else data, operand.undefined, operand.error)
    if op == "~" and operand.kind == Tag.INTEGER:
        return Vector(Tag.INTEGER, ~data, operand.undefined, operand.error)
    return Vector(Tag.UNDEFINED, undefined=operand.undefined, error=inverse(operand.undefined))


def _of_same(value: Value, operand: Vector) -> Vector:
    """One value wherever `operand`, whose data are the same in all rows, has its own."""
    result = of_value(value)
    if result.clean:
        return Vector(result.kind, result.data, operand.undefined, operand.error)
    return Vector(Tag.UNDEFINED, undefined=operand.undefined, error=inverse(operand.undefined))
