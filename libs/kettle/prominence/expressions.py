"""
Expressions of job ads, put together from literals and names of ours: no text of a document is ever read as an expression.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Final

from kettle.classad.ad import text_of
from kettle.classad.nodes import (
    Binary,
    Call,
    Conditional,
    ListLiteral,
    Literal,
    Logical,
    Node,
    Reference,
    reference,
)
from kettle_wire.ads.types import Expr, Scalar

_TARGET: Final = reference("TARGET")


def said(node: Node) -> Scalar:
    """An expression as it travels: a literal as itself."""
    match node:
        case Literal(value=bool() | int() | float() | str() as value):
            return value
        case _:
            return Expr(text_of(node))


def my(name: str) -> Node:
    """An attribute of the job."""
    return reference(name)


def target(name: str) -> Node:
    """An attribute of the slot."""
    return Reference(name, name.lower(), base=_TARGET)


def call(name: str, *arguments: Node) -> Node:
    """A function's value."""
    return Call(name, name.lower(), arguments)


def compare(left: Node, op: str, right: Node) -> Node:
    """A comparison, or arithmetic."""
    return Binary(op, left, right)


def all_of(clauses: Sequence[Node]) -> Node:
    """They all hold."""
    return reduce(lambda left, right: Logical("&&", left, right), clauses)


def one_of(value: Node, texts: Iterable[str]) -> Node:
    """A text is among some, however it is capitalised."""
    return call("member", value, ListLiteral(tuple(map(Literal, texts))))


def choice(condition: Node, then: Node, otherwise: Node) -> Node:
    """One of two."""
    return Conditional(condition, then, otherwise)


def between(value: Node, least: int, most: int) -> Node:
    """The number, but at least and at most so much."""
    at_least = call("max", ListLiteral((Literal(least), value)))
    return call("min", ListLiteral((Literal(most), at_least)))
