"""
The tokens of the language: patterns for what may occur where, and the values of literals.

The parser knows whether an operand or an operator comes next, and requests just that.
So a minus before a digit is the number's sign where an operand is expected and subtracts elsewhere,
and what follows a complete expression, which the long form ignores, is never read.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from kettle.classad.values import ERROR, INTEGER_MAX, INTEGER_MIN, UNDEFINED, Scalar, from_octets, octets

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANK: Final = r"[ \t\n\v\f\r]"
_COMMENT: Final = r"//[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/"
SKIP: Final = rf"(?: {_BLANK}++ | {_COMMENT} )*+"
_WORD: Final = r"[A-Za-z_][A-Za-z0-9_]*+"
_NUMBER: Final = r"""
    (?P<hexadecimal> -0[xX][0-9A-Fa-f]++(?!\.) | -?0[xX][0-9A-Fa-f]++\.[0-9]++(?:[eE][+-]?[0-9]++)?+ )
  | (?P<integer> -?(?!0[xX][0-9A-Fa-f])[0-9]++ (?![.eE]) )
  | (?P<real> -?(?: [0-9]++\.[0-9]++ | \.[0-9]++ | [0-9]++(?=[eE]) ) (?: [eE][+-]?[0-9]++ | (?![eE]) ) )
