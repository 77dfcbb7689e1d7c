"""Choice, text that is evaluated, and a look at evaluation itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.errors import ClassAdParseError
from kettle.classad.evaluation import CHARS_PER_STEP
from kettle.classad.functions.conversion import text_of
from kettle.classad.functions.registry import Function, strict
from kettle.classad.parser import parse
from kettle.classad.values import ERROR, Exceptional, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kettle.classad.scope import Scope


def _eval(arguments: Sequence[Value], scope: Scope) -> Value:
    text = text_of(arguments[0], scope.state)
    if isinstance(text, Exceptional):
        return ERROR
    if len(text) >= CHARS_PER_STEP:
        scope.state.spend(len(text))  # it is parsed more slowly than it is read
    try:
        return scope.evaluate(parse(text))
    except ClassAdParseError:
        return ERROR


def _debug(arguments: Sequence[Value], scope: Scope) -> Value:
    trace = scope.state.context.trace
    if trace is not None:
        trace(f"debug() saw {arguments[0]!r}")
    return arguments[0]


FAMILY: Final[Mapping[str, Function]] = {
    "ifthenelse": Function(3, 3, choice=True),
    "eval": strict(_eval, 1),
    "debug": strict(_debug, 1),
}
