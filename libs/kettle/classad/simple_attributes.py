"""
Recognizes at once what nine attributes out of ten are: a name, and a literal without escapes.

The long form and the new syntax write these alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from kettle.classad.lexer import KEYWORDS

if TYPE_CHECKING:
    from kettle.classad.values import Stored

Attribute: TypeAlias = "tuple[str, str, Stored]"
"""The key, the name, and what an ad holds behind it."""

_PLAIN: Final = re.compile(
    r"""
    [ \t]*+ ([A-Za-z_][A-Za-z0-9_]*+) [ \t]*+ = [ \t]*+
    (?: (-? (?:0|[1-9][0-9]{0,17}))
      | "([\x01-\x21\x23-\x5b\x5d-\x7f]*+)"
      | (True|true|False|false|undefined)
      | (-? [0-9]++ \. [0-9]++ (?:[eE][+-]?[0-9]++)?+)
    ) [ \t\r]*+""",
    re.VERBOSE,
)


def plain_attribute(text: str) -> Attribute | None:
    """The attribute that `text` is; None if it takes more to tell."""
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    name, integer, string, keyword, real = match.groups()
    key = name.lower()
    if string is not None:
        return key, name, string
    if integer is not None:
        return key, name, int(integer)
    return key, name, KEYWORDS[keyword.lower()] if keyword else float(real)
