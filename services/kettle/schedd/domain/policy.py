"""Evaluating what people wrote: an expression that cannot be evaluated is not true, and never an accident."""

from kettle.classad import FOREIGN_STEPS, ClassAd, Context, EvaluationFailed, Node, evaluate, is_true


def at(now: float) -> Context:
    """What expressions see at an instant (seconds since 1970), and how much of the schedd's time one may take."""
    return Context(now=lambda: int(now), max_steps=FOREIGN_STEPS)


def holds(expression: Node, ad: ClassAd, context: Context, target: ClassAd | None = None) -> bool:
    """Whether an expression is true of an ad, and of another that it calls TARGET."""
    try:
        return is_true(evaluate(expression, my=ad, target=target, context=context))
    except EvaluationFailed:
        return False
