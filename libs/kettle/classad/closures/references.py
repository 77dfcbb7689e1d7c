"""
Names: how they are found, and how the attribute behind one is entered.

An attribute takes two frames of Python's stack, its reference's and `entered`: four hundred levels fit.
What finds an attribute has returned before the attribute is entered.

The compiler makes closures of what is here, and an attribute that is entered for the first time is compiled:
so the package names its compiler here (`COMPILER`), and this module imports none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from kettle.classad.ad import ClassAd
from kettle.classad.cost import EXTENTS, Code, extent_of
from kettle.classad.errors import BudgetExceeded, StepsExceeded
from kettle.classad.interpreter import interpreted
from kettle.classad.nodes import Node
from kettle.classad.selection import selected
from kettle.classad.values import UNDEFINED

if TYPE_CHECKING:
    from kettle.classad.cost import Extent
    from kettle.classad.scope import Scope
    from kettle.classad.values import Stored, Value

Find: TypeAlias = "Callable[[Scope], tuple[Stored, Scope]]"
"""What a name stands for, and the scope in which that is to be evaluated."""

_PLAIN: Final = (int, str, float)
"""What an ad stores as it is, by frequency: no text to be parsed, no expression, not nothing."""


class Compiler:
    """Makes the closure of an expression that is entered for the first time."""

    __slots__ = ("compile",)

    compile: Callable[[Node], Code]


COMPILER: Final = Compiler()
"""The one of this package, which is named when the package is imported."""


def run(node: Node, scope: Scope) -> Value:
    """The value of an expression, charged to the evaluation."""
    extent = EXTENTS.get(id(node)) or extent_of(node)
    state = scope.state
    state.steps -= extent.size
    if state.steps < 0 or state.depth < extent.height:
        return _cramped(node, scope)
    return (extent.code or _compiled(extent))(scope)


def entered(stored: Stored, key: str, home: Scope, levels: int) -> Value:
    """The value of what stands behind `key` in the ad of `home`, `levels` further down."""
    extent = EXTENTS.get(id(stored))
    if extent is None:
        if not isinstance(stored, Node):
            return stored
        extent = extent_of(stored)
    active = home.active
    if active is None:
        active = home.active = {key}
    elif key in active:
        return UNDEFINED
    else:
        active.add(key)
    state = home.state
    state.depth -= levels
    state.steps -= extent.size
    try:
        if state.steps < 0 or state.depth < extent.height:
            value = _cramped(extent.node, home)
        else:
            value = (extent.code or _compiled(extent))(home)
    finally:
        active.discard(key)
    state.depth += levels
    return value


def _compiled(extent: Extent) -> Code:
    """Now that there is room for it: compiling goes down as many levels as evaluating."""
    extent.code = COMPILER.compile(extent.node)
    return extent.code


def _cramped(node: Node, scope: Scope) -> Value:
    if scope.state.steps < 0:
        raise StepsExceeded
    if scope.state.depth < 0:
        raise BudgetExceeded
    return interpreted(node, scope)


def bare(key: str, levels: int) -> Code:
    """``name``: mostly the ad's own; in a START mostly the other ad's."""

    def code(scope: Scope) -> Value:
        ad = scope.ad
        stored = ad.stored.get(key)
        if stored is None and ad.chained is None and scope.theirs is not None:
            stored = scope.theirs.get(key)
        if isinstance(stored, _PLAIN):
            return stored
        found, ad = scope.look_up(key)
        return entered(found, key, scope.state.scope_of(ad), levels)

    return code


def magic(key: str, levels: int) -> Code:
    """``CurrentTime``, ``MY`` and the like: names that mean something without being anybody's attribute."""

    def code(scope: Scope) -> Value:
        stored, ad = scope.look_up(key)
        return entered(stored, key, scope.state.scope_of(ad), levels)

    return code


def of_target(key: str, find: Find, levels: int) -> Code:
    """``TARGET.name``."""

    def code(scope: Scope) -> Value:
        theirs = scope.theirs
        if theirs is not None:
            plain = theirs.get(key)
            if isinstance(plain, _PLAIN):
                return plain
        stored, home = find(scope)
        return entered(stored, key, home, levels)

    return code


def of_own(key: str, find: Find, levels: int) -> Code:
    """``MY.name``."""

    def code(scope: Scope) -> Value:
        own = scope.own
        if own is not None:
            plain = own.get(key)
            if isinstance(plain, _PLAIN):
                return plain
        stored, home = find(scope)
        return entered(stored, key, home, levels)

    return code


def found(key: str, find: Find, levels: int) -> Code:
    """Any other ``base.name``, and ``.name``."""

    def code(scope: Scope) -> Value:
        stored, home = find(scope)
        return entered(stored, key, home, levels)

    return code


def in_root(key: str) -> Find:
    """``.name``."""

    def find(scope: Scope) -> tuple[Stored, Scope]:
        state = scope.state
        stored, ad = state.outermost(key)
        return stored, state.scope_of(ad)

    return find


def in_base(side: str | None, base: Code, key: str, above: int) -> Find:
    """``base.name``; `side` is the name that a bare base is, `above` the levels above the reference."""

    def find(scope: Scope) -> tuple[Stored, Scope]:
        state = scope.state
        within = None if side is None else scope.side(side)
        if within is None:
            value = base(scope)
            if not isinstance(value, ClassAd):
                state.depth -= above
                value = selected(value, key, scope)
                state.depth += above
                return value, scope
            within = state.scope_of(value)
        stored, ad = within.look_up(key, selected=True)
        return stored, state.scope_of(ad)

    return find
