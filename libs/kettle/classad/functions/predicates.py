"""Type predicates: never undefined, never an error, for exactly one argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.functions.registry import Function, constant_cost
from kettle.classad.values import ERROR, UNDEFINED, AbsTime, List, RelTime, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kettle.classad.scope import Scope


def _is(kind: type) -> Function:
    def body(arguments: Sequence[Value], _: Scope) -> Value:
        return type(arguments[0]) is kind

    return constant_cost(body, 1)


FAMILY: Final[Mapping[str, Function]] = {
    "isundefined": constant_cost(lambda arguments, _: arguments[0] is UNDEFINED, 1),
    "iserror": constant_cost(lambda arguments, _: arguments[0] is ERROR, 1),
    "isstring": _is(str),
    "isinteger": _is(int),
    "isreal": _is(float),
    "isboolean": _is(bool),
    "islist": _is(List),
    "isclassad": _is(ClassAd),
    "isabstime": _is(AbsTime),
    "isreltime": _is(RelTime),
}
