"""
Ads out of XML as `kettle.classad.xml_form` writes it.

What a document must not do to its reader is refused: it declares no entities, and it nests only so deep.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.parsers import expat

import msgspec

from kettle.classad.ad import ClassAd
from kettle.classad.errors import ClassAdParseError
from kettle.classad.lexer import BadLiteral, encoded, integer
from kettle.classad.nodes import AdLiteral, ListLiteral, Literal, Node, RelTimeLiteral
from kettle.classad.parser import parse
from kettle.classad.times import parse_absolute, parse_relative
from kettle.classad.values import ERROR, UNDEFINED, from_octets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kettle.classad.values import AbsTime

_REAL: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|INF|NaN)", re.ASCII)
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_SCALARS: Final = frozenset({"i", "r", "s", "b", "un", "er", "at", "rt", "e"})
_NESTING: Final = frozenset({"c", "l"})
_ALLOWED: Final = {
    None: {"classads", "c"}, "classads": {"c"}, "c": {"a"}, "a": _SCALARS | _NESTING, "l": _SCALARS | _NESTING,
}  # fmt: skip
_MAX_NESTING: Final = 165


def read_xml_ads(
    text: str, at: int = 0, report: Callable[[ClassAdParseError], None] | None = None
) -> Iterator[ClassAd]:
    """
    The ads of the document that starts at offset `at`.

    Raises `ClassAdParseError`; if there is someone to `report` it to, the ads before are kept and the rest is not read.
    """
    reader = _Reader(text, at)
    try:
        reader.read()
    except ClassAdParseError as error:
        if report is None:
            raise
        report(error)
    return iter(reader.ads)


class _Element(msgspec.Struct):
    """An element that is open since the octet `at`: its text, the nodes and the attributes within."""

    at: int
    tag: str
    attributes: dict[str, str]
    text: list[str] = []
    nodes: list[Node] = []
    members: dict[str, tuple[str, Node]] = {}


class _Reader:
    """What expat calls while it reads."""

    def __init__(self, text: str, at: int) -> None:
        self.ads: list[ClassAd] = []
        self._text = text
        self._at = at
        self._data = b""
        self._open: list[_Element] = []
        self._nesting = 0
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._entity

    def read(self) -> None:
        """Read all; what has been read before an error stays in `ads`."""
        try:
            self._data = encoded(self._text[self._at :])
            self._parser.Parse(self._data, True)
        except BadLiteral as flaw:
            raise ClassAdParseError(str(flaw), text=self._text, at=self._at) from None
        except expat.ExpatError as error:
            sentence = f"no XML: {expat.ErrorString(error.code)}"
            raise self._refusal(sentence, self._parser.ErrorByteIndex) from None

    def _refusal(self, sentence: str, index: int | None = None) -> ClassAdParseError:
        read = self._data[: self._parser.CurrentByteIndex if index is None else index]
        return ClassAdParseError(sentence, text=self._text, at=self._at + len(from_octets(read)))

    def _entity(self, *_: object) -> None:
        raise self._refusal("entities are neither declared nor used here")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        around = self._open[-1].tag if self._open else None
        if tag not in _ALLOWED.get(around, ()):
            raise self._refusal(f"no <{tag}> belongs here")
        self._nesting += tag in _NESTING
        if self._nesting > _MAX_NESTING:
            raise self._refusal("the ad is nested too deeply")
        self._open.append(_Element(self._parser.CurrentByteIndex, tag, attributes))

    def _characters(self, data: str) -> None:
        element = self._open[-1]
        if element.tag in _SCALARS:
            element.text.append(data)
        elif not data.isspace():
            raise self._refusal("text belongs into an element of its own")

    def _end(self, tag: str) -> None:
        element = self._open.pop()
        self._nesting -= tag in _NESTING
        if tag == "classads":
            return
        if tag == "a":
            self._attribute(element)
            return
        try:
            node = self._node(element)
        except BadLiteral as flaw:
            raise self._refusal(str(flaw), element.at) from None
        if self._open and self._open[-1].tag != "classads":
            self._open[-1].nodes.append(node)
        elif isinstance(node, AdLiteral):
            self.ads.append(ClassAd.from_literal(node))

    def _attribute(self, element: _Element) -> None:
        name = element.attributes.get("n")
        if name is None or len(element.nodes) != 1:
            raise self._refusal("an attribute has a name and one value", element.at)
        members = self._open[-1].members
        key = name.lower()
        members[key] = (members[key][0] if key in members else name, element.nodes[0])

    def _node(self, element: _Element) -> Node:
        match element.tag:
            case "c":
                return AdLiteral(tuple(element.members.values()))
            case "l":
                return ListLiteral(tuple(element.nodes))
            case "b":
                return Literal(_boolean(element.attributes.get("v")))
            case "un":
                return Literal(UNDEFINED)
            case "er":
                return Literal(ERROR)
            case tag:
                return _from_text(tag, "".join(element.text))


def _boolean(text: str | None) -> bool:
    if text not in {"t", "f"}:
        raise BadLiteral("a boolean is t or f")
    return text == "t"


def _from_text(tag: str, text: str) -> Node:
    value: int | float | str | AbsTime | Node | None
    match tag:
        case "s":
            value = text
        case "e":
            try:
                return parse(text)
            except ClassAdParseError as error:
                raise BadLiteral(f"{error.sentence} in an expression") from None
        case "i":
            value = integer(text.strip()) if _INTEGER.fullmatch(text.strip()) else None
        case "r":
            value = float(text) if _REAL.fullmatch(text.strip()) else None
        case "at":
            value = parse_absolute(text)
        case _:
            value = None if (seconds := parse_relative(text)) is None else RelTimeLiteral(seconds)
    if value is None:
        raise BadLiteral(f"{text!r} is no value of <{tag}>")
    return value if isinstance(value, Node) else Literal(value)
