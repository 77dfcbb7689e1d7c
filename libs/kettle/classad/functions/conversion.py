"""Conversions between types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.conversions import to_boolean, to_integer, to_real, to_string
from kettle.classad.functions.registry import Function, strict

if TYPE_CHECKING:
    from collections.abc import Mapping

FAMILY: Final[Mapping[str, Function]] = {
    "int": strict(lambda arguments, _: to_integer(arguments[0]), 1),
    "real": strict(lambda arguments, _: to_real(arguments[0]), 1),
    "string": strict(lambda arguments, _: to_string(arguments[0]), 1),
    "bool": strict(lambda arguments, _: to_boolean(arguments[0]), 1),
}
