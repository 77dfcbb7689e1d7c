"""Regular expressions: found, replaced, looked for in lists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kettle.classad.evaluation import CHARS_PER_STEP
from kettle.classad.functions.pcre import Pattern, TooCostly, beyond_us, compile_pattern
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
    texts = [value for value in arguments if isinstance(value, str)]
    if len(texts) == len(arguments):
        return texts
    undefined = any(value is UNDEFINED for value in arguments)
    return UNDEFINED if undefined and not any(value is ERROR for value in arguments) else ERROR


def _regexp(arguments: Sequence[Value], scope: Scope) -> Value:
    texts = _strings(arguments)
    if not isinstance(texts, list):
        return texts
    pattern = compile_pattern(texts[0], *texts[2:])
    return ERROR if pattern is None else pattern.occurs(octets(texts[1]), spend=scope.state.spend)


def _regexp_member(arguments: Sequence[Value], scope: Scope) -> Value:
    for exceptional in (ERROR, UNDEFINED):
        if any(value is exceptional for value in arguments):
            return exceptional
    texts, values = _strings([arguments[0], *arguments[2:]]), arguments[1]
    if not isinstance(texts, list) or not isinstance(values, List):
        return ERROR
    pattern = compile_pattern(*texts)
    if pattern is None and beyond_us(texts[0]):
        return ERROR
    found: Value = False
    for member in scope.members(values):
        if member is UNDEFINED:
            found = UNDEFINED
        elif not isinstance(member, str):
            return ERROR
        elif pattern is not None and pattern.occurs(octets(member), spend=scope.state.spend):
            return True
    return found


def _substituting(forced: str) -> Function:
    """
    Implement `regexps`, `replace` and `replaceAll`.

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
    """
    Behind a match of nothing the search goes on after the next octet, which is kept.

    At the end of the text there is none: then the value is error.
    So it is where more than nothing could have been found, which only a search that tries all ways would tell.
    """
    whole, everywhere = "f" in options, "g" in options
    parts: list[bytes] = []
    position = 0
    if pattern.stops_elsewhere or (pattern.forgets_groups and re.search(rb"\\[1-9]", template)):
        return ERROR
    wanted = [int(number) for number in _GROUP.findall(template)]
    for match in pattern.finditer(text, spend=scope.state.spend):
        replacement = _expanded(template, wanted, match.groups, scope)
        if replacement is None:
            return ERROR
        if whole:
            parts.append(text[position : match.start])
        parts.append(replacement)
        position = match.end
        if not everywhere:
            break
        if match.start == match.end:
            if position == len(text) or not pattern.only_empty(text, position):
                return ERROR
            parts.append(text[position : position + 1])
            position += 1
    return from_octets(b"".join(parts) + (text[position:] if whole else b""))


def _expanded(
    template: bytes, wanted: Sequence[int], groups: Sequence[bytes | None], scope: Scope
) -> bytes | None:
    """
    The template with the groups that it asks for; None if one is beyond the last that took part in the match.

    It counts as work before it is made: two short texts may come to gigabytes.
    """
    last = max(number for number, group in enumerate(groups) if group is not None)
    if any(number > last for number in wanted):
        return None
    made = len(template) + sum(len(groups[number] or b"") for number in wanted)
    scope.state.spend(made // CHARS_PER_STEP)
    return _GROUP.sub(lambda number: groups[int(number[1])] or b"", template)


FAMILY: Final[Mapping[str, Function]] = {
    "regexp": strict(limited(_regexp), 2, 3),
    "regexpmember": strict(limited(_regexp_member), 2, 3),
    "regexps": _substituting(""),
    "replace": _substituting("f"),
    "replaceall": _substituting("fg"),
}
