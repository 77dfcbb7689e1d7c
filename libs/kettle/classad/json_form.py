r"""
Ads as JSON: what JSON has a form for as itself, everything else as the text of an expression.

    {"Memory": 1024, "Rank": "\/Expr(Memory * 2)\/", "Name": "\/Expr(\"\\377\")\/"}

The slashes of such a text are escaped, which JSON allows and no writer does on its own.
They distinguish an expression from a string with the same characters, which no ordinary JSON library can do.
A string of octets that are not UTF-8 is an expression too: JSON is text.
"""

import math
import re
from typing import Final, NoReturn

from kettle.classad.ad import ClassAd, as_node
from kettle.classad.errors import ClassAdParseError, NotRepresentable
from kettle.classad.lexer import BadLiteral, encoded, integer
from kettle.classad.nodes import AdLiteral, ListLiteral, Literal, Node, RelTimeLiteral
from kettle.classad.parser import parse
from kettle.classad.printing import long_real_text, quoted_name, storage_order, unparse
from kettle.classad.values import UNDEFINED, from_octets

_TOKEN: Final = re.compile(
    r"""[ \t\n\v\f\r]*+ (?:
        " (?P<string> [^"\\]*+(?:\\.[^"\\]*+)*+ ) "
      | (?P<integer> -?(?:0|[1-9][0-9]*+) (?![0-9.eE]) )
      | (?P<real> -?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+ (?![0-9.eE]) )
      | (?P<word> (?:true|false|null)(?![A-Za-z0-9_]) )
      | (?P<mark> [][{}:,] )
      | (?P<end> \Z )
    )""",
    re.VERBOSE | re.DOTALL,
)
_BLANKS: Final = re.compile(r"[ \t\n\v\f\r]*+")
_WORDS: Final = {"true": Literal(value=True), "false": Literal(value=False), "null": Literal(UNDEFINED)}
_HIGH: Final = r"u([dD][89abAB][0-9A-Fa-f]{2})"
_LOW: Final = r"u([dD][c-fC-F][0-9A-Fa-f]{2})"
_ESCAPE: Final = re.compile(rf"\\(?:{_HIGH}\\{_LOW}|u([0-9A-Fa-f]{{4}})|(.))", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "/": "/"}
_SPECIAL: Final = re.compile(r'[\x00-\x1f"\\]')
_SHORT: Final = {"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\", '"': r"\""}
_STRAY_OCTET: Final = re.compile("[\udc80-\udcff]")
_EXPRESSION: Final = re.compile(r"\\/expr\((.*)\)\\/", re.DOTALL | re.IGNORECASE)
_MAX_NESTING: Final = 165


def read_json(text: str) -> ClassAd:
    """The ad that the object `text` is; raises `ClassAdParseError`."""
    reader = _Reader(text)
    ad = reader.ad()
    reader.expect_end()
    return ad


def read_json_at(text: str, at: int) -> tuple[ClassAd, int]:
    """The ad that the object at offset `at` of `text` is, and the offset behind it."""
    reader = _Reader(text, at)
    return reader.ad(), reader.at


def write_json(ad: ClassAd) -> str:
    """
    The ad's own attributes as an object on one line.

    Raises `NotRepresentable` for a name that is no UTF-8.
    """
    stray = next(filter(_STRAY_OCTET.search, ad), None)
    if stray is not None:
        raise NotRepresentable(f"{quoted_name(stray)} is no name that JSON can carry")
    written: list[str] = []
    pending: list[str | Node] = [as_node(ad)]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            written.append(piece)
        else:
            pending.extend(reversed(_pieces(piece)))
    return "".join(written)


def _pieces(node: Node) -> list[str | Node]:
    match node:
        case AdLiteral(attributes=attributes) if not any(_STRAY_OCTET.search(name) for name, _ in attributes):
            members = sorted(attributes, key=lambda attribute: storage_order(attribute[0]))
            pieces = [piece for name, member in members for piece in (", ", f"{_quoted(name)}: ", member)]
            return ["{", *pieces[1:], "}"]
        case ListLiteral(items=items):
            return ["[", *[piece for item in items for piece in (", ", item)][1:], "]"]
        case RelTimeLiteral(seconds=seconds):
            return [Literal(seconds)]
        case Literal(value=bool(value)):
            return ["true" if value else "false"]
        case Literal(value=int(value)):
            return [str(value)]
        case Literal(value=float(value)) if math.isfinite(value):
            return [long_real_text(value)]
        case Literal(value=str(value)) if not _STRAY_OCTET.search(value):
            return [_quoted(value)]
        case _:
            null = isinstance(node, Literal) and node.value is UNDEFINED
            return ["null" if null else rf'"\/Expr({_escaped(unparse(node))})\/"']


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: _SHORT.get(match[0]) or f"\\u{ord(match[0]):04x}", text)


