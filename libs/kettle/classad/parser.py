"""
Text to syntax tree: operator precedence with the operators that wait kept on a list.

An expression parsed once is kept: ads repeat the same few Requirements thousands of times.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from kettle.classad import lexer
from kettle.classad.errors import ClassAdParseError
from kettle.classad.lexer import KEYWORDS, LONG, NEW, OPERATOR, RESERVED, BadLiteral, Dialect
from kettle.classad.nodes import (
    AdLiteral,
    Binary,
    Call,
    Conditional,
    Elvis,
    ListLiteral,
    Literal,
    Logical,
    Node,
    Parentheses,
    Reference,
    Subscript,
    Unary,
)
from kettle.classad.times import parse_absolute, parse_relative

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

_Join: TypeAlias = "Callable[[str, Node, Node], Node]"

_Result = TypeVar("_Result")

_BINDING: Final = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5,
    "==": 6, "!=": 6, "=?=": 6, "=!=": 6,
    "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, ">>>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_LOGICAL: Final = frozenset({"&&", "||"})


def _binary_operators() -> dict[str, tuple[int, str, _Join]]:
    """How tightly each spelling of an operator binds, its plain spelling, and the node it makes."""
    operators: dict[str, tuple[int, str, _Join]] = {
        op: (binding, op, Logical if op in _LOGICAL else Binary) for op, binding in _BINDING.items()
    }
    for word, op in (("is", "=?="), ("isnt", "=!=")):
        for letters in product(*zip(word, word.upper(), strict=True)):
            operators["".join(letters)] = operators[op]
    return operators


_BINARY: Final = _binary_operators()
_NO_OPERATOR: Final = (0, "", Binary)
_CLOSING: Final = {"(": ")", "{": "}", "[": "]"}

# HTCondor's parser goes 500 levels deep: three for what is in brackets, one for a prefix, ``? :`` or ``?:``.
_MAX_DEPTH: Final = 497
_BRACKETS: Final = 3

_LONGEST_KEPT: Final = 2048
_SELECTING: Final = frozenset({".", ".."})  # to HTCondor, two points are as good as one
_OPENING: Final = frozenset({"open", "call", "quotedcall"})
_AN_OPERAND: Final = "an operand"
_AN_OPERATOR: Final = "an operator or the end"


def parse(text: str) -> Node:
    """
    The expression that `text` is in new syntax, whole.

    The result is shared between all who parse the same text, which is why it is frozen.
    """
    return _parsed(text) if len(text) <= _LONGEST_KEPT else _parse(text)


def parse_long(text: str) -> Node:
    """The expression at the start of `text` in the string syntax of the long form; the rest is ignored."""
    return _unless_too_deep(text, lambda: _Parser(text, LONG).parse(whole=False))


def parse_ad_at(text: str, at: int) -> tuple[AdLiteral, int]:
    """The ad ``[ ... ]`` in new syntax that starts at offset `at` of `text`, and the offset behind it."""
    return _unless_too_deep(text, lambda: _Parser(text, NEW, at).parse_ad())


def _parse(text: str) -> Node:
    return _unless_too_deep(text, lambda: _Parser(text, NEW).parse(whole=True))


# Long texts are whole ads or somebody's mischief; neither is worth its memory.
_parsed = lru_cache(maxsize=16_384)(_parse)


def _unless_too_deep(text: str, parse: Callable[[], _Result]) -> _Result:
    try:
        return parse()
    except RecursionError:
        raise ClassAdParseError("the expression is nested too deeply", text=text, at=0) from None


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


class _Parser:
    """
    `_at` is where to read on, `_op` what has been read after the last operand, and `_op_at` where that stood.

    `_depth` counts the levels of the grammar that are open.
    """

    __slots__ = ("_at", "_depth", "_dialect", "_op", "_op_at", "text")

    def __init__(self, text: str, dialect: Dialect, at: int = 0) -> None:
        self.text = text
        self._dialect = dialect
        self._at = at
        self._op: str | None = None
        self._op_at = 0
        self._depth = -_BRACKETS

    def parse(self, *, whole: bool) -> Node:
        node = self._expression()
        if whole and self._op != "":
            raise self._unexpected(_AN_OPERATOR)
        return node

    def parse_ad(self) -> tuple[AdLiteral, int]:
        start, match = self._at, self._next_operand()
        if match["open"] != "[":
            raise self._refusal(start, "an ad")
        self._depth = 0
        return self._ad(), self._at

    def _expression(self, levels: int = _BRACKETS) -> Node:
        """A full expression and the operator after it, which belongs to whoever asked."""
        outer = self._depth
        self._deepen(levels)
        waiting: list[tuple[int, str, _Join, Node]] = []
        choices: list[tuple[Node, Node]] = []
        while True:
            node = self._operand()
            binding, op, join = _BINARY.get(self._op or "", _NO_OPERATOR)
            while waiting and waiting[-1][0] >= binding:
                _, before, joined, left = waiting.pop()
                node = joined(before, left, node)
            if binding:
                waiting.append((binding, op, join, node))
            elif self._op == "?":
                then = self._expression(1)
                self._require(":")
                choices.append((node, then))
                self._deepen(1)
            else:
                break
        for condition, then in reversed(choices):
            node = Conditional(condition, then, node)
        self._depth = outer
        return node

    def _operand(self) -> Node:
        """Prefixes, a primary, and what may follow it: ``.name``, ``[index]``, ``?: other``."""
        outer = self._depth
        prefixes: list[str] = []
        match = self._next_operand()
        while match.lastgroup == "prefix":
            prefixes.append(match["prefix"])
            self._deepen(1)
            match = self._next_operand()
        # One level of brackets must not cost more of Python's stack than it has for HTCondor's levels.
        start = self._opened if match.lastgroup in _OPENING else self._primary
        node = self._followed(start(match))
        if self._op is not None and len(self._op) > 1 and self._op[0] == "?":
            node = self._elvis(node)
        for op in reversed(prefixes):
            node = Unary(op, node)
        self._depth = outer
        return node

    def _next_operand(self) -> re.Match[str]:
        match = self._dialect.operand.match(self.text, self._at)
        if match is None:
            raise self._refusal(self._at, _AN_OPERAND)
        self._at = match.end()
        return match

    def _elvis(self, node: Node) -> Node:
        preferred = [node]
        while self._op is not None and len(self._op) > 1 and self._op[0] == "?":
            self._deepen(1)
            before, match = self._at, self._next_operand()
            if match.lastgroup == "prefix":
                raise self._refusal(before, _AN_OPERAND)
            start = self._opened if match.lastgroup in _OPENING else self._primary
            preferred.append(self._followed(start(match)))
        node = preferred.pop()
        while preferred:
            node = Elvis(preferred.pop(), node)
        return node

    def _followed(self, node: Node) -> Node:
        while True:
            after = OPERATOR.match(self.text, self._at)
            if after is None:
                self._op, self._op_at = None, self._at
                return node
            self._op, self._op_at, self._at = after[1], after.start(1), after.end()
            if self._op in _SELECTING:
                name = self._name()
                node = Reference(name, name.lower(), node)
            elif self._op == "[":
                node = Subscript(node, self._expression())
                self._require("]")
            else:
                return node

    def _primary(self, match: re.Match[str]) -> Node:
        kind = match.lastgroup
        if kind in {"word", "member"}:
            return self._word(match)
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
                    pass
        except BadLiteral as flaw:
            raise ClassAdParseError(str(flaw), text=self.text, at=match.start(kind or 0)) from None
        name = self._name() if kind == "root" else self._unquoted(match)
        return Reference(name, name.lower(), absolute=kind == "root")

    def _opened(self, match: re.Match[str]) -> Node:
        """What starts with a bracket, or is called."""
        bracket = match["open"]
        if bracket == "(":
            inner = self._expression()
            self._require(")")
            return Parentheses(inner)
        if bracket is not None:
            return ListLiteral(self._sequence("}", ",")) if bracket == "{" else self._ad()
        word, at = match["word"], self._at - 1
        if word is not None and word.lower() in RESERVED:
            return self._word(match)
        name = word or self._unquoted(match)
        return self._call(name, self._sequence(")", ",;"), at)

    def _word(self, match: re.Match[str]) -> Node:
        word, member = match.group("word", "member")
        node = None if member is None else _selected(word, member)
        if node is None:
            node = _named(word)
            self._at = match.end("word")
        if node is None:
            raise self._refusal(match.start("word"), _AN_OPERAND)
        return node

    def _name(self) -> str:
        match = self._dialect.name.match(self.text, self._at)
        name = None if match is None else self._spelled(match)
        if match is None or name is None:
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
            raise ClassAdParseError(str(flaw), text=self.text, at=match.start("quoted")) from None

    def _sequence(self, closing: str, separators: str) -> tuple[Node, ...]:
        """Expressions up to the bracket, which is taken."""
        if self._closes(closing):
            return ()
        items: list[Node] = []
        while True:
            items.append(self._expression())
            if self._op == closing:
                return tuple(items)
            if not self._op or self._op not in separators:
                raise self._unexpected(f", or {closing}")

    def _call(self, name: str, arguments: tuple[Node, ...], at: int) -> Node:
        key = name.lower()
        match arguments:
            case (Literal(value=str(text)),) if key in {"abstime", "reltime"}:
                folded = parse_absolute(text) if key == "abstime" else parse_relative(text)
                if folded is None:
                    raise ClassAdParseError(f"{text!r} is not a time", text=self.text, at=at)
                return Literal(folded)
            case _:
                return Call(name, key, arguments)

    def _ad(self) -> AdLiteral:
        if self._closes("]"):
            return AdLiteral(())
        spelling: dict[str, str] = {}
        expressions: dict[str, Node] = {}
        while True:
            if not self._closes(";"):
                name = self._attribute_name()
                key = name.lower()
                spelling.setdefault(key, name)
                expressions[key] = self._expression()
                if self._op == "]":
                    break
                if self._op != ";":
                    raise self._unexpected("; or ]")
            if expressions and self._closes("]"):
                break
        return AdLiteral(tuple((spelling[key], node) for key, node in expressions.items()))

    def _attribute_name(self) -> str:
        match = self._dialect.attribute.match(self.text, self._at)
        if match is None:
            self._name()
            raise self._refusal(self._at, "=")
        name = self._spelled(match)
        if not name:
            raise self._refusal(self._at, "a name")
        self._at = match.end()
        return name

    def _closes(self, mark: str) -> bool:
        """Take `mark` if it comes next."""
        match = OPERATOR.match(self.text, self._at)
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
            raise ClassAdParseError("the expression is nested too deeply", text=self.text, at=self._at)

    def _unexpected(self, wanted: str) -> ClassAdParseError:
        return self._refusal(self._op_at, wanted)

    def _refusal(self, at: int, wanted: str) -> ClassAdParseError:
        sentence, at = lexer.fault(self.text, at, wanted)
        return ClassAdParseError(sentence, text=self.text, at=at)
