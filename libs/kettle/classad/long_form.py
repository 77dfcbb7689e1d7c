"""
The long form: one ``Name = expression`` per line, ads separated by blank lines.

It is what ``-long`` prints and what job queue logs and history files hold.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kettle.classad.ad import ClassAd
from kettle.classad.errors import ClassAdParseError, NotRepresentable
from kettle.classad.lexer import BadLiteral, encoded
from kettle.classad.nodes import held
from kettle.classad.parser import LONGEST_KEPT, parse_long
from kettle.classad.printing import unparse, unparse_long
from kettle.classad.simple_attributes import plain_attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kettle.classad.nodes import Node
    from kettle.classad.simple_attributes import Attribute
    from kettle.classad.values import Stored
    from kettle_wire.ads.types import Expr

_BLANKS: Final = " \t\r\v\f"
_UNSAFE_NAME: Final = re.compile(r"[=\n\r\0]")


def read_long(text: str) -> ClassAd:
    """
    The ad that `text` is.

    Comment lines start with ``#``; what follows a complete expression on its line is ignored.
    """
    return _ad(text.split("\n"), 1, None)


def read_long_ads(
    text: str, delimiter: str = "", report: Callable[[ClassAdParseError], None] | None = None
) -> Iterator[ClassAd]:
    """
    The ads of a collection, ended by blank lines or by lines that start with `delimiter`.

    A bad line raises `ClassAdParseError`.
    If there is someone to `report` it to, its ad instead consists of the attributes before that line.
    """
    first, lines = 1, list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        ends = line.startswith(delimiter) if delimiter else not line or line.isspace()
        if not ends:
            lines.append(line)
            continue
        if lines and len(ad := _ad(lines, first, report)):
            yield ad
        first, lines = number + 1, []
    if len(ad := _ad(lines, first, report)):
        yield ad


def _ad(lines: list[str], first_line: int, report: Callable[[ClassAdParseError], None] | None) -> ClassAd:
    names: dict[str, str] = {}
    stored: dict[str, Stored | Expr] = {}
    number = first_line
    try:
        for number, line in enumerate(lines, first_line):  # noqa: B007 - it gives the line of an error
            found = _kept(line) if len(line) <= LONGEST_KEPT else _attribute(line)
            if found is not None:
                key, name, value = found
                names.setdefault(key, name)
                stored[key] = value
    except ClassAdParseError as error:
        placed = error.within(error.text, 0, number)
        if report is None:
            raise placed from None
        report(placed)
    return ClassAd.from_keys(names, stored)


def _attribute(line: str) -> Attribute | None:
    """The key, the name and the value that a line holds; None for a comment or nothing."""
    return plain_attribute(line) or _any_attribute(line)


def _any_attribute(line: str) -> Attribute | None:
    content = line.strip(_BLANKS)
    if not content or content[0] == "#":
        return None
    name, equals, expression = line.partition("=")
    name = name.strip(_BLANKS)
    if not equals or not name or not _is_text(name):
        raise ClassAdParseError("expected Name = expression", text=line, at=line.index(content))
    try:
        node = parse_long(expression)
    except ClassAdParseError as error:
        raise error.within(line, len(line) - len(expression), 1) from None
    return name.lower(), name, held(node)


def _is_text(name: str) -> bool:
    try:
        return b"\0" not in encoded(name)
    except BadLiteral:
        return False


# The same lines come again with every ad; longer ones are malicious, or rare.
_kept = lru_cache(maxsize=16_384)(_attribute)


def write_long(ad: ClassAd) -> str:
    """
    The ad's own attributes, one per line, sorted by name.

    Raises `NotRepresentable` for a value that would read back as another one.
    """
    return "".join(f"{name} = {long_text(ad, name)}\n" for name in sorted(ad, key=str.lower))


def list_long(ad: ClassAd) -> str:
    """
    The ad's own attributes as `write_long` writes them, for people and programs that look at what others have written.

    A value that the form cannot carry has the escapes of the new syntax, and a name that it cannot is left out: one
    attribute of one job must not hide the others.
    """
    lines: list[str] = []
    for name in sorted(ad, key=str.lower):
        try:
            lines.append(f"{name} = {long_text(ad, name)}\n")
        except NotRepresentable:
            if name.isidentifier():
                lines.append(f"{name} = {unparse(ad[name])}\n")
    return "".join(lines)


def long_text(ad: ClassAd, name: str) -> str:
    """The right side of an attribute's line."""
    if not name or name[0] == "#" or _UNSAFE_NAME.search(name) or name.strip(_BLANKS) != name:
        raise NotRepresentable(f"{name!r} is no name that the long form can carry")
    node = ad[name]
    text = unparse_long(node)
    if "\n" in text or "\r" in text:
        raise NotRepresentable(f"{name} holds a line break, which the long form cannot carry")
    if "\\" in text and not _reads_back(text, node):
        raise NotRepresentable(f"{name} holds a backslash where the long form would take it for another")
    return text


def _reads_back(text: str, node: Node) -> bool:
    try:
        return parse_long(text) == node
    except ClassAdParseError:
        return False