class _Reader:
    """`at` is where to read on."""

    def __init__(self, text: str, at: int = 0) -> None:
        self._text = text
        self.at = at

    def ad(self) -> ClassAd:
        if not self._takes("{"):
            self._refuse("expected {")
        return ClassAd.from_literal(self._object(0))

    def expect_end(self) -> None:
        """Refuse anything that follows."""
        if self._peek().lastgroup != "end":
            self._refuse("expected the end")

    def _peek(self) -> re.Match[str]:
        match = _TOKEN.match(self._text, self.at)
        if match is None:
            start = self._start()
            self._refuse(
                "string without an end" if self._text[start] == '"' else f"unexpected {self._text[start]!r}"
            )
        return match

    def _takes(self, mark: str) -> bool:
        match = self._peek()
        if match["mark"] != mark:
            return False
        self.at = match.end()
        return True

    def _start(self) -> int:
        blanks = _BLANKS.match(self._text, self.at)
        return blanks.end() if blanks else self.at

    def _refuse(self, sentence: str, at: int | None = None) -> NoReturn:
        raise ClassAdParseError(sentence, text=self._text, at=self._start() if at is None else at)

    def _value(self, depth: int) -> Node:
        match = self._peek()
        kind = match.lastgroup or ""
        start, self.at = match.start(kind), match.end()
        try:
            match kind:
                case "string":
                    return self._string(match["string"])
                case "integer":
                    return Literal(integer(match["integer"]))
                case "real":
                    return Literal(float(match["real"]))
                case "word":
                    return _WORDS[match["word"]]
                case _:
                    pass
        except BadLiteral as flaw:
            self._refuse(str(flaw), start - (kind == "string"))
        if match["mark"] not in {"{", "["}:
            self._refuse("expected a value", start)
        if depth >= _MAX_NESTING:
            self._refuse("the ad is nested too deeply", start)
        return self._object(depth + 1) if match["mark"] == "{" else self._array(depth + 1)

    def _string(self, body: str) -> Node:
        expression = _EXPRESSION.fullmatch(body)
        if expression is None:
            return Literal(_text(body))
        try:
            return parse(_text(expression[1]))
        except ClassAdParseError as error:
            raise BadLiteral(f"{error.sentence} in an expression") from None

    def _object(self, depth: int) -> AdLiteral:
        spelling: dict[str, str] = {}
        expressions: dict[str, Node] = {}
        while not self._ends("}"):
            match = self._peek()
            if match["string"] is None:
                self._refuse("expected a name")
            try:
                name = _text(match["string"])
            except BadLiteral as flaw:
                self._refuse(str(flaw))
            self.at = match.end()
            if not self._takes(":"):
                self._refuse("expected :")
            spelling.setdefault(name.lower(), name)
            expressions[name.lower()] = self._value(depth)
            self._expect_between("}")
        return AdLiteral(tuple((spelling[key], node) for key, node in expressions.items()))

    def _array(self, depth: int) -> ListLiteral:
        items: list[Node] = []
        while not self._ends("]"):
            items.append(self._value(depth))
            self._expect_between("]")
        return ListLiteral(tuple(items))

    def _ends(self, mark: str) -> bool:
        """Whether the bracket closes here; commas too many do not matter."""
        while self._takes(","):
            pass
        return self._takes(mark)

    def _expect_between(self, closing: str) -> None:
        if self._peek()["mark"] not in {",", closing}:
            self._refuse(f"expected , or {closing}")


def _text(body: str) -> str:
    """The text of a string of JSON; halves of surrogate pairs and zero octets are refused."""
    text = _ESCAPE.sub(_character, body) if "\\" in body else body
    data = text if text.isascii() else from_octets(encoded(text))
    if "\0" in data:
        raise BadLiteral("a string cannot hold a zero octet")
    return data


def _character(match: re.Match[str]) -> str:
    high, low, code, letter = match.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10 | (int(low, 16) & 0x3FF)))
    if letter is not None:
        if letter not in _ESCAPED:
            raise BadLiteral(f"{match[0]!r} is no escape of JSON")
        return _ESCAPED[letter]
    character = chr(int(code, 16))
    if "\ud800" <= character <= "\udfff":
        raise BadLiteral("a string cannot hold half of a surrogate pair")
    return character
