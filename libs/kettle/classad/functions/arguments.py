"""
Environment and argument strings.

The first form separates with semicolons and blanks and quotes nothing.
The second one quotes with ``'``, doubled within quotes; written canonically it quotes only what needs it.
"""

from __future__ import annotations

import operator
import re
from itertools import dropwhile
from typing import TYPE_CHECKING, Final

from kettle.classad.functions.registry import Function, strict
from kettle.classad.values import ERROR, UNDEFINED, Exceptional, List, Value, low_half, octets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kettle.classad.scope import Scope

_BLANKS: Final = " \t\n\r"
_DELIMITERS: Final = "!#$%&*+,-/:;<>?@^`|~\x1f"
"""An environment of the first form that starts with one of these is separated by it."""
_WORD: Final = re.compile(r"(?:[^ \t\n\r']|'(?:[^']|'')*+')++")
_RUN_OF_BLANKS: Final = re.compile("[ \t\n\r]*")
_QUOTED: Final = re.compile(r"'((?:[^']|'')*+)'")
_NEEDS_QUOTES: Final = re.compile(r"[ \t\n\r']+")


def words(text: str) -> list[str] | None:
    """The words of the quoting form; None if a quote stays open."""
    found: list[str] = []
    position = _end_of_blanks(text, 0)
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            return None
        found.append(_QUOTED.sub(lambda quoted: quoted[1].replace("''", "'"), match[0]))
        position = _end_of_blanks(text, match.end())
        if position == match.end() < len(text):
            return None
    return found


def _end_of_blanks(text: str, position: int) -> int:
    match = _RUN_OF_BLANKS.match(text, position)
    return position if match is None else match.end()


def quoted(word: str) -> str:
    """A word of the quoting form: each run of blanks and quotes in quotes of its own."""
    if not word:
        return "''"
    return _NEEDS_QUOTES.sub(lambda run: "'" + run[0].replace("'", "''") + "'", word)


def _assignments(entries: Iterable[str]) -> dict[str, str] | None:
    """
    The entry behind each name, the last one winning; None if an entry assigns nothing.

    An entry with ``$$`` will be expanded later and is kept as it is.
    """
    assigned: dict[str, str] = {}
    for entry in entries:
        name, equals, _ = entry.partition("=")
        if not (name and equals) and (equals or "$$" not in entry):
            return None
        assigned[name] = entry
    return assigned


def _environment(assigned: Mapping[str, str]) -> str:
    return " ".join(quoted(assigned[name]) for name in sorted(assigned, key=octets))


def _env_v1_to_v2(arguments: Sequence[Value], _: Scope) -> Value:
    text = arguments[0]
    if not isinstance(text, str):
        return UNDEFINED if text is UNDEFINED else ERROR
    delimiter = text[0] if text and text[0] in _DELIMITERS else ";"
    entries = (entry.lstrip(_BLANKS) for entry in re.split(f"[\n{re.escape(delimiter)}]", text))
    assigned = _assignments(filter(None, entries))
    return ERROR if assigned is None else _environment(assigned)


def _merge_environment(arguments: Sequence[Value], _: Scope) -> Value:
    merged: dict[str, str] = {}
    for text in arguments:
        if text is UNDEFINED:
            continue
        entries = words(text) if isinstance(text, str) else None
        assigned = None if entries is None else _assignments(entries)
        if assigned is None:
            return ERROR
        merged |= assigned
    return _environment(merged)


def _form(arguments: Sequence[Value]) -> Value:
    """Which of the two forms is meant; by default the second."""
    form = arguments[1] if len(arguments) > 1 else 2
    return low_half(form) if type(form) is int and low_half(form) in {1, 2} else ERROR


def _args_to_list(arguments: Sequence[Value], _: Scope) -> Value:
    text, form = arguments[0], _form(arguments)
    if not isinstance(text, str) or isinstance(form, Exceptional):
        return ERROR
    found = re.findall(r"[^ \t\n\r]+", text) if form == 1 else words(text)
    return ERROR if found is None else List(tuple(found))


def _list_to_args(arguments: Sequence[Value], scope: Scope) -> Value:
    values, form = arguments[0], _form(arguments)
    if not isinstance(values, List) or isinstance(form, Exceptional):
        return ERROR
    found: list[str] = []
    for member in scope.members(values):
        if not isinstance(member, str):
            return ERROR
        found.append(member)
    if form == 2:
        return " ".join(quoted(word) for word in found)
    return ERROR if any(set(word) & set(_BLANKS) for word in found) else _plainly_joined(found)


def _plainly_joined(words: Iterable[str]) -> str:
    """Empty words at the start leave no blank."""
    return " ".join(dropwhile(operator.not_, words))


FAMILY: Final[Mapping[str, Function]] = {
    "envv1tov2": strict(_env_v1_to_v2, 1),
    "mergeenvironment": strict(_merge_environment, 0, None),
    "argstolist": strict(_args_to_list, 1, 2),
    "listtoargs": strict(_list_to_args, 1, 2),
}
