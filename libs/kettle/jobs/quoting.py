"""
The two syntaxes of arguments and environments, as submit descriptions and job ads have them.

V1 (old): blanks separate, nothing protects a blank.
V2 (new): in a description the text stands in double quotes, inside of which `""` is one double quote; the text
in between ("raw", as job ads carry it) is split at blanks, `'...'` protects, and `''` inside of it is one quote.
"""

import re
from collections.abc import Iterable
from typing import Final

_BLANKS: Final = " \t\r\n"
"""What separates words, as in HTCondor: a name with a blank of another kind, U+00A0 for example, is one word."""
_QUOTED: Final = re.compile(r"'((?:[^']|'')*+)'")
_WORD: Final = re.compile(rf"(?:[^{_BLANKS}']|{_QUOTED.pattern})+")
_SPECIAL: Final = re.compile(rf"[{_BLANKS}']+")
_BETWEEN: Final = re.compile(rf"[{_BLANKS}]+")


class QuotingError(ValueError):
    """Text in one of the two syntaxes cannot be split; the message is a sentence."""


def is_v2(text: str) -> bool:
    """Whether a description's value is in the new syntax."""
    return text.startswith('"')


def unquote_v2(text: str) -> str:
    """The raw form of `"..."` from a description."""
    text = text.strip()
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        raise QuotingError(f"text in the new syntax must be enclosed in double quotes, which {text} is not")
    inner = text[1:-1]
    if '"' in inner.replace('""', ""):
        raise QuotingError(f'a double quote inside of {text} must be written twice ("")')
    return inner.replace('""', '"')


def split_v2(raw: str) -> list[str]:
    """The words of a raw V2 text."""
    words: list[str] = []
    position = 0
    while position < len(raw):
        if raw[position] in _BLANKS:
            position += 1
            continue
        match = _WORD.match(raw, position)
        end = match.end() if match else position
        if match is None or (end < len(raw) and raw[end] not in _BLANKS):
            raise QuotingError(f"the single quote at character {end + 1} of {raw} is never closed")
        words.append(_QUOTED.sub(lambda quoted: quoted[1].replace("''", "'"), match[0]))
        position = end
    return words


def join_v2(words: Iterable[str]) -> str:
    """The canonical raw V2 text of these words; inverse of `split_v2`."""
    return " ".join(
        _SPECIAL.sub(lambda run: "'" + run[0].replace("'", "''") + "'", word) if word else "''"
        for word in words
    )


def unescape_v1(text: str) -> str:
    r"""The raw V1 form of a description's arguments, where a double quote is written `\"`."""
    for found in re.finditer(r'\\"|"', text):
        if found[0] == '"':
            raise QuotingError(
                f'a double quote in the old syntax must be written \\", or the whole value enclosed in double quotes: {text}'
            )
    return text.replace('\\"', '"')


def split_v1(raw: str) -> list[str]:
    """The words of a raw V1 text."""
    return [word for word in _BETWEEN.split(raw) if word]


def split_environment_v1(raw: str, delimiter: str = ";") -> list[str]:
    """The `NAME=value` entries of an environment in the old syntax; blanks behind a value belong to it."""
    return [entry.lstrip(_BLANKS) for entry in raw.split(delimiter) if entry.strip(_BLANKS)]


def described_environment_v1(text: str) -> list[str]:
    """The entries of a description's environment in the old syntax, where blanks around them are left out."""
    return [entry.strip() for entry in text.split(";") if entry.strip()]


def environment_of(entries: Iterable[str]) -> dict[str, str]:
    """Names and values of `NAME=value` entries; the last of a name wins."""
    found: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise QuotingError(f"the environment entry '{entry}' is not NAME=value")
        found.pop(name, None)
        found[name] = value
    return found
