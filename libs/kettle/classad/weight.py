"""How much work it is to write a value as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.evaluation import CHARS_PER_STEP
from kettle.classad.nodes import AdLiteral, Call, Literal, Node, Reference
from kettle.classad.reference_analysis import children
from kettle.classad.values import List
from kettle_wire.ads.types import Expr

if TYPE_CHECKING:
    from kettle.classad.values import Stored, Value

_CHARS_PARSED: Final = 4
"""Characters of an expression that is still text and is parsed first: so many count as a node."""


def steps_to_write(value: Value | Node, most: int) -> int:
    """
    The nodes of the text of a value, and the long texts and names in them; counted no further than `most`.
    """
    count = 0
    pending: list[Stored | Expr] = [value]
    while pending and count < most:
        item = pending.pop()
        count += 1 + _characters(item) // CHARS_PER_STEP
        if isinstance(item, List):
            pending.extend(item.items[: max(most - count, 0)])
        elif isinstance(item, Node):
            pending.extend(children(item))
        elif isinstance(item, Expr):
            count += len(item.expr) // _CHARS_PARSED
        elif isinstance(item, ClassAd):
            ad: ClassAd | None = item
            while ad is not None:
                count += sum(map(len, ad.stored)) // CHARS_PER_STEP
                pending.extend(ad.stored.values())
                ad = ad.chained
    return count


def _characters(item: Stored | Expr) -> int:
    """The length of the text and the names that are in a part itself; the same text may be in many parts."""
    match item:
        case (str() as text) | Literal(value=str() as text) | Reference(name=text) | Call(name=text):
            return len(text)
        case AdLiteral(attributes=attributes):
            return sum(len(name) for name, _ in attributes)
        case _:
            return 0
