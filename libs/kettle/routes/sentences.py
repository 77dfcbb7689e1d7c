"""What was decided about a job, in lines."""

from collections.abc import Iterable, Iterator, Mapping

from kettle.classad import unparse
from kettle.classad.ad import as_node
from kettle_wire.ads.types import Expr, Scalar
from kettle_wire.routes import RouteRefusal, RouteStep


def outcome_sentences(
    changed: Mapping[str, Scalar], removed: Iterable[str], refusals: Iterable[RouteRefusal]
) -> Iterator[str]:
    """What the routed job has that its own ad has not, and which routes did not take it."""
    for name, value in sorted(changed.items()):
        yield f"{name} = {text_of(value)}"
    for name in sorted(removed):
        yield f"{name} is taken away"
    for refusal in refusals:
        yield f"not {refusal.route}: {refusal.sentence}" if refusal.route else refusal.sentence


def step_sentence(step: RouteStep) -> str:
    """What a statement changed."""
    where = f"{step.by}, line {step.line}: {step.name}"
    if step.after is None:
        return f"{where} is taken away (it was {text_of(step.before)})"
    if step.name.startswith("$("):
        return f"{where} is {step.after}"
    before = "" if step.before is None else f" (it was {text_of(step.before)})"
    return f"{where} = {text_of(step.after)}{before}"


def text_of(value: Scalar | None) -> str:
    """A value of an ad, as an expression is written."""
    if value is None:
        return "undefined"
    return value.expr if isinstance(value, Expr) else unparse(as_node(value))
