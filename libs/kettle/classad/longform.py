"""
The long form: one ``Name = expression`` per line, ads separated by blank lines.

It is what ``-long`` prints and what job queue logs and history files hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kettle.classad.ad import ClassAd
from kettle.classad.errors import ClassAdParseError, NotRepresentable
from kettle.classad.parser import parse_long
from kettle.classad.unparse import unparse_long

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kettle.classad.nodes import Node


def read_long(text: str) -> ClassAd:
    """
    The ad that `text` is.

    Comment lines start with ``#``; what follows a complete expression on its line is ignored.
    """
    ad = ClassAd()
    for line in text.split("\n"):
        _read_line(line, ad)
    return ad


def read_long_ads(text: str, delimiter: str = "") -> Iterator[ClassAd]:
    """The ads of a collection, ended by blank lines or by lines that start with `delimiter`."""
    ad = ClassAd()
    for line in text.split("\n"):
        ends = line.startswith(delimiter) if delimiter else not line.strip()
        if not ends:
            _read_line(line, ad)
        elif len(ad):
            yield ad
            ad = ClassAd()
    if len(ad):
        yield ad


def _read_line(line: str, ad: ClassAd) -> None:
    content = line.strip(" \t\r")
    if not content or content[0] == "#":
        return
    name, equals, expression = content.partition("=")
    if not equals or not name.strip():
        raise ClassAdParseError("expected Name = expression", text=content, at=0)
    ad[name.strip()] = parse_long(expression.lstrip())


def write_long(ad: ClassAd) -> str:
    """
    The ad's own attributes, one per line, sorted by name.

    Raises `NotRepresentable` for a value that would read back as another one.
    """
    return "".join(f"{name} = {long_text(ad, name)}\n" for name in sorted(ad, key=str.lower))


def long_text(ad: ClassAd, name: str) -> str:
    """The right side of an attribute's line."""
    node = ad[name]
    text = unparse_long(node)
    if "\n" in text or "\r" in text:
        raise NotRepresentable(f"{name} holds a line break, which the long form cannot carry")
    if '\\"' in text and not _reads_back(text, node):
        raise NotRepresentable(f"{name} holds a backslash where the long form would take it for another")
    return text


def _reads_back(text: str, node: Node) -> bool:
    try:
        return parse_long(text) == node
    except ClassAdParseError:
        return False
