"""Conversions between types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.conversions import to_boolean, to_integer, to_real, to_string
from kettle.classad.functions.registry import Function, strict
from kettle.classad.values import Exceptional, List, Value
from kettle.classad.weight import steps_to_write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kettle.classad.evaluation import Evaluation


def text_of(value: Value, state: Evaluation) -> str | Exceptional:
    """`value` as ``string()`` writes it; writing a list or an ad counts as work before it is done."""
    if isinstance(value, List | ClassAd):
        state.spend(steps_to_write(value, state.steps + 1))
    return to_string(value)


FAMILY: Final[Mapping[str, Function]] = {
    "int": strict(lambda arguments, _: to_integer(arguments[0]), 1),
    "real": strict(lambda arguments, _: to_real(arguments[0]), 1),
    "string": strict(lambda arguments, scope: text_of(arguments[0], scope.state), 1),
    "bool": strict(lambda arguments, _: to_boolean(arguments[0]), 1),
}
