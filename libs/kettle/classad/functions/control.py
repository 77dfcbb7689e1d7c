"""Choice, and expressions that look at expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import as_node
from kettle.classad.conversions import to_string
from kettle.classad.errors import ClassAdParseError
from kettle.classad.functions.pcre import TooCostly, compile_pattern
from kettle.classad.functions.registry import Function, lazy, strict
from kettle.classad.nodes import Node, Reference
from kettle.classad.operators import truth
from kettle.classad.parser import parse
from kettle.classad.references import references, trimmed
from kettle.classad.unparse import unparse_indented
from kettle.classad.values import ERROR, UNDEFINED, Exceptional, Value, octets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kettle.classad.scope import Scope


def _if_then_else(arguments: Sequence[Node], scope: Scope) -> Value:
    condition = truth(scope.evaluate(arguments[0]))
    if isinstance(condition, Exceptional):
        return condition
    return scope.evaluate(arguments[1 if condition else 2])


def _eval(arguments: Sequence[Value], scope: Scope) -> Value:
    text = to_string(arguments[0])
    if isinstance(text, Exceptional):
        return ERROR
    try:
        return scope.evaluate(parse(text))
    except ClassAdParseError:
        return ERROR


def _expression_of(argument: Node, scope: Scope) -> Node | None:
    """What the current ad says behind the name that `argument` is."""
    assert isinstance(argument, Reference)
    stored = scope.ad.find(argument.key)
    return None if stored is None else as_node(stored)


def _unparse(arguments: Sequence[Node], scope: Scope) -> Value:
    if not isinstance(arguments[0], Reference):
        return ERROR
    expression = _expression_of(arguments[0], scope)
    return "" if expression is None else unparse_indented(expression)


def _unresolved(arguments: Sequence[Node], scope: Scope) -> Value:
    if not isinstance(arguments[0], Reference):
        return ERROR
    expression = _expression_of(arguments[0], scope)
    if expression is None:
        return UNDEFINED
    target = scope.target()
    names = sorted(references(expression, scope.ad).external, key=str.lower)
    if target is not None:
        names = [name for name in names if not (name.upper().startswith("TARGET.") and name[7:] in target.ad)]
    unresolved = [trimmed(name) for name in names]
    if len(arguments) == 1:
        return ",".join(unresolved)
    wanted = scope.evaluate(arguments[1])
    pattern = compile_pattern(wanted, "i") if isinstance(wanted, str) else None
    if pattern is None:
        return ERROR
    try:
        return any(pattern.search(octets(name), spend=scope.state.spend) for name in unresolved)
    except TooCostly:
        return ERROR


def _debug(arguments: Sequence[Value], scope: Scope) -> Value:
    trace = scope.state.context.trace
    if trace is not None:
        trace(f"debug() saw {arguments[0]!r}")
    return arguments[0]


FAMILY: Final[Mapping[str, Function]] = {
    "ifthenelse": lazy(_if_then_else, 3),
    "eval": strict(_eval, 1),
    "unparse": lazy(_unparse, 1),
    "unresolved": lazy(_unresolved, 1, 2),
    "debug": strict(_debug, 1),
}
