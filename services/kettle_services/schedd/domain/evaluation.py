"""
Evaluates expressions of users: an expression that cannot be evaluated is not true, and never causes a failure.
"""

from typing import Final

from kettle.classad import (
    FOREIGN_STEPS,
    ClassAd,
    Context,
    EvaluationFailed,
    Node,
    evaluate,
    evaluate_attribute,
    is_true,
)
from kettle_wire.ads import Ad

_LONGEST_S: Final = 1e9


def at(now: float) -> Context:
    """
    What expressions see at an instant (seconds since 1970), and how much of the schedd's time one may take.
    """
    return Context(now=lambda: int(now), max_steps=FOREIGN_STEPS)


def holds(expression: Node, ad: ClassAd, context: Context, target: ClassAd | None = None) -> bool:
    """Whether an expression is true of an ad, and of another that it calls TARGET."""
    try:
        return is_true(evaluate(expression, my=ad, target=target, context=context))
    except EvaluationFailed:
        return False


def seconds(ad: Ad, name: str, now: float) -> float:
    """A number of seconds that a job's ad says, which may be an expression; 0 for anything else."""
    if name not in ad:
        return 0.0
    try:
        value = evaluate_attribute(name, ClassAd.from_wire(ad), context=at(now))
    except EvaluationFailed:
        return 0.0
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LONGEST_S
    return float(value) if number else 0.0  # type: ignore[arg-type]  # it is a number
