"""parseOne, parseNext, parseAds: ads from texts and files."""

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import IO, Any, Final, TypeVar, cast

from kettle import classad
from kettle.bindings.ads import ClassAd
from kettle.bindings.errors import ClassAdParseError
from kettle.classad.json_form import read_json_at
from kettle.classad.parser import parse_ad_at

_Ad = TypeVar("_Ad", bound=ClassAd)


class ParserType(IntEnum):
    """How ads are written."""

    Auto = -1
    Old = 0
    XML = 1
    JSON = 2
    New = 3
    FileAuto = 4


_FORMS: Final = {
    ParserType.Old: classad.Form.LONG,
    ParserType.XML: classad.Form.XML,
    ParserType.JSON: classad.Form.JSON,
    ParserType.New: classad.Form.NEW,
}
_BEFORE: Final = re.compile(r"(?:\s|,|[{](?=\s*\[)|/\*.*?\*/|//[^\n]*(?:\n|$))*", re.DOTALL)
_BLANK_LINES: Final = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?(?:\n|$))*?(?=[^\n]*\S|$)")
_SEPARATORS: Final = re.compile(r"[\s,]*")
_END_OF_LONG: Final = re.compile(r"\n[ \t\r]*\n|\n\*\*\*[^\n]*(?:\n|$)")


Source = str | IO[Any] | Iterable[str]


def parseAds(input: Source, parser: ParserType = ParserType.Auto) -> Iterator[ClassAd]:
    """All ads of a text or a file, one after the other."""
    return ads_of(ClassAd, input, parser)


def parseNext(input: Source, parser: ParserType = ParserType.Auto) -> ClassAd | None:
    """The next ad; a file is read just up to its end.  None: there is no more."""
    return next_of(ClassAd, input, parser)


def parseOne(input: Source, parser: ParserType = ParserType.Auto) -> ClassAd:
    """All ads of a text or a file as one: what comes later counts."""
    return one_of(ClassAd, input, parser)


def ads_of(kind: type[_Ad], source: Source, parser: ParserType) -> Iterator[_Ad]:
    """`parseAds` for ads of a kind."""
    text = _text(source)
    form = _form(text, parser)
    try:
        for ad in classad.read_ads(text, form, report=_pass_over if form is classad.Form.LONG else None):
            yield kind.around(ad)
    except classad.ClassAdParseError as error:
        raise ClassAdParseError(f"Unable to parse input stream into a ClassAd: {error}") from error


def one_of(kind: type[_Ad], source: Source, parser: ParserType) -> _Ad:
    """`parseOne` for an ad of a kind."""
    whole = kind()
    for ad in ads_of(kind, source, parser):
        whole.update(ad)
    return whole


def next_of(kind: type[_Ad], source: Source, parser: ParserType) -> _Ad | None:
    """`parseNext` for an ad of a kind."""
    if isinstance(source, str):
        found, _ = _first(source, parser)
    elif hasattr(source, "read"):
        file = cast("IO[Any]", source)
        begins = file.tell()
        text = _decoded(file.read())
        found, end = _first(text, parser)
        file.seek(begins)
        # Of a text file only what was read says where it goes on: positions there are no numbers of characters.
        file.read(
            len(text[:end].encode("utf-8", "surrogateescape")) if "b" in getattr(file, "mode", "") else end
        )
    else:
        return next(ads_of(kind, source, parser), None)
    return None if found is None else kind.around(found)


def _first(text: str, parser: ParserType) -> tuple[classad.ClassAd | None, int]:
    """The first ad of a text, and the offset behind it."""
    after = _found_at(_SEPARATORS, text)
    if text[after : after + 1] in {"]", "}"}:  # the end of a list
        return None, len(text)
    if "," in text[:after]:  # what is left of one
        ad, length = _first(text[after:], parser)
        return ad, after + length
    form = _form(text, parser)
    try:
        match form:
            case classad.Form.LONG:
                begins = _found_at(_BLANK_LINES, text)
                end = _END_OF_LONG.search(text, begins)
                stop = len(text) if end is None else end.end()
                read = classad.read_ads(text[begins:stop], form, report=_pass_over)
                return next(iter(read), None), stop
            case classad.Form.NEW | classad.Form.JSON | classad.Form.JSON_LINES:
                begins = _found_at(_BEFORE, text)
                if begins < len(text) and form is not classad.Form.NEW and text[begins] == "[":
                    begins = _found_at(_BEFORE, text, begins + 1)
                if begins >= len(text) or text[begins] in "}]":
                    return None, len(text)
                if form is classad.Form.NEW:
                    node, stop = parse_ad_at(text, begins)
                    return classad.ClassAd.from_literal(node), stop
                return read_json_at(text, begins)
            case classad.Form.XML:
                return next(iter(classad.read_ads(text, form)), None), len(text)
    except classad.ClassAdParseError as error:
        raise ClassAdParseError(f"Unable to parse input stream into a ClassAd: {error}") from error


def _found_at(pattern: re.Pattern[str], text: str, at: int = 0) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _form(text: str, parser: ParserType) -> classad.Form:
    return _FORMS.get(ParserType(parser)) or classad.form_of(text)


def _text(source: Source) -> str:
    if isinstance(source, str):
        return source
    if hasattr(source, "read"):
        return _decoded(cast("IO[Any]", source).read())
    return "".join(source)


def _decoded(content: str | bytes) -> str:
    return content.decode("utf-8", "surrogateescape") if isinstance(content, bytes) else content


def _pass_over(error: classad.ClassAdParseError) -> None:
    """Lines that are no attributes end their ad, and the next one is read."""
