"""
Argument and environment strings as job ads carry them.

V2 raw (`Arguments`, `Environment`): words separated by blanks; single quotes group, and two of them inside a group
stand for one.  V1 (`Args`, `Env`): words separated by blanks, variables by semicolons, and no way to quote either.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

BLANKS: Final = " \t\r\n"
_BETWEEN: Final = re.compile(f"[{BLANKS}]+")


class QuotingError(ValueError):
    """The string is not well formed; the message is a sentence."""


def split_arguments_v2_raw(text: str) -> list[str]:
    """The words of a V2 raw string."""
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        char = text[at]
        if char in BLANKS:
            if word is not None:
                words.append(word)
                word = None
            at += 1
        elif char == "'":
            group, at = _group(text, at)
            word = (word or "") + group
        else:
            word = (word or "") + char
            at += 1
    return words if word is None else [*words, word]


def _group(text: str, start: int) -> tuple[str, int]:
    """The quoted text that opens at `start`, and where reading goes on."""
    parts: list[str] = []
    at = start + 1
    while True:
        end = text.find("'", at)
        if end < 0:
            raise QuotingError(f"the single quote at character {start + 1} of {text!r} is not closed.")
        parts.append(text[at:end])
        if text[end + 1 : end + 2] != "'":
            return "".join(parts), end + 1
        parts.append("'")
        at = end + 2


def join_arguments_v2_raw(words: Iterable[str]) -> str:
    """Inverse of `split_arguments_v2_raw`."""
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if word and not any(char in word for char in "'" + BLANKS):
        return word
    return "'" + word.replace("'", "''") + "'"


def split_arguments_v1(text: str) -> list[str]:
    """The words of a V1 string."""
    return [word for word in _BETWEEN.split(text) if word]


def join_arguments_v1(words: Iterable[str]) -> str:
    """Inverse of `split_arguments_v1`; V1 has no quotes, so not every list can be written."""
    listed = list(words)
    for word in listed:
        if not word or any(char in word for char in BLANKS):
            raise QuotingError(
                f"the argument {word!r} cannot be written in the old syntax, which has no quotes."
            )
    return " ".join(listed)


def split_environment_v2_raw(text: str) -> dict[str, str]:
    """The variables of a V2 raw string; the last of two settings of one name counts."""
    return dict(_assignment(word) for word in split_arguments_v2_raw(text))


def join_environment_v2_raw(variables: Mapping[str, str]) -> str:
    """Inverse of `split_environment_v2_raw`."""
    return join_arguments_v2_raw(f"{name}={value}" for name, value in variables.items())


def split_environment_v1(text: str, delimiter: str = ";") -> dict[str, str]:
    """The variables of a V1 string."""
    return dict(_assignment(part.lstrip(BLANKS)) for part in text.split(delimiter) if part.strip(BLANKS))


def _assignment(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not (name and equals):
        raise QuotingError(f"{word!r} in an environment is not NAME=VALUE.")
    return name, value
