"""The ad in which the two sides of a match stand, as HTCondor's evaluator makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.nodes import AdLiteral, Logical, Node, Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kettle.classad.values import Stored
    from kettle_wire.ads.types import Expr


def _context_of(own: str, other: str) -> AdLiteral:
    names = {"ad": own, "my": own, "other": other, "target": other}
    return AdLiteral(
        tuple((name, Reference(side, side.lower(), absolute=True)) for name, side in names.items())
    )


def _of(side: str, name: str) -> Reference:
    return Reference(name, name, base=Reference(side, side.lower()))


LEFT_CONTEXT: Final = _context_of("LEFT", "RIGHT")
RIGHT_CONTEXT: Final = _context_of("RIGHT", "LEFT")
_MEMBERS: Final[Mapping[str, Node | None]] = {
    "lCtx": LEFT_CONTEXT,
    "LEFT": None,
    "rCtx": RIGHT_CONTEXT,
    "RIGHT": None,
    "leftRankValue": _of("LEFT", "rank"),
    "rightRankValue": _of("RIGHT", "rank"),
    "symmetricMatch": Logical("&&", _of("RIGHT", "requirements"), _of("LEFT", "requirements")),
    "leftMatchesRight": _of("RIGHT", "requirements"),
    "rightMatchesLeft": _of("LEFT", "requirements"),
}
IN_MATCH: Final = frozenset(name.lower() for name in _MEMBERS) | {"ad"}
"""The names of its attributes, and the one name of the context of a side that is no magic."""


def match_ad(left: ClassAd, right: ClassAd) -> ClassAd:
    """The ad around a match of two."""
    sides = {"LEFT": left, "RIGHT": right}
    stored: dict[str, Stored | Expr] = {
        name.lower(): sides[name] if content is None else content for name, content in _MEMBERS.items()
    }
    return ClassAd.from_keys({name.lower(): name for name in _MEMBERS}, stored)
