"""
Text to syntax tree.

An expression parsed once is kept: ads repeat the same few Requirements thousands of times.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from kettle.classad.errors import ClassAdParseError
from kettle.classad.grammar import OUTSIDE, WITHIN, Parser
from kettle.classad.lexer import LONG, NEW

if TYPE_CHECKING:
    from collections.abc import Callable

    from kettle.classad.nodes import AdLiteral, Node

_Result = TypeVar("_Result")

LONGEST_KEPT: Final = 2048
"""Long texts are whole ads or somebody's mischief; neither is worth its memory."""


def parse(text: str) -> Node:
    """
    The expression that `text` is in new syntax, whole.

    The result is shared between all who parse the same text, which is why it is frozen.
    """
    return _parsed(text) if len(text) <= LONGEST_KEPT else _parse(text)


def parse_long(text: str) -> Node:
    """The expression at the start of `text` in the string syntax of the long form; the rest is ignored."""
    return _unless_too_deep(text, lambda: Parser(text, LONG, 0, OUTSIDE).parse(whole=False))


def parse_ad_at(text: str, at: int) -> tuple[AdLiteral, int]:
    """The ad ``[ ... ]`` in new syntax that starts at offset `at` of `text`, and the offset behind it."""
    return _unless_too_deep(text, lambda: Parser(text, NEW, at, WITHIN).parse_ad())


def parse_right_side(text: str) -> Node:
    """The expression that `text`, the right side of an attribute within an ad in new syntax, is, whole."""
    return _unless_too_deep(text, lambda: Parser(text, NEW, 0, WITHIN).parse(whole=True))


def _parse(text: str) -> Node:
    return _unless_too_deep(text, lambda: Parser(text, NEW, 0, OUTSIDE).parse(whole=True))


_parsed = lru_cache(maxsize=16_384)(_parse)


def _unless_too_deep(text: str, parse: Callable[[], _Result]) -> _Result:
    try:
        return parse()
    except RecursionError:
        raise ClassAdParseError("the expression is nested too deeply", text=text, at=0) from None
