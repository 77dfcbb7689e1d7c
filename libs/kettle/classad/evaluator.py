"""
Evaluation of single ads: what callers use.

The closures do the work; `kettle.classad.reference_evaluator` is the reference that they agree with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kettle.classad.closures import entered, run
from kettle.classad.context import NOTHING, Context
from kettle.classad.errors import BUDGETS, BudgetExceeded
from kettle.classad.evaluation import new_scope
from kettle.classad.values import UNDEFINED, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kettle.classad.ad import ClassAd
    from kettle.classad.nodes import Node
    from kettle.classad.scope import Scope


def evaluate(
    expression: Node, my: ClassAd | None = None, target: ClassAd | None = None, context: Context = NOTHING
) -> Value:
    """
    The value of `expression` in the ad `my`, matched against `target` if there is one.

    Raises `EvaluationFailed` where there is not even the value error.
    """
    scope = new_scope(run, my, target, context)
    try:
        value = run(expression, scope)
    except RecursionError:
        BUDGETS.name(expression)
        raise BudgetExceeded from None
    except BudgetExceeded:
        BUDGETS.name(expression)
        raise
    scope.state.close()
    return value


def evaluate_attribute(
    name: str, my: ClassAd, target: ClassAd | None = None, context: Context = NOTHING
) -> Value:
    """The value of an attribute of `my` (or of its chained ad), undefined if there is none."""
    scope = new_scope(run, my, target, context)
    try:
        value = value_of_attribute(name.lower(), scope)
    except BudgetExceeded:
        BUDGETS.name(my.get(name, name))
        raise
    scope.state.close()
    return value


def value_of_attribute(key: str, scope: Scope) -> Value:
    """The value of an attribute of the ad of `scope`, by its lower-case name, undefined if there is none."""
    stored = scope.ad.find(key)
    if stored is None:
        return UNDEFINED
    try:
        return entered(stored, key, scope, 1)
    except RecursionError:
        raise BudgetExceeded from None


def evaluate_within(
    expression: Node,
    my: ClassAd,
    target: ClassAd | None = None,
    context: Context = NOTHING,
    path: Sequence[tuple[ClassAd, str]] = (),
    depth: int = 0,
    steps: int = 0,
    *,
    exact: bool = True,
    of_target: bool = False,
) -> tuple[Value, int]:
    """
    The value of `expression` in `my`, for someone who evaluates by other means and got as far as here.

    `path` are the attributes that are being evaluated further up, each an ad and a lower-case name: there circles
    end.  `depth` and `steps` are what has been used; with the value comes how many steps that makes now.
    `of_target`: the evaluation began in the other ad, and has come to this one through it.
    If it is not `exact` but the most that may have been used, `EvaluationFailed` is raised also where a function made
    a value of a budget that ran out.
    """
    scope = new_scope(run, my, target, context)
    state = scope.state
    if of_target and target is not None:
        state.my, state.target = target, my
        state.scopes.clear()
        scope = state.scope_of(my)
    for ad, key in path:
        state.scope_of(ad).activate(key)
    state.descend(depth)
    state.spend(steps)
    try:
        value = run(expression, scope)
    except RecursionError:
        raise BudgetExceeded from None
    state.close()
    if state.gave_up and not exact:
        raise BudgetExceeded
    return value, context.max_steps - state.steps
