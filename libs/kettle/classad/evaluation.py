"""
What everything within one top-level evaluation shares.

A match begins an evaluation for each pair of ads that it looks at, so nothing is built here before it is needed.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from kettle.classad.ad import ClassAd
from kettle.classad.context import NOTHING, Context
from kettle.classad.errors import BudgetExceeded, StepsExceeded
from kettle.classad.match_ad import LEFT_CONTEXT, RIGHT_CONTEXT, match_ad
from kettle.classad.nodes import AdLiteral, Node
from kettle.classad.scope import Scope
from kettle.classad.values import UNDEFINED, Exceptional, Stored, Value

Evaluate: TypeAlias = Callable[[Node, Scope], Value]


CHARS_PER_STEP: Final = 64
"""So many characters of a text take as long as the evaluation of a node."""


class Evaluation(msgspec.Struct, eq=False):
    """
    What everything within one top-level evaluation shares.

    It counts down `depth` and `steps`, knows the scope of each ad by the ad's identity, and gives each nested ad
    one identity.
    `evaluate` is the engine: it charges for an expression, looks whether it is too deep, and gives its value.
    After a failure the levels are not where they were: who goes on nevertheless puts `depth` back, but `gave_up`
    stays.
    It sees one instant: two readings of the clock in one expression agree.
    """

    evaluate: Evaluate
    context: Context
    depth: int
    steps: int
    my: ClassAd
    target: ClassAd | None
    scopes: dict[int, Scope] = {}
    _nested: dict[tuple[int, int], tuple[AdLiteral, ClassAd]] | None = None
    _match: ClassAd | None = None
    _now: int | Exceptional | None = None
    gave_up: bool = False

    def scope_of(self, ad: ClassAd) -> Scope:
        """The scope of expressions written in `ad`: one for each ad, and alive as long as the evaluation."""
        scope = self.scopes.get(id(ad))
        if scope is None:
            other = self.target if ad is self.my else self.my if ad is self.target else None
            hidden = ad.hides_sides
            above = ad.chained
            while above is not None:
                hidden |= above.hides_sides
                above = above.chained
            own = None if hidden else ad.stored
            theirs = None if hidden or other is None or ad.parent is not None else other.stored
            scope = self.scopes[id(ad)] = Scope(ad, ad, self, other, own, theirs)
        return scope

    def match(self) -> ClassAd:
        """The ad in which the two sides of a match stand, under the names of HTCondor's."""
        if self._match is None:
            assert self.target is not None
            self._match = match_ad(self.my, self.target)
        return self._match

    @property
    def root(self) -> ClassAd | None:
        """The outermost ad; a match has none."""
        if self.target is not None:
            return None
        ad = self.my
        while ad.parent is not None:
            ad = ad.parent
        return ad

    def outermost(self, key: str) -> tuple[Stored, ClassAd]:
        """What ``.name`` stands for, and in which ad; around a match there is an ad of its two sides."""
        root = self.root
        return self.scope_of(self.match() if root is None else root).look_up(key, selected=True)

    def around(self, ad: ClassAd) -> ClassAd | None:
        """The ad in which `ad` stands; for a side of a match an ad that names both."""
        if ad.parent is not None or self.target is None or (ad is not self.my and ad is not self.target):
            return ad.parent
        return ClassAd.from_literal(LEFT_CONTEXT if ad is self.my else RIGHT_CONTEXT)

    def nested(self, node: AdLiteral, parent: ClassAd) -> ClassAd:
        """The ad that `node`, written in `parent`, stands for: the same one each time."""
        if self._nested is None:
            self._nested = {}
        key = (id(node), id(parent))
        known = self._nested.get(key)
        if known is None:
            self.spend(len(node.attributes))
            known = self._nested[key] = (node, ClassAd.from_literal(node, parent))
        return known[1]

    def now(self) -> int | Exceptional:
        """The instant of this evaluation, undefined without a clock."""
        if self._now is None:
            self._now = self.context.now() if self.context.now is not None else UNDEFINED
        return self._now

    def utc_offset(self, instant: int) -> int:
        """The local zone at `instant`, in seconds east of UTC."""
        return self.context.utc_offset(instant) if self.context.utc_offset is not None else 0

    def descend(self, levels: int = 1) -> None:
        """Go deeper, or give up; the way back is ``depth += levels``."""
        self.depth -= levels
        if self.depth < 0:
            self.gave_up = True
            raise BudgetExceeded

    def spend(self, steps: int) -> None:
        """Count work: an expression that is entered by its size, a function by what it does.  Or give up."""
        self.steps -= steps
        if self.steps < 0:
            self.gave_up = True
            raise StepsExceeded

    def charge(self, text: str) -> None:
        """Count a text that is read or made: else a short expression takes all memory and time."""
        if len(text) >= CHARS_PER_STEP:
            self.spend(len(text) // CHARS_PER_STEP)

    def renew(self) -> None:
        """Begin another evaluation in the same ads, with the budget of one."""
        self.depth, self.steps = self.context.max_depth, self.context.max_steps

    def close(self) -> None:
        """Release the scopes, which refer to this evaluation, so that no garbage collection is needed."""
        self.scopes.clear()

    def anew(self, node: Node, ad: ClassAd) -> Value:
        """The value of `node`, written in `ad`, in another evaluation like this one."""
        state = new_scope(self.evaluate, self.my, self.target, self.context).state
        try:
            return self.evaluate(node, state.scope_of(ad))
        except RecursionError:
            raise BudgetExceeded from None


def new_scope(
    evaluate: Evaluate, my: ClassAd | None, target: ClassAd | None, context: Context = NOTHING
) -> Scope:
    """The scope in which a new evaluation starts."""
    my = ClassAd() if my is None else my
    return Evaluation(evaluate, context, context.max_depth, context.max_steps, my, target).scope_of(my)
