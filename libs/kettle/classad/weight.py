"""How much work it is to write a value as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.nodes import Node
from kettle.classad.reference_analysis import children
from kettle.classad.values import List
from kettle_wire.ads.types import Expr

if TYPE_CHECKING:
    from kettle.classad.values import Stored, Value

_CHARS_PARSED: Final = 4
"""Characters of an expression that is still text and is parsed first: so many count as a node."""


def nodes_to_write(value: Value | Node, most: int) -> int:
    """The number of nodes of the text of a value, counted no further than `most`."""
    count = 0
    pending: list[Stored | Expr] = [value]
    while pending and count < most:
        item = pending.pop()
        count += 1
        if isinstance(item, List):
            pending.extend(item.items[: most - count])
        elif isinstance(item, Node):
            pending.extend(children(item))
        elif isinstance(item, Expr):
            count += len(item.expr) // _CHARS_PARSED
        elif isinstance(item, ClassAd):
            ad: ClassAd | None = item
            while ad is not None:
                pending.extend(ad.stored.values())
                ad = ad.chained
    return count
