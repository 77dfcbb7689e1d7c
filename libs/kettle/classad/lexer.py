"""
Text to tokens, in the two dialects of string literals.

What is no token becomes a token of kind ``bad``: the long form ignores what follows a complete expression,
so only a parser that gets that far may complain.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kettle.classad.values import ERROR, INTEGER_MAX, INTEGER_MIN, UNDEFINED, Scalar, from_octets, octets

_SPACE: Final = r"[ \t\n\v\f\r]+"
_NUMBER: Final = r"""
    (?P<real> -? (?: [0-9]+\.[0-9]+ | \.[0-9]+ | [0-9]+(?=[eE]) ) (?: [eE][+-]?[0-9]+ | (?![eE]) ) )
  | (?P<integer> -? [0-9]+ (?! \. | [eE] ) )
"""
_PUNCTUATION: Final = r">>> | =\?= | =!= | << | >> | <= | >= | == | != | && | \|\| | \?[ \t\n\v\f\r]*: | [][(){}.,;:?=+\-*/%&|^~!<>]"
_COMMENT: Final = r"//[^\n]* | /\*.*?\*/"
_NEW_STRING: Final = r'"(?P<string>(?:[^"\\]|\\.)*+)"'
# A backslash before a quote hides it, unless that quote is the last character of the line.
_LONG_STRING: Final = r'"(?P<string>(?:[^"\\]|\\(?!")|\\(?="[\r\n]*\Z)|\\"(?![\r\n]*\Z))*+)"'


def _tokens_pattern(string: str) -> re.Pattern[str]:
    return re.compile(
        rf"""
        (?P<space> {_SPACE} )
      | (?P<comment> {_COMMENT} )
      | (?P<name> [A-Za-z_][A-Za-z0-9_]* )
      | {_NUMBER}
      | {string}
      | '(?P<quoted>(?:[^'\\]|\\.)*+)'
      | (?P<unterminated> /\* | " | ' )
      | (?P<punctuation> {_PUNCTUATION} )
      | (?P<bad> . )
        """,
        re.VERBOSE | re.DOTALL,
    )


_NEW: Final = _tokens_pattern(_NEW_STRING)
_LONG: Final = _tokens_pattern(_LONG_STRING)

_KEYWORDS: Final[dict[str, Scalar]] = {"true": True, "false": False, "undefined": UNDEFINED, "error": ERROR}
_IDENTITY: Final = {"is": "=?=", "isnt": "=!="}

# After one of these a minus subtracts; after anything else a minus before a digit is the number's sign.
_ENDS_OPERAND: Final = frozenset({"literal", "string", "name", ".", "]", ")", "}"})

_ESCAPE: Final = re.compile(rb"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_NAMED_ESCAPES: Final = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip


class Token(NamedTuple):
    """
    `kind` is ``literal``, ``string``, ``name``, ``end``, ``bad``, or the operator itself.

    `value` is the literal's value, the name, or what is wrong; `at` the offset in the text.
    """

    kind: str
    value: Scalar
    at: int


class BadString(ValueError):  # noqa: N818 - it never leaves this package
    """A literal with a zero octet, which no ClassAd string may hold."""


def tokens(text: str, *, long: bool = False) -> list[Token]:
    """All tokens of `text`, closed by one of kind ``end``; `long` chooses the old string literals."""
    pattern = _LONG if long else _NEW
    found: list[Token] = []
    position, kind, apart = 0, "", False
    while match := pattern.match(text, position):
        group = match.lastgroup or "bad"
        start, position = position, match.end()
        if group in {"space", "comment"}:
            apart = apart or group == "comment"
            continue
        if text[start] == "-" and group in {"real", "integer"} and kind in _ENDS_OPERAND:
            group, position = "punctuation", start + 1
        token = _token(group, text[start:position], match, start, long=long)
        if token.kind == kind == "string" and not apart and not long:
            token = Token("string", from_octets(octets(f"{found.pop().value}{token.value}")), start)
        found.append(token)
        kind, apart = token.kind, False
    found.append(Token("end", "", len(text)))
    return found


def _token(group: str, raw: str, match: re.Match[str], at: int, *, long: bool) -> Token:
    if group == "name":
        return _word(raw, at)
    if group == "punctuation":
        return Token("?:" if raw[0] == "?" and len(raw) > 1 else raw, "", at)
    if group == "integer":
        return _integer(raw, at)
    if group == "real":
        return Token("literal", float(raw), at)
    if group == "unterminated":
        return Token("bad", f"{'comment' if raw == '/*' else 'literal'} without an end", at)
    if group == "bad":
        return Token("bad", f"unexpected {raw!r}", at)
    return _quoted(group, match[group], at, long=long)


def _quoted(group: str, body: str, at: int, *, long: bool) -> Token:
    kind = "string" if group == "string" else "name"
    try:
        if long and kind == "string":
            return Token(kind, body.replace('\\"', '"'), at)
        return Token(kind, unescaped(body), at)
    except BadString as flaw:
        return Token("bad", str(flaw), at)


def _word(raw: str, at: int) -> Token:
    key = raw.lower()
    if key in _KEYWORDS:
        return Token("literal", _KEYWORDS[key], at)
    return Token(_IDENTITY.get(key, "name"), raw, at)


def _integer(raw: str, at: int) -> Token:
    digits = raw.lstrip("-")
    if len(digits) > 1 and digits[0] == "0":
        return Token("bad", "an integer does not start with 0", at)
    number = int(raw) if len(digits) < 20 else INTEGER_MAX + 1  # 2**63 has 19
    return Token("literal", number if INTEGER_MIN <= number <= INTEGER_MAX else 0, at)


def unescaped(body: str) -> str:
    """The text that a literal of the new syntax stands for; a zero octet is refused."""
    if "\\" not in body:
        if "\0" in body:
            raise BadString("a string cannot hold a zero octet")
        return body
    data = _ESCAPE.sub(_octet, octets(body))
    if b"\0" in data:
        raise BadString("a string cannot hold a zero octet")
    return from_octets(data)


def _octet(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[0] in b"01234567":
        return bytes([int(code, 8)])
    return _NAMED_ESCAPES.get(code, code)
