"""Regular expressions: found, replaced, looked for in lists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kettle.classad.functions.pcre import Found, Pattern, TooCostly, compile_pattern
from kettle.classad.functions.registry import Function, Strict, strict
from kettle.classad.values import ERROR, UNDEFINED, List, Value, from_octets, octets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kettle.classad.scope import Scope

_GROUP: Final = re.compile(rb"\\([0-9])")


def limited(body: Strict) -> Strict:
    """A body that gives error where a pattern would take too long."""

    def guarded(arguments: Sequence[Value], scope: Scope) -> Value:
        try:
            return body(arguments, scope)
        except TooCostly:
            return ERROR

    return guarded


def _strings(arguments: Sequence[Value]) -> list[str] | Value:
    """The arguments if all are strings; error before undefined before a complaint about types."""
    if any(value is ERROR for value in arguments):
        return ERROR
    if any(value is UNDEFINED for value in arguments):
        return UNDEFINED
    texts = [value for value in arguments if isinstance(value, str)]
    return texts if len(texts) == len(arguments) else ERROR


def _regexp(arguments: Sequence[Value], scope: Scope) -> Value:
    texts = _strings(arguments)
    if not isinstance(texts, list):
        return texts
    pattern = compile_pattern(texts[0], *texts[2:])
    return ERROR if pattern is None else pattern.search(octets(texts[1]), spend=scope.state.spend) is not None


def _regexp_member(arguments: Sequence[Value], scope: Scope) -> Value:
    texts = _strings([arguments[0], *arguments[2:]])
    values = arguments[1]
    if texts is ERROR or values is ERROR:
        return ERROR
    if texts is UNDEFINED or values is UNDEFINED:
        return UNDEFINED
    if not isinstance(texts, list) or not isinstance(values, List):
        return ERROR
    pattern = compile_pattern(*texts)
    found: Value = False
    for member in scope.members(values):
        if member is UNDEFINED:
            found = UNDEFINED
        elif not isinstance(member, str):
            return ERROR
        elif pattern is not None and pattern.search(octets(member), spend=scope.state.spend):
            return True
    return found


def _substituting(forced: str) -> Function:
    """
    `regexps` and its kin.

    Option ``f`` returns the whole string with the replacement in place, ``g`` goes on after the first match.
    """

    def body(arguments: Sequence[Value], scope: Scope) -> Value:
        texts = _strings(arguments)
        if not isinstance(texts, list):
            return texts
        text, template, *options = texts[1:]
        chosen = "".join(options) + forced
        pattern = compile_pattern(texts[0], chosen)
        if pattern is None:
            return ERROR
        return _substituted(pattern, octets(text), octets(template), chosen, scope)

    return strict(limited(body), 3, 4)


def _substituted(pattern: Pattern, text: bytes, template: bytes, options: str, scope: Scope) -> Value:
    whole, everywhere = "f" in options, "g" in options
    parts: list[bytes] = []
    position = 0
    for match in pattern.finditer(text, spend=scope.state.spend):
        if everywhere and match.start == match.end:
            return ERROR
        replacement = _expanded(match, template)
        if replacement is None:
            return ERROR
        if whole:
            parts.append(text[position : match.start])
        parts.append(replacement)
        position = match.end
        if not everywhere:
            break
    return from_octets(b"".join(parts) + (text[position:] if whole else b""))


def _expanded(match: Found, template: bytes) -> bytes | None:
    """The template with its groups; None if it asks for one beyond the last that took part in the match."""
    groups = match.groups
    last = max(number for number, group in enumerate(groups) if group is not None)
    if any(int(number) > last for number in _GROUP.findall(template)):
        return None
    return _GROUP.sub(lambda wanted: groups[int(wanted[1])] or b"", template)


FAMILY: Final[Mapping[str, Function]] = {
    "regexp": strict(limited(_regexp), 2, 3),
    "regexpmember": strict(limited(_regexp_member), 2, 3),
    "regexps": _substituting(""),
    "replace": _substituting("f"),
    "replaceall": _substituting("fg"),
}
