"""
The clauses of a condition, and what the names in them stand for: what one looks at when the condition is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad import EvaluationFailed, Node, conjuncts, evaluate, unparse
from kettle.classad.ad import OWN
from kettle.classad.nodes import AdLiteral, Call, Reference
from kettle.classad.reference_analysis import children

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kettle.classad import ClassAd, Context
    from kettle_services.cli.classad.error_origins import Side

_LONGEST: Final = 40
_IN_OTHER_ADS: Final = frozenset({"evalineachcontext", "countmatches"})
"""Functions whose first argument is evaluated in ads of a list, where its names stand for something else."""


def clauses(attribute: str, expression: Node, ad: ClassAd) -> Iterator[tuple[str, Node]]:
    """
    The clauses of an expression that `attribute` of an ad holds, each with the attribute where it is written.

    A clause that only names another expression of the ad stands for the clauses of that.
    """
    entered = {attribute.lower()}
    pending = [(attribute, clause) for clause in reversed(conjuncts(expression))]
    while pending:
        written_in, clause = pending.pop()
        key = _own_name(clause)
        if key is None or key in entered or not isinstance(ad.find(key), Node):
            yield written_in, clause
            continue
        entered.add(key)
        name = ad.spelling(key)
        pending.extend((name, inner) for inner in reversed(conjuncts(ad[key])))


def _own_name(clause: Node) -> str | None:
    if not isinstance(clause, Reference) or clause.absolute:
        return None
    base = clause.base
    if base is None or (isinstance(base, Reference) and base.base is None and base.key in OWN):
        return clause.key
    return None


def operands(clause: Node, my: Side, target: Side | None, context: Context) -> dict[str, str]:
    """The names in a clause as they are written, from left to right, each with the text of its value."""
    found: dict[str, str] = {}
    for reference in _references(clause):
        text = unparse(reference)
        if text not in found:
            found[text] = _value(reference, my, target, context)
    return found


def _value(reference: Node, my: Side, target: Side | None, context: Context) -> str:
    try:
        return unparse(evaluate(reference, my.ad, None if target is None else target.ad, context))
    except EvaluationFailed:
        return "given up"


def _references(clause: Node) -> Iterator[Node]:
    """Those whose names mean the same as in the clause, outermost ones only."""
    pending = [clause]
    while pending:
        node = pending.pop()
        if isinstance(node, Reference):
            yield node
        elif not isinstance(node, AdLiteral):
            within = list(children(node))
            pending.extend(reversed(within[isinstance(node, Call) and node.key in _IN_OTHER_ADS :]))


def annotated(text: str, values: Mapping[str, str], room: int = 0) -> str:
    """
    A clause, and behind it what the names in it stand for; cut to `room` if that is not 0, but only behind the clause.
    """
    told = ", ".join(f"{name} is {_short(value)}" for name, value in values.items())
    line = f"{text}   ({told})" if told else text
    if not room or len(line) <= room:
        return line
    return f"{line[: max(room - 1, len(text) + 1)].rstrip()}…"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