"""


def _new_literals(quote: str) -> str:
    """Literals between such quotes; neighbours, apart by blanks only, are one."""
    body = rf"[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+"
    return rf"{quote}({body}){quote} (?: {_BLANK}*+ {quote}{body}{quote} )*+"


def _long_literal(quote: str) -> str:
    """A backslash before a quote hides it, unless that quote is the last character of the line."""
    hidden = rf"\\(?: (?!{quote}) | (?={quote}[\r\n]*\Z) | {quote}(?![\r\n]*\Z) )"
    return rf"{quote}([^{quote}\\]*+(?:{hidden}[^{quote}\\]*+)*+){quote}"


OPERATOR: Final = re.compile(
    rf"""{SKIP} (
        && | \|\| | =\?= | =!= | [=!<>]= | >>>? | << | \?{_BLANK}*+: | [iI][sS](?:[nN][tT])?+(?![A-Za-z0-9_])
      | /(?![/*]) | \.\.?+ | [][(){{}},;:?=+\-*%&|^~!<>] | \Z
    )""",
    re.VERBOSE,
)
"""What may follow an operand; its text is empty at the end."""

_FAULT: Final = rf"""{SKIP} (?:
        (?P<end> \Z )
      | (?P<word> {_WORD} )
      | (?P<octal> 0(?: [0-9]++(?![.eE]) | [xX][0-9A-Fa-f] ) )
      | (?P<point> [0-9]++\.(?![0-9]) )
      | (?P<exponent> [0-9]++(?:\.[0-9]++)?+[eE][+-]?(?![0-9]) )
      | (?P<literal> -?\.?[0-9] )
      | (?P<string> {_new_literals('"')} )
      | (?P<quoted> {_new_literals("'")} )
      | (?P<comment> /\* )
      | (?P<open> " )
      | (?P<openname> ' )
      | (?P<operator> >>>? | <<? | =\?= | =!= | [=!<>]= | && | \|\| | [][(){{}}.,;:?=+\-*/%&|^~!<>] )
      | (?P<other> . )
    )"""
_FAULTS: Final = {
    "octal": "an integer does not start with 0",
    "comment": "comment without an end",
    "open": "the string has no end",
    "openname": "the quoted name has no end",
    "point": "digits are missing behind the point",
    "exponent": "digits are missing behind the e",
}

_WORDS_ELSEWHERE: Final = {"and": "&&", "or": "||", "not": "!"}
_NOT: Final = re.compile(r"(?<![A-Za-z0-9_])not\s++\Z", re.IGNORECASE)
_LONGEST_NAME: Final = 60
_OPERANDS: Final = frozenset({"an operand", "a name", "an ad"})

_NAME_QUOTE: Final = "'"
_BODIES: Final = {
    quote: re.compile(rf"{quote}([^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+){quote}", re.DOTALL) for quote in "\"'"
}

KEYWORDS: Final[dict[str, Scalar]] = {"true": True, "false": False, "undefined": UNDEFINED, "error": ERROR}
RESERVED: Final = frozenset({*KEYWORDS, "is", "isnt"})

_ESCAPE: Final = re.compile(rb"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_NAMED_ESCAPES: Final = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip


class BadLiteral(ValueError):  # noqa: N818 - it never leaves this package
    """A literal that stands for no value; the message is a sentence."""


@cache
def _faults() -> re.Pattern[str]:
    """Compiled for the first mistake: most who load this see none."""
    return re.compile(_FAULT, re.VERBOSE | re.DOTALL)


def fault(text: str, at: int, wanted: str) -> tuple[str, int]:
    """What is wrong with what stands at `at` instead of what was `wanted`, and where exactly it starts."""
    match = _faults().match(text, at)
    assert match is not None, "the pattern ends in any character at all"
    kind = match.lastgroup or ""
    start = match.start(kind)
    if kind in _FAULTS:
        return _FAULTS[kind], start
    found = match[kind]
    if kind == "other":
        return f"unexpected {found!r}", start
    if kind == "word":
        found = _word_found(text, start, found)
    elif kind == "operator" and found == "=" and wanted not in _OPERANDS:
        found = "=; equality is written =="
    names = {"end": "the end", "literal": "a literal", "string": "a string", "quoted": "a name"}
    return f"expected {wanted}, found {names.get(kind, found)}", start


def _word_found(text: str, start: int, word: str) -> str:
    key = word.lower()
    if key in RESERVED:
        return "a literal" if key in KEYWORDS else key
    named = f"the name {word[:_LONGEST_NAME]}"
    if key in _WORDS_ELSEWHERE:
        return f"{named}; {key} is written {_WORDS_ELSEWHERE[key]}"
    return f"{named}; not is written !" if _NOT.search(text, max(0, start - 16), start) else named


def integer(raw: str) -> int:
    """
    The value of decimal digits with or without a sign, 0 beyond 64 bits.

    Only the first character is looked at for a leading 0, as in HTCondor: after a minus, octal digits may follow one.
    """
    digits = raw.lstrip("-")
    if len(digits) > 1 and digits[0] == "0" and (raw[0] != "-" or "8" in digits or "9" in digits):
        raise BadLiteral("an integer does not start with 0")
    number = int(raw) if len(digits) < 20 else INTEGER_MAX + 1  # 2**63 has 19
    return number if INTEGER_MIN <= number <= INTEGER_MAX else 0


def hexadecimal(raw: str) -> int | float:
    """What HTCondor makes of ``-0x...``, which no expression means: 0, or a real if there is a point."""
    whole, point, fraction = raw.partition(".")
    return float.fromhex(f"{whole}.{fraction.partition('+')[0].partition('-')[0]}") if point else 0


def unescaped(body: str) -> str:
    """The text that the body of a literal of the new syntax stands for; a zero octet is refused."""
    if "\\" in body or not body.isascii():
        return _checked(_octets(body))
    if "\0" in body:
        raise BadLiteral("a string cannot hold a zero octet")
    return body


def _new_text(literals: str, first: str) -> str:
    if len(literals) == len(first) + 2:
        return unescaped(first)
    # They are one before escapes are read: an octal escape may go on in the next literal.
    return unescaped("".join(_BODIES[literals[0]].findall(literals)))


def _long_text(literal: str, body: str) -> str:
    body = body.replace("\\" + literal[0], literal[0])
    return body if body.isascii() and "\0" not in body else _checked(encoded(body))


def encoded(text: str) -> bytes:
    """The octets of `text`; halves of surrogate pairs, which stand for none, are refused."""
    try:
        return octets(text)
    except UnicodeEncodeError:
        raise BadLiteral("a string cannot hold half of a surrogate pair") from None


def _octets(body: str) -> bytes:
    return _ESCAPE.sub(_octet, encoded(body))


def _checked(data: bytes) -> str:
    if b"\0" in data:
        raise BadLiteral("a string cannot hold a zero octet")
    return from_octets(data)


def _octet(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[0] in b"01234567":
        return bytes([int(code, 8)])
    return _NAMED_ESCAPES.get(code, code)


class Dialect:
    """
    How operands are written: `operand`, `name` and `attribute` are patterns of what may come next.

    `text` makes the text out of literals between quotes and what stands between the first two.
    Each pattern is compiled when it is first wanted: a program that reads one expression needs one of them.
    """

    def __init__(self, literals: Callable[[str], str], text: Callable[[str, str], str]) -> None:
        self.text = text
        self._literals = literals
        self._name = rf"{SKIP} (?: (?P<word>{_WORD}) | (?P<quoted> {_named(literals, _NAME_QUOTE)} ) )"

    @cached_property
    def name(self) -> re.Pattern[str]:
        """The name of an attribute."""
        return re.compile(self._name, re.VERBOSE | re.DOTALL)

    @cached_property
    def attribute(self) -> re.Pattern[str]:
        """A name with the sign of its definition."""
        return re.compile(rf"{self._name} {SKIP} =(?! = | \?= | != )", re.VERBOSE | re.DOTALL)

    @cached_property
    def operand(self) -> re.Pattern[str]:
        """What may stand where an operand is due."""
        literals = self._literals
        return re.compile(
            rf"""{SKIP} (?:
            (?P<word> {_WORD}) (?: \.(?P<member>{_WORD}) | {SKIP}(?P<call>\() )?+
          | (?P<string> {_named(literals, '"')} )
          | {_NUMBER}
          | (?P<points> \.\.[0-9]++ (?:[eE][+-]?[0-9]++)?+ (?![.eE]) )
          | (?P<open> [({{[] )
          | (?P<prefix> [-+!~] )
          | (?P<quoted> {_named(literals, _NAME_QUOTE)} ) (?: {SKIP}(?P<quotedcall>\() )?+
          | (?P<root> \.\.?+ )
            )""",
            re.VERBOSE | re.DOTALL,
        )


def _named(literals: Callable[[str], str], quote: str) -> str:
    group = "name" if quote == _NAME_QUOTE else "body"
    return literals(quote).replace(f"{quote}(", f"{quote}(?P<{group}>", 1)


NEW: Final = Dialect(_new_literals, _new_text)
LONG: Final = Dialect(_long_literal, _long_text)
