"""
Ads in new syntax, ``[ Name = expression; ... ]``, taken apart at their semicolons.

The same right sides come again with every ad, so what an attribute's text stands for is kept.
Whatever is not plain to see here (comments, names in quotes, deep brackets, mistakes) is the parser's to read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kettle.classad.errors import ClassAdParseError
from kettle.classad.lexer import RESERVED
from kettle.classad.nodes import held
from kettle.classad.parser import LONGEST_KEPT, parse_right_side
from kettle.classad.simple_attributes import plain_attribute

if TYPE_CHECKING:
    from kettle.classad.simple_attributes import Attribute
    from kettle.classad.values import Stored
    from kettle_wire.ads.types import Expr

_BLANKS: Final = " \t\n\v\f\r"
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_DIVISION: Final = r"/(?![/*])"


def _up_to(ends: str, brackets: int) -> str:
    """
    What stands before one of the characters `ends`, with so many levels of brackets in it.

    Which bracket closes which is not looked at: the expression's own parser does that.
    """
    piece = rf"{_STRING} | {_DIVISION}"
    if brackets:
        piece += rf""" | [(\[{{] {_up_to("", brackets - 1)} [)\]}}]"""
    run = rf"""[^"'/()\[\]{{}}{ends}]*+"""
    return rf"{run} (?: (?: {piece} ) {run} )*+"


# An attribute; or else the rest of the text, so that the pieces found are always all of it.
_PIECE: Final = re.compile(
    rf"""
    [ \t\n\v\f\r]*+
    ( [A-Za-z_][A-Za-z0-9_]*+ [ \t\n\v\f\r]*+ = (?! = | \?= | != ) {_up_to(";", 6)} (?= [;\]] )
    | .*+ ) ;?+
    """,
    re.VERBOSE | re.DOTALL,
)


def read_new(text: str) -> tuple[dict[str, str], dict[str, Stored | Expr]] | None:
    """
    Names and contents by lower-case name of the ad that `text` is; None if only the parser can tell.

    Nodes are shared between all ads with the same right side, which is why they are frozen.
    """
    text = text.strip(_BLANKS)
    if not (text.startswith("[") and text.endswith("]")):
        return None
    *attributes, rest, _ = _PIECE.findall(text, 1)
    if rest != "]":
        return None
    names: dict[str, str] = {}
    stored: dict[str, Stored | Expr] = {}
    try:
        for piece in attributes:
            key, name, value = _kept(piece) if len(piece) <= LONGEST_KEPT else _attribute(piece)
            names.setdefault(key, name)
            stored[key] = value
    except ClassAdParseError:
        return None
    return names, stored


def _attribute(text: str) -> Attribute:
    attribute = plain_attribute(text)
    if attribute is None:
        name, _, right_side = text.partition("=")
        name = name.rstrip(_BLANKS)
        attribute = name.lower(), name, held(parse_right_side(right_side))
    if attribute[0] in RESERVED:
        raise ClassAdParseError("a reserved word is no name", text=text, at=0)
    return attribute


_kept = lru_cache(maxsize=16_384)(_attribute)
