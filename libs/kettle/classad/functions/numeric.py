"""Rounding, powers, quanta, chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from kettle.classad.conversions import to_real, truncated
from kettle.classad.errors import EvaluationFailed
from kettle.classad.functions.registry import Function, strict
from kettle.classad.operators import BINARY
from kettle.classad.values import ERROR, UNDEFINED, Exceptional, List, Value, low_half

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kettle.classad.scope import Scope


_NOTHING: Final = 1e-8
"""A real quantum so small is none."""


def _rounding(how: Callable[[float], float]) -> Function:
    def body(arguments: Sequence[Value], _: Scope) -> Value:
        value = arguments[0]
        if type(value) is int:
            return value
        number = to_real(value)
        if isinstance(number, Exceptional):
            return ERROR
        return truncated(how(number) if math.isfinite(number) else number)

    return strict(body, 1)


def _real_power(base: float, exponent: float) -> float:
    """C's `pow`, which has a result for all arguments."""
    odd = exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base != 0:
            return math.nan
        return math.copysign(math.inf, base) if odd else math.inf


def _pow(arguments: Sequence[Value], _: Scope) -> Value:
    base, exponent = arguments
    if type(base) is int and type(exponent) is int and exponent >= 0:
        return truncated(_real_power(float(base), float(exponent)) + 0.5)
    base, exponent = to_real(base), to_real(exponent)
    if isinstance(base, Exceptional) or isinstance(exponent, Exceptional):
        return ERROR
    return _real_power(base, exponent)


def _quantize(arguments: Sequence[Value], scope: Scope) -> Value:
    value, quantum = arguments
    if isinstance(value, Exceptional) or isinstance(quantum, Exceptional):
        return ERROR
    if not isinstance(quantum, List):
        return _multiple(value, quantum)
    number = to_real(value)
    step: Value = 0
    for step in scope.members(quantum):
        size = to_real(step)
        if isinstance(size, Exceptional) or isinstance(number, Exceptional):
            return ERROR
        if size >= number:
            return step
    return _multiple(value, step)


def _multiple(value: Value, quantum: Value) -> Value:
    """The smallest multiple of `quantum` that is not below `value`."""
    if type(value) is int and type(quantum) is int:
        if quantum == 0:
            return value
        raised = BINARY["-"](BINARY["+"](value, quantum), 1)
        return BINARY["*"](BINARY["/"](raised, quantum), quantum)
    number, step = to_real(value), to_real(quantum)
    if isinstance(number, Exceptional) or isinstance(step, Exceptional):
        return ERROR
    if step == 0 or (type(quantum) is not int and abs(step) <= _NOTHING):
        return value
    count = number / step
    whole = math.copysign(math.ceil(count), count) if math.isfinite(count) else count
    return whole * step


def _random(arguments: Sequence[Value], scope: Scope) -> Value:
    source = scope.state.context.random
    limit: Value = arguments[0] if arguments else 1.0
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        return ERROR
    if isinstance(limit, int):
        limit = low_half(limit)
    if limit <= 0:
        raise EvaluationFailed("random() has nothing to choose from")
    if source is None:
        return UNDEFINED
    drawn = source() * limit
    return min(int(drawn), limit - 1) if isinstance(limit, int) else drawn


FAMILY: Final[Mapping[str, Function]] = {
    "floor": _rounding(math.floor),
    "ceiling": _rounding(math.ceil),
    "ceil": _rounding(math.ceil),
    "round": _rounding(round),
    "pow": strict(_pow, 2),
    "quantize": strict(_quantize, 2),
    "random": strict(_random, 0, 1),
}
