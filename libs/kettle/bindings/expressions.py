"""ExprTree: an expression, parsed and not evaluated."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from kettle import classad
from kettle.bindings.errors import ClassAdException, ClassAdParseError
from kettle.bindings.values import CONTEXT, AnyAd, AnyExpression, Value, to_node, to_python
from kettle.classad.ad import as_node
from kettle.classad.nodes import Literal, Node
from kettle.classad.printing import unparse, unparse_indented


class ExprTree(AnyExpression):
    """
    An expression of the ClassAd language.

        ExprTree("Memory >= 1024").eval(machine)
    """

    __slots__ = ("_node", "_scope")
    __hash__ = None  # type: ignore[assignment]  # as in HTCondor: it compares by content
    ads: ClassVar[type[AnyAd]]
    """
    The class of ads among its values: set where that class is defined, because ads are made of expressions.
    """

    def __init__(self, expr: str | ExprTree | object | None = None) -> None:
        self._scope: AnyAd | None = None
        self._node: Node
        match expr:
            case ExprTree():
                self._node = expr.node
            case Value():
                self._node = to_node(expr)
            case None | bool() | int() | float():
                self._node = to_node(expr)
            case _:
                self._node = _parsed(str(expr))

    @classmethod
    def around(cls, node: Node, scope: AnyAd | None = None) -> Self:
        """The expression that a syntax tree is."""
        made = cls.__new__(cls)
        made._node = node
        made._scope = scope if cls._remembers() else None
        return made

    @classmethod
    def _remembers(cls) -> bool:
        """Whether an expression from an ad is evaluated in it by default."""
        return False

    @property
    def node(self) -> Node:
        """The syntax tree."""
        return self._node

    def eval(self, scope: AnyAd | None = None, target: AnyAd | None = None) -> Any:
        """The value in the ad `scope`, matched against `target`."""
        my, other = self._sides(scope, target)
        try:
            return to_python(classad.evaluate(self._node, my, other, CONTEXT), self.ads, scope)
        except classad.EvaluationFailed as error:
            raise ClassAdException(f"this expression has no value: {error}") from error

    def simplify(self, scope: AnyAd | None = None, target: AnyAd | None = None) -> Self:
        """The value as an expression."""
        my, other = self._sides(scope, target)
        try:
            value = classad.evaluate(self._node, my, other, CONTEXT)
        except classad.EvaluationFailed as error:
            raise ClassAdException(f"this expression has no value: {error}") from error
        return self.around(as_node(value))

    def _sides(
        self, scope: AnyAd | None, target: AnyAd | None
    ) -> tuple[classad.ClassAd | None, classad.ClassAd | None]:
        for name, ad in (("scope", scope), ("target", target)):
            if ad is not None and not isinstance(ad, AnyAd):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{name} must be a ClassAd")
        within = scope if scope is not None else self._scope
        return within.inner if within is not None else None, target.inner if target is not None else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExprTree):
            return NotImplemented
        return self._node == other.node

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (unparse(self._node),)

    def __str__(self) -> str:
        return unparse_indented(self._node)

    def __repr__(self) -> str:
        return unparse(self._node)


def _parsed(text: str) -> Node:
    try:
        return classad.parse(text)
    except classad.ClassAdParseError as error:
        raise ClassAdParseError(f"Unable to parse string into a ClassAd: {error}") from error


def quote(input: str) -> str:
    """A string as it is written in an expression."""
    if not isinstance(input, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"quote() takes a str, not {type(input).__name__}")
    return unparse(Literal(input))


def unquote(input: str) -> str:
    """The string that is written so in an expression; raises ValueError if it is none."""
    try:
        node = classad.parse(input)
    except classad.ClassAdParseError as error:
        raise ValueError(f"String does not parse to a ClassAd literal: {error}") from error
    if not isinstance(node, Literal):
        raise ValueError("String does not parse to a ClassAd literal")  # noqa: TRY004 - as HTCondor does
    if not isinstance(node.value, str):
        raise ValueError("ClassAd literal is not a string value")  # noqa: TRY004 - as HTCondor does
    return node.value
