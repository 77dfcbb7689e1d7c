"""The grammar of expressions: operator precedence with the operators that wait kept on a list."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

from kettle.classad.cursor import AN_OPERAND, Cursor
from kettle.classad.errors import ClassAdParseError
from kettle.classad.lexer import OPERATOR, RESERVED
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
    RelTimeLiteral,
    Subscript,
    Unary,
)
from kettle.classad.times import parse_absolute, parse_relative

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

_Join: TypeAlias = "Callable[[str, Node, Node], Node]"

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

# Levels: what is in brackets takes three, a prefix, ``? :`` and ``?:`` take one each.
_BRACKETS: Final = 3
# Where a text starts; one by itself is in no brackets.
OUTSIDE: Final = -_BRACKETS
WITHIN: Final = 0

_SELECTING: Final = frozenset({".", ".."})  # to HTCondor, two points are as good as one
_OPENING: Final = frozenset({"open", "call", "quotedcall"})
_AN_OPERATOR: Final = "an operator or the end"


def _time(key: str, text: str) -> Node | None:
    """What ``absTime("...")`` or ``relTime("...")`` is folded to; None if the text is no time."""
    if key == "abstime":
        instant = parse_absolute(text)
        return None if instant is None else Literal(instant)
    seconds = parse_relative(text)
    return None if seconds is None else RelTimeLiteral(seconds)


class Parser(Cursor):
    """
    One method for each thing that may stand somewhere; from outside, `parse` or `parse_ad` is called once.
    """

    __slots__ = ()

    def parse(self, *, whole: bool) -> Node:
        """The expression that starts here; `whole` if nothing may follow it."""
        node = self._expression()
        if whole and self._op != "":
            raise self._unexpected(_AN_OPERATOR)
        return node

    def parse_ad(self) -> tuple[AdLiteral, int]:
        """The ad that starts here, and the offset behind it."""
        start, match = self._at, self._next_operand()
        if match["open"] != "[":
            raise self._refusal(start, "an ad")
        return self._ad(), self._at

    def _expression(self, levels: int = _BRACKETS) -> Node:
        """A full expression and the operator after it, which belongs to the calling rule."""
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

    def _elvis(self, node: Node) -> Node:
        preferred = [node]
        while self._op is not None and len(self._op) > 1 and self._op[0] == "?":
            self._deepen(1)
            before, match = self._at, self._next_operand()
            if match.lastgroup == "prefix":
                raise self._refusal(before, AN_OPERAND)
            start = self._opened if match.lastgroup in _OPENING else self._primary
            preferred.append(self._followed(start(match)))
        node = preferred.pop()
        while preferred:
            node = Elvis(preferred.pop(), node)
        return node

    def _followed(self, node: Node) -> Node:
        while True:
            after = OPERATOR.match(self._text, self._at)
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
        literal = self._literal(match)
        if literal is not None:
            return literal
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
                folded = _time(key, text)
                if folded is None:
                    raise ClassAdParseError(f"{text!r} is not a time", text=self._text, at=at)
                return folded
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
