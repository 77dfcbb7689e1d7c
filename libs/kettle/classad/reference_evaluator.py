"""Evaluation by the interpreter: what tests compare everything else with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kettle.classad.context import NOTHING, Context
from kettle.classad.errors import BudgetExceeded
from kettle.classad.evaluation import new_scope
from kettle.classad.interpreter import entered
from kettle.classad.values import UNDEFINED, Value

if TYPE_CHECKING:
    from kettle.classad.ad import ClassAd
    from kettle.classad.nodes import Node


def interpret(
    expression: Node, my: ClassAd | None = None, target: ClassAd | None = None, context: Context = NOTHING
) -> Value:
    """
    The value of `expression` in the ad `my`, matched against `target` if there is one.

    Raises `EvaluationFailed` where there is not even the value error.
    """
    try:
        return entered(expression, new_scope(entered, my, target, context))
    except RecursionError:
        raise BudgetExceeded from None


def interpret_attribute(
    name: str, my: ClassAd, target: ClassAd | None = None, context: Context = NOTHING
) -> Value:
    """The value of an attribute of `my` (or of its chained ad), undefined if there is none."""
    key = name.lower()
    stored = my.find(key)
    if stored is None:
        return UNDEFINED
    try:
        return new_scope(entered, my, target, context).attribute(stored, key)
    except RecursionError:
        raise BudgetExceeded from None
