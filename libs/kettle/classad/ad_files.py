"""
Collections of ads in any of the forms in which HTCondor's files hold them, and which form a file is in.

    for ad in read_ads(text): ...
    write_ads(ads, Form.JSON)
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from kettle.classad.ad import ClassAd, text_of
from kettle.classad.errors import ClassAdParseError
from kettle.classad.json_form import read_json_at, write_json
from kettle.classad.lexer import SKIP
from kettle.classad.long_form import read_long_ads, write_long
from kettle.classad.parser import parse_ad_at
from kettle.classad.xml_form import XML_FOOTER, XML_HEADER, write_xml
from kettle.classad.xml_reader import read_xml_ads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    _Report: TypeAlias = Callable[[ClassAdParseError], None]
    _ReadAt: TypeAlias = Callable[[str, int], tuple[ClassAd, int]]


class Form(StrEnum):
    """How a collection of ads is written."""

    LONG = "long"
    NEW = "new"
    JSON = "json"
    JSON_LINES = "jsonl"
    XML = "xml"


_INSIGNIFICANT: Final = re.compile(r"(?:[ \t\r\f\v]*+(?:\#[^\n]*+)?\n)*+[ \t\r\f\v]*+")
_HISTORY_END: Final = re.compile(r"^\*\*\*[^\n]*+", re.MULTILINE)
_BETWEEN: Final = re.compile(rf"(?: {SKIP} (?: , | \#[^\n]*+ ) )*+ {SKIP}", re.VERBOSE)
_BEGINNINGS: Final = (
    (re.compile(r"<"), Form.XML),
    (re.compile(r"\[\s*+\{|\[[^\S\n]*+\n\s*+\]"), Form.JSON),
    (re.compile(r"\{\s*+\[|\{[^\S\n]*+\n\s*+\}|\[|/[/*]"), Form.NEW),
    (re.compile(r"\{"), Form.JSON_LINES),
)


def form_of(text: str) -> Form:
    """
    The form that the beginning of `text` shows; the long form if it shows no other.

    Blank lines and lines that start with ``#`` do not count.
    """
    start = _significant(text)
    return next((form for pattern, form in _BEGINNINGS if pattern.match(text, start)), Form.LONG)


def read_ads(
    text: str, form: Form | None = None, *, delimiter: str = "", report: _Report | None = None
) -> Iterator[ClassAd]:
    """
    The ads of a collection in `form`, or in the form that its beginning shows.

    In the long form, lines that start with `delimiter` end an ad; if there is none, blank lines do, and the lines of
    asterisks of HTCondor's history files. Raises `ClassAdParseError`, whose line is the line in `text`. With `report`,
    the error is passed to it and reading continues with the next ad, if its beginning can be found; of a bad ad in the
    long form, the attributes before the bad line are kept.
    """
    match form or form_of(text):
        case Form.LONG:
            return read_long_ads(text if delimiter else _HISTORY_END.sub("", text), delimiter, report)
        case Form.XML:
            return read_xml_ads(text, _significant(text), report)
        case Form.NEW:
            return _sequence(text, "{}", "[", _new_ad_at, report)
        case Form.JSON | Form.JSON_LINES:
            return _sequence(text, "[]", "{", read_json_at, report)


def write_ads(ads: Iterable[ClassAd], form: Form) -> Iterator[str]:
    """
    The text of a collection, part by part, which `read_ads` reads back.

    Raises `NotRepresentable` for an ad that the form cannot carry.
    """
    match form:
        case Form.LONG:
            return (f"{write_long(ad)}\n" for ad in ads)
        case Form.NEW:
            return _listed(map(text_of, ads), "{}")
        case Form.JSON:
            return _listed(map(write_json, ads), "[]")
        case Form.JSON_LINES:
            return (f"{write_json(ad)}\n" for ad in ads)
        case Form.XML:
            return _document(ads)


def _listed(texts: Iterable[str], brackets: str) -> Iterator[str]:
    before = f"{brackets[0]}\n"
    for text in texts:
        yield before + text
        before = ",\n"
    yield f"{before if before[0] == brackets[0] else chr(10)}{brackets[1]}\n"


def _document(ads: Iterable[ClassAd]) -> Iterator[str]:
    yield XML_HEADER
    yield from map(write_xml, ads)
    yield XML_FOOTER


def _significant(text: str) -> int:
    match = _INSIGNIFICANT.match(text)
    return match.end() if match else 0


def _new_ad_at(text: str, at: int) -> tuple[ClassAd, int]:
    node, end = parse_ad_at(text, at)
    return ClassAd.from_literal(node), end


def _sequence(
    text: str, list_brackets: str, opening: str, read: _ReadAt, report: _Report | None
) -> Iterator[ClassAd]:
    """Ads that follow each other, with or without brackets around all of them and commas between."""
    at = _between(text, 0)
    closing = list_brackets[1] if text.startswith(list_brackets[0], at) else ""
    at = _between(text, at + len(closing))
    while at < len(text) and not (closing and text[at] == closing):
        try:
            ad, end = read(text, at)
        except ClassAdParseError as error:
            if report is None:
                raise
            report(error)
            following = text.find(f"\n{opening}", at)
            at = following + 1 if following >= 0 else len(text)
        else:
            yield ad
            at = _between(text, end)
    if closing:
        flaw = _flaw_at_end(text, at, closing)
        if flaw is not None and report is None:
            raise flaw
        if flaw is not None and report is not None:
            report(flaw)


def _flaw_at_end(text: str, at: int, closing: str) -> ClassAdParseError | None:
    if at == len(text):
        return ClassAdParseError(f"expected {closing}, found the end", text=text, at=at)
    if (after := _between(text, at + 1)) < len(text):
        return ClassAdParseError("expected the end", text=text, at=after)
    return None


def _between(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at
