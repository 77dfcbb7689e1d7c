"""One expression evaluated in many ads: how a job chooses among a slot's resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd, as_node
from kettle.classad.functions.registry import Function, lazy
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
    if isinstance(expression, Reference):
        resolved, scope = _resolved(expression, scope)
        expression = resolved or expression
    ads = List(values.items, scope) if isinstance(values, ListLiteral) else scope.evaluate(values)
    if not isinstance(ads, List):
        return UNDEFINED if ads is UNDEFINED else ERROR
    return (_within(expression, ad, scope) for ad in scope.members(ads))


def _resolved(name: Reference, scope: Scope) -> tuple[Node | None, Scope]:
    """The expression behind a name, and the scope in which the search ended."""
    start = scope
    if name.base is not None:
        base = scope.evaluate(name.base)
        if not isinstance(base, ClassAd):
            return None, scope
        start = scope.state.scope_of(base)
    here = start.ad.find(name.key)
    found = (
        (here, start.ad) if here is not None else start.find_beyond(name.key, selected=name.base is not None)
    )
    if found is None:
        return None, scope if scope.state.root is not None else Scope(ClassAd(), ClassAd(), scope.state)
    stored, ad = found
    return as_node(stored), scope.state.scope_of(ad)


def _within(expression: Node, ad: Value, scope: Scope) -> Value:
    """The ad's own side of the match is MY, the other side its TARGET, also for what the ad leaves open."""
    if not isinstance(ad, ClassAd):
        return UNDEFINED if ad is UNDEFINED else ERROR
    inside = scope.state.scope_of(ad)
    before, inside.other = inside.other, inside.target()
    value = inside.evaluate(expression)
    inside.other = before
    return value


def _eval_in_each_context(arguments: Sequence[Node], scope: Scope) -> Value:
    values = _in_each(arguments, scope)
    return values if isinstance(values, Exceptional) else List(tuple(values), scope)


def _count_matches(arguments: Sequence[Node], scope: Scope) -> Value:
    values = _in_each(arguments, scope)
    if isinstance(values, Exceptional):
        return 0 if values is UNDEFINED else ERROR
    return sum(is_true(value) for value in values)


FAMILY: Final[Mapping[str, Function]] = {
    "evalineachcontext": lazy(_eval_in_each_context, 2),
    "countmatches": lazy(_count_matches, 2),
}
