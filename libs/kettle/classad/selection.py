"""
What is taken out of a list or an ad: members by index, attributes by a computed name, names from all members.

Both engines share this; they evaluate what they are given here.
"""

from typing import TypeGuard

from kettle.classad.ad import ClassAd
from kettle.classad.nodes import ListLiteral, Node, Reference, held
from kettle.classad.scope import CALLBACK_LEVELS, Scope
from kettle.classad.values import ERROR, UNDEFINED, Exceptional, List, Stored, Value, low_half


def as_stored(node: ListLiteral) -> tuple[Stored, ...]:
    """The members of a list as its value has them: literals as the values that they are."""
    return tuple(map(held, node.items))


def written(values: Value, scope: Scope) -> Scope:
    """The scope in which a list was written: `scope` if it does not say."""
    return values.scope if isinstance(values, List) and isinstance(values.scope, Scope) else scope


def member(base: Value, index: Value) -> Stored:
    """
    What stands at ``base[index]``, not evaluated: in a list by number, in an ad, and only there, by name.

    HTCondor counts members in 32 bits.
    """
    if isinstance(base, Exceptional) or isinstance(index, Exceptional):
        return ERROR if base is ERROR or index is ERROR else UNDEFINED
    if isinstance(base, List):
        at = low_half(index) if type(index) is int else -1
        return base.items[at] if 0 <= at < len(base.items) else ERROR
    if not isinstance(base, ClassAd) or not isinstance(index, str):
        return ERROR
    stored = base.find(index.lower())
    return UNDEFINED if stored is None else stored


def selected(value: Value, key: str, scope: Scope) -> Value:
    """
    ``value.name``: of a list, the list of what is selected from its members.

    As with functions that walk a list, the members mean what their names mean here, not where the list was written.
    """
    if isinstance(value, Exceptional):
        return value
    state = scope.state
    if isinstance(value, List):
        found: list[Value] = []
        for of in scope.members(value):
            state.descend(CALLBACK_LEVELS)
            found.append(selected(of, key, scope))
            state.depth += CALLBACK_LEVELS
        return List(tuple(found), scope)
    if isinstance(value, ClassAd):
        stored, ad = state.scope_of(value).look_up(key, selected=True)
        return state.scope_of(ad).attribute(stored, key)
    return ERROR


def is_bare(node: Node) -> TypeGuard[Reference]:
    """Whether `node` is a name and nothing else: before a point it may stand for a side of the match."""
    return isinstance(node, Reference) and node.base is None and not node.absolute
