"""Strings taken apart into lists."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kettle.classad.functions.registry import Function, strict
from kettle.classad.values import ERROR, List, Stored, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kettle.classad.scope import Scope

_REMEMBERED: Final = 4096
"""Characters of a text whose pieces are kept for the next evaluation."""
_WHITE: Final = " \t\n\v\f\r"


def _split(arguments: Sequence[Value], _: Scope) -> Value:
    text, separators = arguments[0], arguments[1] if len(arguments) > 1 else ", \t"
    if not isinstance(text, str) or not isinstance(separators, str):
        return ERROR
    pieces = _pieces if len(text) + len(separators) <= _REMEMBERED else _pieces.__wrapped__
    return List(pieces(text, separators))


@lru_cache(maxsize=1024)
def _pieces(text: str, separators: str) -> tuple[Stored, ...]:
    """
    Empty pieces are dropped, except between two of the same separator that is no white space.

    White space around such a separator belongs to it.
    """
    pieces: list[str] = []
    start, before, apart = 0, "", frozenset(separators)  # there may be as many as the text has characters
    for position, character in enumerate(text):
        if character not in apart:
            continue
        if position > start:
            pieces.append(text[start:position])
        elif character == before:
            pieces.append("")
        if character not in _WHITE:
            before = character
        start = position + 1
    if start < len(text):
        pieces.append(text[start:])
    return tuple(pieces)


def _splitting_at(*, name_first: bool) -> Function:
    """At the first ``@``; without one the other side is empty: users have names, slots have hosts."""

    def body(arguments: Sequence[Value], _: Scope) -> Value:
        text = arguments[0]
        if not isinstance(text, str):
            return ERROR
        before, at, after = text.partition("@")
        return List((before, after) if at or name_first else ("", text))

    return strict(body, 1)


FAMILY: Final[Mapping[str, Function]] = {
    "split": strict(_split, 1, 2),
    "splitusername": _splitting_at(name_first=True),
    "splitslotname": _splitting_at(name_first=False),
}
