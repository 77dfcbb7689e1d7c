"""Whether two ads suit each other, and how well."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kettle.classad.closures import run
from kettle.classad.context import NOTHING, Context
from kettle.classad.errors import EvaluationFailed
from kettle.classad.evaluation import new_scope
from kettle.classad.evaluator import evaluate_attribute, value_of_attribute
from kettle.classad.values import is_true

if TYPE_CHECKING:
    from kettle.classad.ad import ClassAd
    from kettle.classad.scope import Scope


def one_way(my: ClassAd, target: ClassAd, context: Context = NOTHING) -> bool:
    """Whether `target` meets the Requirements of `my`; an ad without Requirements accepts nothing."""
    scope = new_scope(run, my, target, context)
    accepted = _accepts(scope)
    scope.state.close()
    return accepted


def matches(left: ClassAd, right: ClassAd, context: Context = NOTHING) -> bool:
    """Whether each of the two meets the other's Requirements."""
    scope = new_scope(run, right, left, context)
    state = scope.state
    accepted = _accepts(scope)
    if accepted:
        state.renew()
        accepted = _accepts(state.scope_of(left))
    state.close()
    return accepted


def _accepts(scope: Scope) -> bool:
    try:
        value = value_of_attribute("requirements", scope)
    except EvaluationFailed:
        return False
    return value is True or is_true(value)


def rank(my: ClassAd, target: ClassAd, context: Context = NOTHING) -> float:
    """How much `my` prefers `target`: its Rank as a number, 0.0 for anything but a number."""
    try:
        value = evaluate_attribute("Rank", my, target, context)
    except EvaluationFailed:
        return 0.0
    number = float(value) if isinstance(value, int | float) else 0.0
    return 0.0 if math.isnan(number) else number  # what has no order must not decide about one
