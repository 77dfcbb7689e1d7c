"""
An expression to its closure, once; `above` is always the number of levels above a node within its expression.

Functions are looked up and their arguments counted here, parentheses vanish, chains of ``&&`` and ``||`` become one
loop, and what consists of literals becomes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kettle.classad.ad import OTHER, OWN, ClassAd
from kettle.classad.closures import operators, references, requirements
from kettle.classad.closures.operators import Constant
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
from kettle.classad.scope import MAGIC, Scope
from kettle.classad.selection import as_stored, is_bare, member, written
from kettle.classad.values import ERROR, List, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kettle.classad.cost import Code
    from kettle.classad.functions.registry import Strict


def compiled(expression: Node) -> Code:
    """The closure that evaluates `expression`; it relies on there being room for its height."""
    return _compile(expression, 0)


def _compile(node: Node, above: int) -> Code:
    return _COMPILE[type(node)](node, above)


def _literal(node: Literal, _: int) -> Code:
    return Constant(node.value)


def _rel_time_literal(node: RelTimeLiteral, _: int) -> Code:
    return Constant(node.seconds)


def _parentheses(node: Parentheses, above: int) -> Code:
    return _compile(node.inner, above + 1)


def _unary(node: Unary, above: int) -> Code:
    return operators.unary(node.op, _compile(node.operand, above + 1))


def _binary(node: Binary, above: int) -> Code:
    at_large = operators.binary(node.op, _compile(node.left, above + 1), _compile(node.right, above + 1))
    return requirements.comparison(node.op, node.left, node.right, at_large)


def _conditional(node: Conditional, above: int) -> Code:
    return operators.conditional(
        _compile(node.condition, above + 1),
        _compile(node.then, above + 1),
        _compile(node.otherwise, above + 1),
        is_choice=False,
    )


def _elvis(node: Elvis, above: int) -> Code:
    return operators.elvis(_compile(node.preferred, above + 1), _compile(node.fallback, above + 1))


def _logical(node: Logical, above: int) -> Code:
    """What stands to the left is of the same chain, also in parentheses."""
    clauses: list[Code] = []
    first: Node = node
    level = above
    while isinstance(first, Parentheses) or (isinstance(first, Logical) and first.op == node.op):
        level += 1
        if isinstance(first, Parentheses):
            first = first.inner
        else:
            clauses.append(_compile(first.right, level))
            first = first.left
    clauses.append(_compile(first, level))
    return operators.chain(tuple(reversed(clauses)), decisive=node.op == "||")


def _reference(node: Reference, above: int) -> Code:
    base, key, levels = node.base, node.key, above + 1
    if node.absolute:
        return references.found(key, references.in_root(key), levels)
    if base is None:
        return (references.magic if key in MAGIC | OTHER else references.bare)(key, levels)
    side = base.key if is_bare(base) else None
    find = references.in_base(side, _compile(base, levels), key, above)
    if side in OTHER:
        return references.of_target(key, find, levels)
    return references.of_own(key, find, levels) if side in OWN else references.found(key, find, levels)


def _subscript(node: Subscript, above: int) -> Code:
    base, index, levels = _compile(node.base, above + 1), _compile(node.index, above + 1), above + 1

    def code(scope: Scope) -> Value:
        state = scope.state
        container, at = base(scope), index(scope)
        item = member(container, at)
        if not isinstance(item, Node):
            return item
        if isinstance(container, ClassAd):
            return references.entered(item, str(at).lower(), state.scope_of(container), levels + 1)
        depth = state.depth
        state.depth -= levels
        try:
            value = references.run(item, written(container, scope))
        except BudgetExceeded:
            raise
        except EvaluationFailed:
            value = ERROR
        state.depth = depth
        return value

    return code


def _call(node: Call, above: int) -> Code:
    function = FUNCTIONS.get(node.key)
    if function is None or not function.accepts(len(node.arguments)):
        return Constant(ERROR)
    levels = above + 1
    if function.choice:
        condition, then, otherwise = (_compile(argument, levels) for argument in node.arguments)
        return operators.conditional(condition, then, otherwise, is_choice=True)
    if function.strict is not None:
        arguments = [_compile(argument, levels) for argument in node.arguments]
        return _strict_call(function.strict, arguments, levels)
    lazy = function.lazy
    assert lazy is not None

    def code(scope: Scope) -> Value:
        state = scope.state
        state.depth -= levels
        value = lazy(node.arguments, scope)
        state.depth += levels
        return value

    return code


def _strict_call(function: Strict, arguments: list[Code], levels: int) -> Code:
    """One and two arguments, which most functions have, need no loop."""
    if len(arguments) == 1:
        (only,) = arguments

        def of_one(scope: Scope) -> Value:
            values = [only(scope)]
            state = scope.state
            state.depth -= levels
            value = function(values, scope)
            state.depth += levels
            return value

        return of_one
    if len(arguments) == 2:
        first, second = arguments

        def of_two(scope: Scope) -> Value:
            values = [first(scope), second(scope)]
            state = scope.state
            state.depth -= levels
            value = function(values, scope)
            state.depth += levels
            return value

        return of_two

    def of_many(scope: Scope) -> Value:
        values: list[Value] = []
        for argument in arguments:
            values.append(argument(scope))  # noqa: PERF401 - a comprehension costs a frame
        state = scope.state
        state.depth -= levels
        value = function(values, scope)
        state.depth += levels
        return value

    return of_many


def _list(node: ListLiteral, _: int) -> Code:
    items = as_stored(node)
    return lambda scope: List(items, scope)


def _ad(node: AdLiteral, _: int) -> Code:
    return lambda scope: scope.state.nested(node, scope.lexical)


_COMPILE: Final[Mapping[type[Node], Callable[[Any, int], Code]]] = {
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
