"""
Parses command lines by HTCondor's grammar of options.

After one dash an option may be shortened as long as no other one is meant (`-const`), after two it is written out
(`--terse`).  Letters may follow a colon (`-af:jr`).  An option takes the words after it that it needs, or all words up
to the next dash.  Options are recognized in upper and lower case.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kettle_services.condor.errors import WordsError, do_you_mean

_MOST_DIGITS: Final = 15
"""The most digits of a number: more is a typing error, and no number that a message can hold."""
ALL: Final = -1
"""All words up to the next that starts with a dash."""


class Option(NamedTuple):
    """What an option takes."""

    takes: int = 0
    """How many words, or ALL."""
    letters: bool = False
    """Whether letters may stand behind a colon."""
    also: tuple[str, ...] = ()
    """Other words for it, and short ones that would mean several."""


class TypedOption(NamedTuple):
    """One element of a command line: an option, or, with an empty name, a word."""

    name: str
    values: tuple[str, ...]
    letters: str = ""


def understood(words: Sequence[str], options: Mapping[str, Option]) -> list[TypedOption]:
    """
    The parsed command line, in order; a dash alone is a word.

    Raises WordsError: there is no such option, it is ambiguous, or a word is missing after it.
    """
    found: list[TypedOption] = []
    at = 0
    while at < len(words):
        if _is_option(words[at]):
            given, at = _given(words, at, options)
        else:
            given, at = TypedOption("", (words[at],)), at + 1
        found.append(given)
    return found


def understood_before(
    words: Sequence[str], options: Mapping[str, Option]
) -> tuple[list[TypedOption], list[str]]:
    """
    The options before the first word, and all from that word on as it was typed: for what runs another program.

    Raises WordsError.
    """
    found: list[TypedOption] = []
    at = 0
    while at < len(words) and _is_option(words[at]):
        given, at = _given(words, at, options)
        found.append(given)
    return found, list(words[at:])


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _given(words: Sequence[str], at: int, options: Mapping[str, Option]) -> tuple[TypedOption, int]:
    """An option with what it takes, and where the next word is."""
    name, letters = _option(words[at], options)
    takes, begin = options[name].takes, at + 1
    end = begin + takes
    if takes == ALL:
        end = next((i for i in range(begin, len(words)) if words[i].startswith("-")), len(words))
    if end > len(words) or (takes == ALL and end == begin):
        raise WordsError(f"Argument {words[at]} requires another parameter")
    return TypedOption(name, tuple(words[begin:end]), letters), end


def _option(word: str, options: Mapping[str, Option]) -> tuple[str, str]:
    typed, colon, letters = word.lstrip("-").partition(":")
    typed = typed.lower()
    named = {spelling: name for name, option in options.items() for spelling in (name, *option.also)}
    name = named.get(typed)
    if name is None and typed and not word.startswith("--"):
        meant = {named[spelling] for spelling in named if spelling.startswith(typed)}
        if len(meant) > 1:
            several = ", ".join(f"-{one}" for one in sorted(meant))
            raise WordsError(f"{word} may mean each of {several}: write more of it")
        name = next(iter(meant), None)
    if name is None or (colon and not options[name].letters):
        dashes = word[: len(word) - len(word.lstrip("-"))]
        raise WordsError(f"Unrecognized argument {word}{do_you_mean(typed, named, dashes)}")
    return name, letters


def whole_number(given: TypedOption) -> int:
    """The word behind an option as a number from 0 on; raises WordsError."""
    digits = given.values[0]
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise WordsError(f"Argument -{given.name} requires a number, not '{given.values[0]}'")
    return int(given.values[0])
