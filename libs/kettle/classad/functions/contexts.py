"""One expression evaluated in many ads: how a job chooses among a slot's resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.functions.reflection import dereferenced
from kettle.classad.functions.registry import Function, attempted, lazy
from kettle.classad.nodes import ListLiteral, Node, Reference
from kettle.classad.scope import Scope
from kettle.classad.values import ERROR, UNDEFINED, Exceptional, List, Value, is_true

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def _in_each(arguments: Sequence[Node], scope: Scope) -> Iterator[Value] | Exceptional:
    """
    The values of the first argument in each ad of the second.

    A reference that the current scope resolves stands for the expression behind it.
    The list is then looked for where that look-up ended: HTCondor's own evaluator works this way,
    and a match must come out the same there and here.
    """
    expression, values = arguments
    lexical = scope.lexical
    if isinstance(expression, Reference):
        resolved, scope = dereferenced(expression, scope)
        if resolved is not None:
            expression, lexical = resolved, scope.lexical
    ads = List(values.items, scope) if isinstance(values, ListLiteral) else attempted(values, scope)
    if not isinstance(ads, List):
        return UNDEFINED if ads is UNDEFINED else ERROR
    return (_within(expression, ad, lexical, scope) for ad in scope.members(ads))


def _within(expression: Node, ad: Value, lexical: ClassAd, scope: Scope) -> Value:
    """The ad's own side of the match is MY, the other side its TARGET, also for what the ad leaves open."""
    if not isinstance(ad, ClassAd):
        return UNDEFINED if ad is UNDEFINED else ERROR
    inside = scope.state.scope_of(ad)
    return attempted(expression, Scope(ad, lexical, scope.state, inside.target()))


def _eval_in_each_context(arguments: Sequence[Node], scope: Scope) -> Value:
    values = _in_each(arguments, scope)
    return values if isinstance(values, Exceptional) else List(tuple(values))


def _count_matches(arguments: Sequence[Node], scope: Scope) -> Value:
    values = _in_each(arguments, scope)
    if isinstance(values, Exceptional):
        return 0 if values is UNDEFINED else ERROR
    return sum(is_true(value) for value in values)


FAMILY: Final[Mapping[str, Function]] = {
    "evalineachcontext": lazy(_eval_in_each_context, 2),
    "countmatches": lazy(_count_matches, 2),
}
