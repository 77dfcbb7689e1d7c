"""
What has changed from one ad to the next, small enough to be sent instead of the ad.

    apply_delta(before, delta(before, after)) == after
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kettle.classad.ad import ClassAd
from kettle.classad.errors import ClassAdParseError
from kettle.classad.nodes import Literal, Node
from kettle.classad.parser import parse
from kettle_wire.ads.types import Ad, Expr, Scalar

if TYPE_CHECKING:
    from kettle.classad.values import Stored


class AdDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    Attributes that are new or have another value or another spelling, and the names of removed ones.

    Names are compared without regard to case.
    """

    changed: Ad
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.removed)


def delta(before: ClassAd, after: ClassAd) -> AdDelta:
    """
    How the own attributes of `after` differ from those of `before`; what is chained to them is not looked at.

    1, 1.0 and true differ; expressions are the same if their trees are, however they are written.
    """
    old = {name.lower(): (name, value) for name, value in before.to_wire().items()}
    changed: Ad = {}
    for name, value in after.to_wire().items():
        known = old.pop(name.lower(), None)
        if known is None or known[0] != name or not _same(known[1], value):
            changed[name] = value
    return AdDelta(changed, tuple(name for name, _ in old.values()))


def apply_delta(ad: ClassAd, delta: AdDelta) -> ClassAd:
    """A copy of `ad`, chained to the same ad, with the changes; removing what is not there is no error."""
    names = {name.lower(): name for name in ad}
    stored: dict[str, Stored | Expr] = dict(ad.stored)
    for name in delta.removed:
        names.pop(name.lower(), None)
        stored.pop(name.lower(), None)
    for name, value in delta.changed.items():
        names[name.lower()] = name
        stored[name.lower()] = value
    changed = ClassAd.from_keys(names, stored)
    changed.chained, changed.parent = ad.chained, ad.parent
    return changed


def _same(left: Scalar, right: Scalar) -> bool:
    if isinstance(left, Expr) and isinstance(right, Expr) and left.expr == right.expr:
        return True
    tree = _tree(left)
    return tree is not None and tree == _tree(right)


def _tree(value: Scalar) -> Node | None:
    """The expression; None for text that is none."""
    if not isinstance(value, Expr):
        return Literal(value)
    try:
        return parse(value.expr)
    except ClassAdParseError:
        return None
