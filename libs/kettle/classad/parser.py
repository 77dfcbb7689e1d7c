"""
Tokens to syntax tree: precedence climbing.

An expression parsed once is kept: ads repeat the same few Requirements thousands of times.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kettle.classad.errors import ClassAdParseError
from kettle.classad.lexer import tokens
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
    from kettle.classad.lexer import Token

_BINDING: Final = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5,
    "==": 6, "!=": 6, "=?=": 6, "=!=": 6,
    "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, ">>>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_LOGICAL: Final = frozenset({"&&", "||"})
_PREFIXES: Final = frozenset({"-", "+", "!", "~"})
_MAX_NESTING: Final = 166
_MAX_PREFIXES: Final = 400


@lru_cache(maxsize=65_536)
def parse(text: str) -> Node:
    """
    The expression that `text` is in new syntax, whole.

    The result is shared between all who parse the same text, which is why it is frozen.
    """
    return _guarded(_Parser(text, long=False), whole=True)


@lru_cache(maxsize=16_384)
def parse_long(text: str) -> Node:
    """The expression at the start of `text` in the string syntax of the long form; the rest is ignored."""
    return _guarded(_Parser(text, long=True), whole=False)


def _guarded(parser: _Parser, *, whole: bool) -> Node:
    try:
        return parser.parse(whole=whole)
    except RecursionError:
        raise ClassAdParseError("the expression is nested too deeply", text=parser.text, at=0) from None


class _Parser:
    def __init__(self, text: str, *, long: bool) -> None:
        self.text = text
        self._tokens = tokens(text, long=long)
        self._next = 0
        self._nesting = 0
        self._kind = self._tokens[0].kind

    def parse(self, *, whole: bool) -> Node:
        node = self._expression()
        if whole and self._kind != "end":
            raise self._unexpected("an operator or the end")
        return node

    def _take(self) -> Token:
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        self._kind = self._tokens[self._next].kind
        return token

    def _accept(self, kind: str) -> bool:
        if self._kind == kind:
            self._take()
            return True
        return False

    def _expect(self, kind: str) -> None:
        if not self._accept(kind):
            raise self._unexpected(kind)

    def _unexpected(self, wanted: str) -> ClassAdParseError:
        token = self._tokens[self._next]
        if token.kind == "bad":
            return ClassAdParseError(str(token.value), text=self.text, at=token.at)
        got = {"end": "the end", "literal": "a literal", "string": "a string"}.get(token.kind, token.kind)
        return ClassAdParseError(f"expected {wanted}, found {got}", text=self.text, at=token.at)

    def _expression(self) -> Node:
        before = self._nesting
        self._descend()
        choices: list[tuple[Node, Node]] = []
        node = self._binary(1)
        while self._accept("?"):
            then = self._expression()
            self._expect(":")
            choices.append((node, then))
            self._descend()
            node = self._binary(1)
        for condition, then in reversed(choices):
            node = Conditional(condition, then, node)
        self._nesting = before
        return node

    def _descend(self) -> None:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise self._too_deep()

    def _too_deep(self) -> ClassAdParseError:
        at = self._tokens[self._next].at
        return ClassAdParseError("the expression is nested too deeply", text=self.text, at=at)

    def _binary(self, weakest: int) -> Node:
        left = self._operand()
        while (binding := _BINDING.get(self._kind, 0)) >= weakest:
            op = self._take().kind
            right = self._binary(binding + 1)
            left = (Logical if op in _LOGICAL else Binary)(op, left, right)
        return left

    def _operand(self) -> Node:
        prefixes: list[str] = []
        while self._kind in _PREFIXES:
            prefixes.append(self._take().kind)
        if len(prefixes) > _MAX_PREFIXES:
            raise self._too_deep()
        node = self._postfix()
        for op in reversed(prefixes):
            node = Unary(op, node)
        return node

    def _postfix(self) -> Node:
        node = self._primary()
        while True:
            if self._accept("."):
                name = self._name()
                node = Reference(name, name.lower(), node)
            elif self._accept("["):
                node = Subscript(node, self._expression())
                self._expect("]")
            elif self._accept("?:"):
                return Elvis(node, self._postfix())
            else:
                return node

    def _primary(self) -> Node:
        kind = self._kind
        match kind:
            case "literal" | "string":
                return Literal(self._take().value)
            case "name":
                name = self._name()
                return self._call(name) if self._kind == "(" else Reference(name, name.lower())
            case "(":
                self._take()
                inner = self._expression()
                self._expect(")")
                return Parentheses(inner)
            case "{":
                return ListLiteral(self._sequence("{", "}", ","))
            case "[":
                return self._ad()
            case ".":
                self._take()
                name = self._name()
                return Reference(name, name.lower(), absolute=True)
            case _:
                raise self._unexpected("an operand")

    def _name(self) -> str:
        if self._kind != "name":
            raise self._unexpected("a name")
        return str(self._take().value)

    def _sequence(self, opening: str, closing: str, separators: str) -> tuple[Node, ...]:
        self._expect(opening)
        items: list[Node] = []
        if self._accept(closing):
            return ()
        while True:
            items.append(self._expression())
            if self._accept(closing):
                return tuple(items)
            if self._kind not in separators or self._kind == "end":
                raise self._unexpected(f"{separators[0]} or {closing}")
            self._take()

    def _call(self, name: str) -> Node:
        at = self._tokens[self._next].at
        key = name.lower()
        arguments = self._sequence("(", ")", ",;")
        match arguments:
            case (Literal(value=str(text)),) if key in {"abstime", "reltime"}:
                folded = parse_absolute(text) if key == "abstime" else parse_relative(text)
                if folded is None:
                    raise ClassAdParseError(f"{text!r} is not a time", text=self.text, at=at)
                return Literal(folded)
            case _:
                return Call(name, key, arguments)

    def _ad(self) -> Node:
        self._expect("[")
        spelling: dict[str, str] = {}
        expressions: dict[str, Node] = {}
        while not self._accept("]"):
            if self._accept(";"):
                continue
            name = self._name()
            self._expect("=")
            spelling.setdefault(name.lower(), name)
            expressions[name.lower()] = self._expression()
            if self._kind not in {";", "]"}:
                raise self._unexpected("; or ]")
        return AdLiteral(tuple((spelling[key], node) for key, node in expressions.items()))
