"""Functions that look at an expression instead of its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import OTHER, ClassAd, as_node
from kettle.classad.errors import EvaluationFailed
from kettle.classad.functions.pcre import TooCostly, compile_pattern
from kettle.classad.functions.registry import Function, lazy
from kettle.classad.nodes import Node, Reference
from kettle.classad.printing import unparse, unparse_indented
from kettle.classad.reference_analysis import children, trimmed
from kettle.classad.scope import MAGIC, Scope
from kettle.classad.values import ERROR, UNDEFINED, List, Stored, Value, octets
from kettle.classad.weight import steps_to_write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def dereferenced(name: Reference, scope: Scope) -> tuple[Node | None, Scope]:
    """The expression behind a name, None if there is none, and the scope in which the search ended."""
    start = scope
    if name.base is not None:
        base = scope.evaluate(name.base)
        if isinstance(base, List):
            return as_node(scope.evaluate(name)), scope
        if not isinstance(base, ClassAd):
            return None, scope
        start = scope.state.scope_of(base)
    elif name.absolute:
        root = scope.state.root
        start = _nowhere(scope) if root is None else scope.state.scope_of(root)
    selected = name.base is not None or name.absolute
    here = start.ad.find(name.key)
    if here is None and name.key in MAGIC | OTHER:
        magic, _ = start.look_up(name.key, selected=selected)
        here = None if magic is UNDEFINED else magic
    found = (here, start.ad) if here is not None else start.find_beyond(name.key, selected=selected)
    if found is None:
        return None, scope if scope.state.root is not None else _nowhere(scope)
    stored, ad = found
    return as_node(stored), scope.state.scope_of(ad)


def _nowhere(scope: Scope) -> Scope:
    """Where a search ends that finds nothing in a match: outside of both ads."""
    return Scope(ClassAd(), ClassAd(), scope.state)


def _unparse(arguments: Sequence[Node], scope: Scope) -> Value:
    """
    An attribute of the current ad; its name is the whole text of the reference, as HTCondor looks it up.
    """
    name = arguments[0]
    if not isinstance(name, Reference):
        return ERROR
    stored = scope.ad.find(unparse(name).lower())
    if stored is None:
        return ""
    state = scope.state
    state.spend(steps_to_write(stored, state.steps + 1))
    text = unparse_indented(as_node(stored))
    state.charge(text)
    return text


def _unresolved(arguments: Sequence[Node], scope: Scope) -> Value:
    if not isinstance(arguments[0], Reference):
        return ERROR
    expression, within = dereferenced(arguments[0], scope)
    if expression is None:
        return UNDEFINED
    wanted = within.evaluate(arguments[1]) if len(arguments) > 1 else None
    if len(arguments) > 1 and not isinstance(wanted, str):
        raise EvaluationFailed("what unresolved() looks for is no string")
    open_names: dict[str, str] = {}
    complete = _collect(expression, within, open_names, set())
    names = [trimmed(open_names[key]) for key in sorted(open_names)] if complete else []
    if not isinstance(wanted, str):
        return ",".join(names)
    pattern = compile_pattern(wanted, "i")
    if pattern is None:
        return ERROR
    try:
        return any(pattern.finds_something(octets(name), spend=scope.state.spend) for name in names)
    except TooCostly:
        return ERROR


def _collect(node: Node, scope: Scope, names: dict[str, str], active: set[tuple[int, str]]) -> bool:
    """Add the names that are not defined; False if they cannot be determined, as in a circle."""
    scope.state.spend(1)
    if not isinstance(node, Reference):
        return all(_collect(child, scope, names, active) for child in children(node))
    start = scope
    if node.base is not None:
        base = scope.evaluate(node.base)
        if base is UNDEFINED:
            name = unparse(node)
            names.setdefault(name.lower(), name)
            return True
        if not isinstance(base, ClassAd):
            return False
        start = scope.state.scope_of(base)
    elif node.absolute:
        root = scope.state.root
        start = _nowhere(scope) if root is None else scope.state.scope_of(root)
    stored, ad = start.look_up(node.key, selected=True)
    if stored is UNDEFINED and ad.find(node.key) is None:
        names.setdefault(node.key, node.name)
        return True
    return _collect_behind(stored, scope.state.scope_of(ad), node.key, names, active)


def _collect_behind(
    stored: Stored, scope: Scope, key: str, names: dict[str, str], active: set[tuple[int, str]]
) -> bool:
    """Collect the names of the expression that a name refers to."""
    if not isinstance(stored, Node):
        return True
    mark = (id(scope.ad), key)
    if mark in active:
        return False
    active.add(mark)
    complete = _collect(stored, scope, names, active)
    active.discard(mark)
    return complete


FAMILY: Final[Mapping[str, Function]] = {
    "unparse": lazy(_unparse, 1),
    "unresolved": lazy(_unresolved, 1, 2),
}
