"""Where a reader of expressions is in the text: what stands there is taken, or refused."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kettle.classad import lexer
from kettle.classad.errors import ClassAdParseError
from kettle.classad.lexer import KEYWORDS, OPERATOR, RESERVED, BadLiteral, Dialect
from kettle.classad.nodes import Literal, Node, Reference

if TYPE_CHECKING:
    import re

# HTCondor's parser goes 500 levels deep, of which the whole text takes three.
_MAX_DEPTH: Final = 497
AN_OPERAND: Final = "an operand"


@lru_cache(maxsize=16_384)
def _named(word: str) -> Node | None:
    """What a bare word stands for; None for one that is an operator."""
    key = word.lower()
    return Literal(KEYWORDS[key]) if key in KEYWORDS else None if key in RESERVED else Reference(word, key)


@lru_cache(maxsize=16_384)
def _selected(word: str, member: str) -> Node | None:
    """``word.member``; None if either is a reserved word."""
    key = member.lower()
    if word.lower() in RESERVED or key in RESERVED:
        return None
    return Reference(member, key, Reference(word, word.lower()))


class Cursor:
    """
    `_at` is where to read on, `_op` what has been read after the last operand, and `_op_at` where that stood.

    `_op` is empty at the end and None before what is no operator; `_depth` counts the levels that are open.
    """

    __slots__ = ("_at", "_depth", "_dialect", "_op", "_op_at", "_text")

    def __init__(self, text: str, dialect: Dialect, at: int, depth: int) -> None:
        self._text = text
        self._dialect = dialect
        self._at = at
        self._op: str | None = None
        self._op_at = 0
        self._depth = depth

    def _next_operand(self) -> re.Match[str]:
        match = self._dialect.operand.match(self._text, self._at)
        if match is None:
            raise self._refusal(self._at, AN_OPERAND)
        self._at = match.end()
        return match

    def _literal(self, match: re.Match[str]) -> Node | None:
        """What was matched as a literal; None if it is none."""
        kind = match.lastgroup
        try:
            match kind:
                case "string":
                    return Literal(self._dialect.text(match["string"], match["body"]))
                case "integer":
                    return Literal(lexer.integer(match["integer"]))
                case "real":
                    return Literal(float(match["real"]))
                case "points":
                    return Literal(0.0)  # that is how far C reads ``..5`` as a number
                case "hexadecimal":
                    return Literal(lexer.hexadecimal(match["hexadecimal"]))
                case _:
                    return None
        except BadLiteral as flaw:
            raise ClassAdParseError(str(flaw), text=self._text, at=match.start(kind or 0)) from None

    def _word(self, match: re.Match[str]) -> Node:
        word, member = match.group("word", "member")
        node = None if member is None else _selected(word, member)
        if node is None:
            node = _named(word)
            self._at = match.end("word")
        if node is None:
            raise self._refusal(match.start("word"), AN_OPERAND)
        return node

    def _name(self) -> str:
        match = self._dialect.name.match(self._text, self._at)
        name = None if match is None else self._spelled(match)
        if match is None or name is None:
            raise self._refusal(self._at, "a name")
        self._at = match.end()
        return name

    def _attribute_name(self) -> str:
        """A name and the ``=`` behind it."""
        match = self._dialect.attribute.match(self._text, self._at)
        if match is None:
            self._name()
            raise self._refusal(self._at, "=")
        name = self._spelled(match)
        if not name:
            raise self._refusal(self._at, "a name")
        self._at = match.end()
        return name

    def _spelled(self, match: re.Match[str]) -> str | None:
        """The name that was matched; None for a reserved word."""
        word: str | None = match["word"]
        if word is None:
            return self._unquoted(match)
        return None if word.lower() in RESERVED else word

    def _unquoted(self, match: re.Match[str]) -> str:
        try:
            return self._dialect.text(match["quoted"], match["name"])
        except BadLiteral as flaw:
            raise ClassAdParseError(str(flaw), text=self._text, at=match.start("quoted")) from None

    def _closes(self, mark: str) -> bool:
        """Take `mark` if it comes next."""
        match = OPERATOR.match(self._text, self._at)
        if match is None or match[1] != mark:
            return False
        self._at = match.end()
        return True

    def _require(self, mark: str) -> None:
        """Refuse anything but `mark` as what was read after the last operand."""
        if self._op != mark:
            raise self._unexpected(mark)

    def _deepen(self, levels: int) -> None:
        self._depth += levels
        if self._depth > _MAX_DEPTH:
            raise ClassAdParseError("the expression is nested too deeply", text=self._text, at=self._at)

    def _unexpected(self, wanted: str) -> ClassAdParseError:
        return self._refusal(self._op_at, wanted)

    def _refusal(self, at: int, wanted: str) -> ClassAdParseError:
        sentence, at = lexer.fault(self._text, at, wanted)
        return ClassAdParseError(sentence, text=self._text, at=at)
