"""
Whether two ads suit each other, and how well.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kettle.classad.context import NOTHING, Context
from kettle.classad.errors import EvaluationFailed
from kettle.classad.evaluate import evaluate_attribute
from kettle.classad.values import is_true

if TYPE_CHECKING:
    from kettle.classad.ad import ClassAd


def one_way(my: ClassAd, target: ClassAd, context: Context = NOTHING) -> bool:
    """Whether `target` meets the Requirements of `my`; an ad without Requirements accepts nothing."""
    try:
        return is_true(evaluate_attribute("Requirements", my, target, context))
    except EvaluationFailed:
        return False


def matches(left: ClassAd, right: ClassAd, context: Context = NOTHING) -> bool:
    """Whether each of the two meets the other's Requirements."""
    return one_way(right, left, context) and one_way(left, right, context)


def rank(my: ClassAd, target: ClassAd, context: Context = NOTHING) -> float:
    """How much `my` likes `target`: its Rank as a number, 0.0 for whatever is none."""
    try:
        value = evaluate_attribute("Rank", my, target, context)
    except EvaluationFailed:
        return 0.0
    number = float(value) if isinstance(value, int | float) else 0.0
    return 0.0 if math.isnan(number) else number  # what has no order must not decide about one
