"""
The interpreter: one function per kind of node, each readable beside the specification.

Every function returns a value and raises only `EvaluationFailed`; errors of the *expression* are the value error.
One Python frame per operator keeps four hundred levels below the interpreter's own limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kettle.classad.ad import ClassAd
from kettle.classad.context import NOTHING, Context
from kettle.classad.errors import EvaluationFailed
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
    Subscript,
    Unary,
)
from kettle.classad.operators import BINARY, truth, unary
from kettle.classad.scope import Scope, new_scope
from kettle.classad.values import ERROR, UNDEFINED, Exceptional, List, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def evaluate(
    expression: Node, my: ClassAd | None = None, target: ClassAd | None = None, context: Context = NOTHING
) -> Value:
    """
    The value of `expression` in the ad `my`, matched against `target` if there is one.

    Raises `EvaluationFailed` where there is not even the value error.
    """
    return _guarded(expression, new_scope(_evaluate, my, target, context))


def evaluate_attribute(
    name: str, my: ClassAd, target: ClassAd | None = None, context: Context = NOTHING
) -> Value:
    """The value of an attribute of `my` (or of its chained ad), undefined if there is none."""
    key = name.lower()
    stored = my.find(key)
    if stored is None:
        return UNDEFINED
    if not isinstance(stored, Node):
        return stored
    scope = new_scope(_evaluate, my, target, context)
    try:
        return scope.state.attribute(stored, key, my)
    except RecursionError:
        raise EvaluationFailed("the expression goes on too deeply") from None


def _guarded(expression: Node, scope: Scope) -> Value:
    try:
        return _evaluate(expression, scope)
    except RecursionError:
        raise EvaluationFailed("the expression goes on too deeply") from None


def _evaluate(node: Node, scope: Scope) -> Value:
    return _EVALUATE[type(node)](node, scope)


def _literal(node: Literal, _: Scope) -> Value:
    return node.value


def _reference(node: Reference, scope: Scope) -> Value:
    """The body of a look-up stands here and not in the scope: a reference costs one frame of Python's stack."""
    state = scope.state
    base = node.base
    if base is not None:
        state.descend()
        side = (
            scope.side(base.key)
            if isinstance(base, Reference) and base.base is None and not base.absolute
            else None
        )
        if side is None:
            value = _EVALUATE[type(base)](base, scope)
            if not isinstance(value, ClassAd):
                state.depth += 1
                return _selected(value, node.key, scope)
            side = state.scope_of(value)
        state.depth += 1
        stored, ad = side.look_up(node.key, selected=True)
    elif not node.absolute:
        stored, ad = scope.look_up(node.key)
    elif state.root is not None:
        stored, ad = state.scope_of(state.root).look_up(node.key, selected=True)
    else:
        return UNDEFINED
    if not isinstance(stored, Node):
        return stored
    mark = state.enter(ad, node.key)
    if mark is None:
        return UNDEFINED
    value = _EVALUATE[type(stored)](stored, state.scope_of(ad))
    state.leave(mark)
    return value


def _selected(value: Value, key: str, scope: Scope) -> Value:
    """``value.name``: of a list, the list of what is selected from its members."""
    if isinstance(value, Exceptional):
        return value
    if isinstance(value, List):
        written = value.scope if isinstance(value.scope, Scope) else scope
        members = (_evaluate(item, written) if isinstance(item, Node) else item for item in value.items)
        return List(tuple(_selected(member, key, scope) for member in members), written)
    if isinstance(value, ClassAd):
        stored, ad = scope.state.scope_of(value).look_up(key, selected=True)
        return scope.state.attribute(stored, key, ad)
    return ERROR


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
    return BINARY[node.op](left, right)


def _logical(node: Logical, scope: Scope) -> Value:
    """
    The left side decides if it is an error, or false before ``&&``, or true before ``||``.

    Otherwise an error on the right wins, then a right side that decides, then undefined.
    """
    state = scope.state
    state.descend()
    operand = node.left
    decisive = node.op == "||"
    left = truth(_EVALUATE[type(operand)](operand, scope))
    if left is decisive or left is ERROR:
        state.depth += 1
        return left
    operand = node.right
    right = truth(_EVALUATE[type(operand)](operand, scope))
    state.depth += 1
    if right is ERROR or right is decisive:
        return right
    return UNDEFINED if left is UNDEFINED else right


def _conditional(node: Conditional, scope: Scope) -> Value:
    state = scope.state
    state.descend()
    operand = node.condition
    condition = truth(_EVALUATE[type(operand)](operand, scope))
    value: Value
    if isinstance(condition, Exceptional):
        value = condition
    else:
        operand = node.then if condition else node.otherwise
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
    state = scope.state
    state.descend()
    operand = node.base
    base = _EVALUATE[type(operand)](operand, scope)
    operand = node.index
    index = _EVALUATE[type(operand)](operand, scope)
    value = _member(base, index, scope)
    state.depth += 1
    return value


def _member(base: Value, index: Value, scope: Scope) -> Value:
    if isinstance(base, Exceptional) or isinstance(index, Exceptional):
        return ERROR if base is ERROR or index is ERROR else UNDEFINED
    if isinstance(base, List):
        if type(index) is not int or not 0 <= index < len(base.items):
            return ERROR
        item = base.items[index]
        written = base.scope if isinstance(base.scope, Scope) else scope
        return _evaluate(item, written) if isinstance(item, Node) else item
    if not isinstance(base, ClassAd) or not isinstance(index, str):
        return ERROR
    stored = base.find(index.lower())
    return UNDEFINED if stored is None else scope.state.attribute(stored, index.lower(), base)


def _call(node: Call, scope: Scope) -> Value:
    function = FUNCTIONS.get(node.key)
    if function is None:
        return ERROR
    if not function.accepts(len(node.arguments)):
        return ERROR
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
    return List(node.items, scope)


def _ad(node: AdLiteral, scope: Scope) -> Value:
    return scope.state.nested(node, scope.lexical)


_EVALUATE: Final[Mapping[type[Node], Callable[[Any, Scope], Value]]] = {
    Literal: _literal,
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
