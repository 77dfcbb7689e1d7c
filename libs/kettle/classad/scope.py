"""Where an expression is evaluated: the ad around it, and the other ad of a match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from kettle.classad.ad import OTHER, OWN, ClassAd
from kettle.classad.match_ad import IN_MATCH
from kettle.classad.nodes import Node
from kettle.classad.values import UNDEFINED, List, Stored, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kettle.classad.evaluation import Evaluation
    from kettle_wire.ads.types import Expr

MAGIC: Final = OWN | {"parent", "root", "toplevel", "currenttime"}

CALLBACK_LEVELS: Final = 3
"""
The levels, beside the call's own, of what a function evaluates itself: an argument, a member, a text.

A function puts up to seven frames of Python's stack between; four hundred levels have to fit.
"""


class Scope(msgspec.Struct, eq=False):
    """
    The ad in which names are looked up, and the ad in which the expression was written.

    They differ only for members of a list that a function walks: those see the function's ad,
    but what they themselves write (`[...]`, `{...}`) belongs where the list was written.
    Where they are the same, this is the one scope that `scope_of` the ad gives.
    `other` is the other ad of the match; only the two matched ads have one.
    `own` and `theirs` are what the ads behind ``MY`` and ``TARGET`` store, expressions perhaps as text still;
    None if finding it takes a proper look-up.
    `active` are the lower-case names of the ad's attributes that are being evaluated: there a circle ends.
    """

    ad: ClassAd
    lexical: ClassAd
    state: Evaluation
    other: ClassAd | None = None
    own: Mapping[str, Stored | Expr] | None = None
    theirs: Mapping[str, Stored | Expr] | None = None
    active: set[str] | None = None

    def look_up(self, key: str, *, selected: bool = False) -> tuple[Stored, ClassAd]:
        """
        What a name stands for: here, in the chained ad, by magic, in the ads around, in the other ad of the match.

        With it comes the ad in which it is to be evaluated.
        `selected` is for ``ad.name``, which does not look into the other ad; ``MY.TARGET`` is the other ad all the same.
        """
        ad = self.ad
        stored = ad.find(key)
        if stored is not None:
            return stored, ad
        if key in MAGIC:
            return self._magic(key), ad
        found = self.find_beyond(key, selected=selected)
        if found is not None:
            return found
        if key in OTHER:
            other = self.target()
            return UNDEFINED if other is None else other, ad
        if key in IN_MATCH and self.state.target is not None:
            return self._in_match(key)
        return UNDEFINED, ad

    def _in_match(self, key: str) -> tuple[Stored, ClassAd]:
        """What a name stands for around the two sides of a match: ``ad`` is this side."""
        match = self.state.match()
        if key == "ad":
            side = self.ad
            while side.parent is not None:
                side = side.parent
            return (side, side) if side is self.state.my or side is self.state.target else (UNDEFINED, side)
        stored = match.find(key)
        assert stored is not None
        return stored, match

    def find_beyond(self, key: str, *, selected: bool) -> tuple[Stored, ClassAd] | None:
        """What stands behind a name outside of this ad, and in which ad."""
        found = outside(self.ad, key)
        if found is None and self.other is not None and not selected:
            stored = self.other.find(key)
            return (stored, self.other) if stored is not None else outside(self.other, key)
        return found

    def side(self, key: str) -> Scope | None:
        """
        The scope that a bare ``MY`` or ``TARGET`` stands for; None if that takes a proper look-up.

        Nearly every reference in a Requirements starts with one of the two.
        """
        ad = self.ad
        if key in OWN:
            return self.state.scope_of(ad) if ad.find(key) is None else None
        if key not in OTHER or self.other is None or ad.parent is not None or ad.find(key) is not None:
            return None
        return self.state.scope_of(self.other)

    def target(self) -> ClassAd | None:
        """The other ad of the match, as seen from here or from the ads around."""
        ad: ClassAd | None = self.ad
        while ad is not None:
            other = self.state.scope_of(ad).other
            if other is not None:
                return other
            ad = ad.parent
        return None

    def activate(self, key: str) -> bool:
        """
        Remember that what stands behind `key` in this ad is being evaluated; not if that is done further up already.

        An attribute that refers to itself is undefined there.
        """
        if self.active is None:
            self.active = {key}
        elif key in self.active:
            return False
        else:
            self.active.add(key)
        return True

    def deactivate(self, key: str) -> None:
        """The attribute has its value, or has none."""
        assert self.active is not None
        self.active.discard(key)

    def attribute(self, stored: Stored, key: str) -> Value:
        """The value of what stands behind `key` in this ad."""
        if not isinstance(stored, Node):
            return stored
        if not self.activate(key):
            return UNDEFINED
        state = self.state
        state.depth -= 1
        try:
            value = state.evaluate(stored, self)
        finally:
            self.deactivate(key)
        state.depth += 1
        return value

    def evaluate(self, node: Node) -> Value:
        """The value of `node` here, on behalf of a function."""
        state = self.state
        state.descend(CALLBACK_LEVELS)
        value = state.evaluate(node, self)
        state.depth += CALLBACK_LEVELS
        return value

    def members(self, values: List) -> Iterator[Value]:
        """The members of a list as a function called here sees them: evaluated in the scope of the call."""
        state = self.state
        state.spend(len(values.items))
        written = values.scope
        lexical = written.lexical if isinstance(written, Scope) else self.ad
        inside = state.scope_of(self.ad) if lexical is self.ad else Scope(self.ad, lexical, state, self.other)
        for item in values.items:
            if isinstance(item, Node):
                state.descend(CALLBACK_LEVELS)
                value = state.evaluate(item, inside)
                state.depth += CALLBACK_LEVELS
            else:
                value = item
            if type(value) is str:
                state.charge(value)
            yield value

    def member(self, item: Node) -> Value:
        """
        The value of a list's member, for code that keeps the list after the evaluation is over.

        A new evaluation, with the budget of one; the ads of the match are the same.
        """
        return self.state.anew(item, self.ad)

    def _magic(self, key: str) -> Value:
        if key == "currenttime":
            return self.state.now()
        if key in OWN:
            return self.ad
        if key == "parent":
            ad = self.state.around(self.ad)
        else:
            root = self.state.root
            ad = self.state.match() if root is None else root
        return UNDEFINED if ad is None else ad


def outside(ad: ClassAd, key: str) -> tuple[Stored, ClassAd] | None:
    """What stands behind a name in the ads around `ad`, innermost first, and in which."""
    around = ad.parent
    while around is not None:
        stored = around.find(key)
        if stored is not None:
            return stored, around
        around = around.parent
    return None
