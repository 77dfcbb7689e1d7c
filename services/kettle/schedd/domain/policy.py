"""Evaluating what people wrote: an expression that cannot be evaluated is not true, and never an accident."""

from kettle.classad import ClassAd, EvaluationFailed, Node, evaluate, is_true, matches


def matches_safely(job: ClassAd, slot: ClassAd) -> bool:
    """
    Whether both sides' Requirements are true.
    """
    try:
        return matches(job, slot)
    except EvaluationFailed:
        return False


def holds(expression: Node, ad: ClassAd) -> bool:
    """
    Whether an expression is true of an ad.
    """
    try:
        return is_true(evaluate(expression, my=ad))
    except EvaluationFailed:
        return False
