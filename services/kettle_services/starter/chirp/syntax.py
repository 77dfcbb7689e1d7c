"""A line of the chirp protocol: words, in which a backslash stands before a blank, a line break or itself."""

from collections.abc import Iterator
from typing import Final

LONGEST_LINE: Final = 5120
"""Bytes, as in the published protocol."""
_BLANKS: Final = frozenset(" \t\r\n\v\f")


class NoSuchRequestError(Exception):
    """The line is not a request of the protocol."""


def words(line: str) -> list[str]:
    """The words of a line; a word may be empty only if the line is."""
    return list(_words(line))


def _words(line: str) -> Iterator[str]:
    word, inside, escaped = "", False, False
    for char in line:
        if escaped:
            word, escaped = word + char, False
        elif char == "\\":
            inside = escaped = True
        elif char not in _BLANKS:
            word, inside = word + char, True
        elif inside:
            yield word
            word, inside = "", False
    if inside:
        yield word


def integer(word: str) -> int:
    """
    A number of 64 bits.

    Raises:
        NoSuchRequestError: it is none.
    """
    try:
        number = int(word)
    except ValueError:
        raise NoSuchRequestError(f"{word!r} is no number") from None
    if not -(2**63) <= number < 2**63:
        raise NoSuchRequestError(f"{word} has more than 64 bits")
    return number


def natural(word: str) -> int:
    """
    A number that is not negative.

    Raises:
        NoSuchRequestError: it is none.
    """
    number = integer(word)
    if number < 0:
        raise NoSuchRequestError(f"{word} is negative")
    return number
