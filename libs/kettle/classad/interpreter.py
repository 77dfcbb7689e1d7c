"""
The interpreter: one function per kind of node, each readable beside the language's definition.

It says what is right; `kettle.classad.closures` is faster and agrees with it.
Every function returns a value and raises only `EvaluationFailed`; errors of the *expression* are the value error.
One Python frame per operator keeps four hundred levels below the interpreter's own limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kettle.classad.ad import ClassAd
from kettle.classad.cost import extent_of
from kettle.classad.errors import BudgetExceeded, EvaluationFailed
from kettle.classad.functions import FUNCTIONS
from kettle.classad.nodes import (
    AdLiteral,
    Binary,
    Call,
    Conditional,
    Elvis,
    ListLiteral,
    Literal,
    Logical,
    Node,
    Parentheses,
    Reference,
    RelTimeLiteral,
    Subscript,
    Unary,
)
from kettle.classad.operators import BINARY, truth, unary
from kettle.classad.scope import Scope
from kettle.classad.selection import as_stored, is_bare, member, selected, written
from kettle.classad.values import ERROR, UNDEFINED, Exceptional, List, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def entered(node: Node, scope: Scope) -> Value:
    """The value of an expression that an evaluation begins with, or goes on with elsewhere."""
    scope.state.spend(extent_of(node).size)
    scope.state.descend(0)
    return _EVALUATE[type(node)](node, scope)


def interpreted(node: Node, scope: Scope) -> Value:
    """The value of an expression whose size has been charged already."""
    return _EVALUATE[type(node)](node, scope)


def _literal(node: Literal, _: Scope) -> Value:
    return node.value


def _rel_time_literal(node: RelTimeLiteral, _: Scope) -> Value:
    return node.seconds


def _reference(node: Reference, scope: Scope) -> Value:
    """
    The body of a look-up stands here and not in the scope: a reference costs one frame of Python's stack.
    """
    state = scope.state
    key, base = node.key, node.base
    if base is not None:
        state.descend()
        side = scope.side(base.key) if is_bare(base) else None
        if side is None:
            value = _EVALUATE[type(base)](base, scope)
            if not isinstance(value, ClassAd):
                state.depth += 1
                return selected(value, key, scope)
            side = state.scope_of(value)
        state.depth += 1
        stored, ad = side.look_up(key, selected=True)
    elif not node.absolute:
        stored, ad = scope.look_up(key)
    else:
        stored, ad = state.outermost(key)
    if not isinstance(stored, Node):
        return stored
    home = state.scope_of(ad)
    if not home.activate(key):
        return UNDEFINED
    try:
        state.spend(extent_of(stored).size)
        state.descend()
        value = _EVALUATE[type(stored)](stored, home)
    finally:
        home.deactivate(key)
    state.depth += 1
    return value


def _unary(node: Unary, scope: Scope) -> Value:
    state = scope.state
    state.descend()
    operand = node.operand
    value = _EVALUATE[type(operand)](operand, scope)
    state.depth += 1
    return unary(node.op, value)


def _parentheses(node: Parentheses, scope: Scope) -> Value:
    state = scope.state
    state.descend()
    inner = node.inner
    value = _EVALUATE[type(inner)](inner, scope)
    state.depth += 1
    return value


def _binary(node: Binary, scope: Scope) -> Value:
    state = scope.state
    state.descend()
    operand = node.left
    left = _EVALUATE[type(operand)](operand, scope)
    operand = node.right
    right = _EVALUATE[type(operand)](operand, scope)
    state.depth += 1
    if (
        type(left) is str
        and type(right) is str
        and not isinstance(node.left, Literal)
        and not isinstance(node.right, Literal)
    ):
        state.charge(min(left, right, key=len))
    return BINARY[node.op](left, right)


def _logical(node: Logical, scope: Scope) -> Value:
    """
    The left side decides if it is an error, or false before ``&&``, or true before ``||``.

    Otherwise an error on the right wins, then a right side that decides, then undefined.
    The right side is evaluated also where the left one is an error only for being no boolean.
    """
    state = scope.state
    state.descend()
    operand = node.left
    decisive = node.op == "||"
    value = _EVALUATE[type(operand)](operand, scope)
    left = truth(value)
    if left is decisive or value is ERROR:
        state.depth += 1
        return left
    operand = node.right
    right = truth(_EVALUATE[type(operand)](operand, scope))
    state.depth += 1
    if left is ERROR or right is ERROR:
        return ERROR
    return UNDEFINED if left is UNDEFINED and right is not decisive else right


def _conditional(node: Conditional, scope: Scope) -> Value:
    """One branch, but both where the condition is an error only for being no boolean."""
    state = scope.state
    state.descend()
    operand = node.condition
    value = _EVALUATE[type(operand)](operand, scope)
    condition = truth(value)
    if not isinstance(condition, Exceptional):
        operand = node.then if condition else node.otherwise
        value = _EVALUATE[type(operand)](operand, scope)
    elif condition is not value:
        for operand in (node.then, node.otherwise):
            _EVALUATE[type(operand)](operand, scope)
        value = ERROR
    state.depth += 1
    return value


def _choice(arguments: tuple[Node, ...], scope: Scope) -> Value:
    """``ifThenElse``: one branch or none."""
    condition, then, otherwise = arguments
    state = scope.state
    state.descend()
    value: Value = truth(_EVALUATE[type(condition)](condition, scope))
    if not isinstance(value, Exceptional):
        operand = then if value else otherwise
        value = _EVALUATE[type(operand)](operand, scope)
    state.depth += 1
    return value


def _elvis(node: Elvis, scope: Scope) -> Value:
    state = scope.state
    state.descend()
    operand = node.preferred
    value = _EVALUATE[type(operand)](operand, scope)
    if value is UNDEFINED:
        operand = node.fallback
        value = _EVALUATE[type(operand)](operand, scope)
    state.depth += 1
    return value


def _subscript(node: Subscript, scope: Scope) -> Value:
    """The evaluation of a member, written out here like that of an attribute above."""
    state = scope.state
    state.descend()
    operand = node.base
    base = _EVALUATE[type(operand)](operand, scope)
    operand = node.index
    index = _EVALUATE[type(operand)](operand, scope)
    item = member(base, index)
    if isinstance(item, Node):
        if isinstance(base, ClassAd):
            value = state.scope_of(base).attribute(item, str(index).lower())
        else:
            state.spend(extent_of(item).size)
            depth = state.depth
            try:
                value = _EVALUATE[type(item)](item, written(base, scope))
            except BudgetExceeded:
                raise
            except EvaluationFailed:
                state.depth = depth
                value = ERROR
    else:
        value = item
    state.depth += 1
    return value


def _call(node: Call, scope: Scope) -> Value:
    function = FUNCTIONS.get(node.key)
    if function is None or not function.accepts(len(node.arguments)):
        return ERROR
    if function.choice:
        return _choice(node.arguments, scope)
    state = scope.state
    state.descend()
    if function.strict is not None:
        values: list[Value] = []
        for argument in node.arguments:
            values.append(_EVALUATE[type(argument)](argument, scope))  # noqa: PERF401 - a comprehension costs a frame
        value = function.strict(values, scope)
    else:
        assert function.lazy is not None
        value = function.lazy(node.arguments, scope)
    state.depth += 1
    return value


def _list(node: ListLiteral, scope: Scope) -> Value:
    return List(as_stored(node), scope)


def _ad(node: AdLiteral, scope: Scope) -> Value:
    return scope.state.nested(node, scope.lexical)


_EVALUATE: Final[Mapping[type[Node], Callable[[Any, Scope], Value]]] = {
    Literal: _literal,
    RelTimeLiteral: _rel_time_literal,
    Reference: _reference,
    Unary: _unary,
    Parentheses: _parentheses,
    Binary: _binary,
    Logical: _logical,
    Conditional: _conditional,
    Elvis: _elvis,
    Subscript: _subscript,
    Call: _call,
    ListLiteral: _list,
    AdLiteral: _ad,
}
