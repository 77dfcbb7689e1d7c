"""
Where an expression is evaluated: the ad around it, the other ad of a match, and what one evaluation shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from kettle.classad.ad import ClassAd
from kettle.classad.context import NOTHING, Context
from kettle.classad.errors import EvaluationFailed
from kettle.classad.nodes import AdLiteral, Node
from kettle.classad.values import UNDEFINED, Exceptional, List, Stored, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAGIC: Final = frozenset({"my", "self", "parent", "root", "toplevel", "currenttime"})
_OWN: Final = frozenset({"my", "self"})
_OTHER: Final = frozenset({"target", "other"})

Evaluate: TypeAlias = "Callable[[Node, Scope], Value]"


class Evaluation:
    """
    What everything within one top-level evaluation shares.

    It counts down `depth` and `steps`, remembers which attributes are being evaluated so that a circle
    ends, and gives each nested ad one identity.
    It sees one instant: two readings of the clock in one expression agree.
    """

    __slots__ = ("_active", "_nested", "_now", "_scopes", "context", "depth", "evaluate", "root", "steps")

    def __init__(self, evaluate: Evaluate, my: ClassAd, target: ClassAd | None, context: Context) -> None:
        self.evaluate = evaluate
        self.context = context
        self.depth = context.max_depth
        self.steps = context.max_steps
        self.root: ClassAd | None = None
        self._active: set[tuple[int, str]] = set()
        self._nested: dict[tuple[int, int], tuple[AdLiteral, ClassAd]] = {}
        self._now: Value | None = None
        mine = Scope(my, my, self)
        self._scopes: dict[int, Scope] = {id(my): mine}
        if target is None:
            self.root = my
            while self.root.parent is not None:
                self.root = self.root.parent
        else:
            theirs = self._scopes.setdefault(id(target), Scope(target, target, self))
            mine.other, theirs.other = theirs, mine

    def scope_of(self, ad: ClassAd) -> Scope:
        """The scope of expressions written in `ad`."""
        scope = self._scopes.get(id(ad))
        if scope is None:
            scope = self._scopes[id(ad)] = Scope(ad, ad, self)
        return scope

    def nested(self, node: AdLiteral, parent: ClassAd) -> ClassAd:
        """The ad that `node`, written in `parent`, stands for: the same one each time."""
        key = (id(node), id(parent))
        known = self._nested.get(key)
        if known is None:
            known = self._nested[key] = (node, ClassAd.from_literal(node, parent))
        return known[1]

    def now(self) -> int | Exceptional:
        """The instant of this evaluation, undefined without a clock."""
        if self._now is None:
            self._now = self.context.now() if self.context.now is not None else UNDEFINED
        assert isinstance(self._now, int | Exceptional)
        return self._now

    def utc_offset(self, instant: int) -> int:
        """The local zone at `instant`, in seconds east of UTC."""
        return self.context.utc_offset(instant) if self.context.utc_offset is not None else 0

    def descend(self) -> None:
        """Go one level deeper, or give up; the way back is ``depth += 1``."""
        self.depth -= 1
        self.steps -= 1
        if self.depth < 0 or self.steps < 0:
            limit = "deeply" if self.depth < 0 else "long"
            raise EvaluationFailed(f"the expression goes on too {limit}")

    def spend(self, steps: int) -> None:
        """Count work of a function that is more than one step, or give up."""
        self.steps -= steps
        if self.steps < 0:
            raise EvaluationFailed("the expression goes on too long")

    def enter(self, ad: ClassAd, key: str) -> tuple[int, str] | None:
        """
        Begin to evaluate what stands behind `key` in `ad`; None if that is being done further up.

        An attribute that refers to itself is undefined there.
        """
        mark = (id(ad), key)
        if mark in self._active:
            return None
        self.descend()
        self._active.add(mark)
        return mark

    def leave(self, mark: tuple[int, str]) -> None:
        """The attribute that was entered has its value."""
        self._active.discard(mark)
        self.depth += 1

    def attribute(self, stored: Stored, key: str, ad: ClassAd) -> Value:
        """The value of what stands behind `key` in `ad`, evaluated there."""
        if not isinstance(stored, Node):
            return stored
        mark = self.enter(ad, key)
        if mark is None:
            return UNDEFINED
        value = self.evaluate(stored, self.scope_of(ad))
        self.leave(mark)
        return value


class Scope:
    """
    The ad in which names are looked up, and the ad in which the expression was written.

    They differ only for members of a list that a function walks: those see the function's ad,
    but what they themselves write (`[...]`, `{...}`) belongs where the list was written.
    `other` is the other ad of the match; only the two matched ads have one.
    """

    __slots__ = ("ad", "lexical", "other", "state")

    def __init__(self, ad: ClassAd, lexical: ClassAd, state: Evaluation, other: Scope | None = None) -> None:
        self.ad = ad
        self.lexical = lexical
        self.state = state
        self.other = other

    def look_up(self, key: str, *, selected: bool = False) -> tuple[Stored, ClassAd]:
        """
        What a name stands for: here, in the chained ad, by magic, in the ads around, in the other ad of the match.

        With it comes the ad in which it is to be evaluated.
        `selected` is for ``ad.name``, which does not look into the other ad.
        """
        ad = self.ad
        stored = ad.find(key)
        if stored is not None:
            return stored, ad
        if key in _MAGIC:
            return self._magic(key), ad
        found = self.find_beyond(key, selected=selected)
        if found is not None:
            return found
        if key in _OTHER and not selected:
            other = self.target()
            return UNDEFINED if other is None else other.ad, ad
        return UNDEFINED, ad

    def find_beyond(self, key: str, *, selected: bool) -> tuple[Stored, ClassAd] | None:
        """What stands behind a name outside of this ad, and in which ad."""
        found = _around(self.ad, key)
        if found is None and self.other is not None and not selected:
            other = self.other.ad
            stored = other.find(key)
            return (stored, other) if stored is not None else _around(other, key)
        return found

    def side(self, key: str) -> Scope | None:
        """
        The scope that a bare ``MY`` or ``TARGET`` stands for; None if that takes a proper look-up.

        Nearly every reference in a Requirements starts with one of the two.
        """
        ad = self.ad
        if key in _OTHER:
            other = self.other
            return other if other is not None and ad.parent is None and ad.find(key) is None else None
        return self.state.scope_of(ad) if key in _OWN and ad.find(key) is None else None

    def target(self) -> Scope | None:
        """The other ad of the match, as seen from here or from the ads around."""
        ad: ClassAd | None = self.ad
        while ad is not None:
            other = self.state.scope_of(ad).other
            if other is not None:
                return other
            ad = ad.parent
        return None

    def _magic(self, key: str) -> Value:
        if key == "currenttime":
            return self.state.now()
        if key in _OWN:
            return self.ad
        ad = self.ad.parent if key == "parent" else self.state.root
        return UNDEFINED if ad is None else ad

    def evaluate(self, node: Node) -> Value:
        """The value of `node` here."""
        return self.state.evaluate(node, self)

    def members(self, values: List) -> Iterator[Value]:
        """The members of a list as a function called here sees them: evaluated in the scope of the call."""
        written = values.scope
        lexical = written.lexical if isinstance(written, Scope) else self.ad
        inside = Scope(self.ad, lexical, self.state, self.other)
        for item in values.items:
            yield self.state.evaluate(item, inside) if isinstance(item, Node) else item

    def member(self, item: Node) -> Value:
        """
        The value of a list's member, for whoever holds the list after the evaluation is over.

        A new evaluation, with the budget of one; the ads of the match are the same.
        """
        other = self.target()
        state = Evaluation(self.state.evaluate, self.ad, other.ad if other else None, self.state.context)
        return state.evaluate(item, state.scope_of(self.ad))


def _around(ad: ClassAd, key: str) -> tuple[Stored, ClassAd] | None:
    """What stands behind a name in the ads around `ad`, innermost first, and in which."""
    around = ad.parent
    while around is not None:
        stored = around.find(key)
        if stored is not None:
            return stored, around
        around = around.parent
    return None


def new_scope(
    evaluate: Evaluate, my: ClassAd | None, target: ClassAd | None, context: Context = NOTHING
) -> Scope:
    """The scope in which a new evaluation starts."""
    my = ClassAd() if my is None else my
    return Evaluation(evaluate, my, target, context).scope_of(my)
