"""
What was different in version 1 of the ClassAd module: expressions with operators, which know where they stand.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn, Self

from kettle.bindings import ad_parsing, ads, expressions
from kettle.bindings.ad_parsing import ParserType, Source
from kettle.bindings.errors import ClassAdEvaluationError, NotCarriedOutError
from kettle.bindings.values import Value, to_node
from kettle.classad.nodes import (
    Binary,
    Call,
    ListLiteral,
    Logical,
    Node,
    Parentheses,
    Reference,
    Subscript,
    Unary,
    reference,
)
from kettle.classad.nodes import (
    Literal as Constant,
)


class ExprTree(expressions.ExprTree):
    """An expression; operators make larger ones, and `bool()`, `int()`, `float()` evaluate it."""

    __slots__ = ()
    __hash__ = None  # it compares by making an expression

    @classmethod
    def _remembers(cls) -> bool:
        return True

    def sameAs(self, other: object) -> bool:
        """Whether another is the same expression."""
        return isinstance(other, expressions.ExprTree) and self.node == other.node

    def __bool__(self) -> bool:
        value = self.eval()
        if isinstance(value, Value):
            raise ClassAdEvaluationError(f"{self!r} is {value.name.lower()}, neither true nor false")
        return bool(value)

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def _number(self) -> Any:
        value = self.eval()
        if isinstance(value, Value):
            raise ClassAdEvaluationError(f"{self!r} is {value.name.lower()}, no number")
        return value

    def _with(self, op: str, other: object, *, turned: bool = False) -> Self:
        left, right = _operand(self), _operand(other)
        if turned:
            left, right = right, left
        kind = Logical if op in {"&&", "||"} else Binary
        made = self.around(kind(op, left, right), self._scope)
        if made._scope is None and isinstance(other, ExprTree):
            made._scope = other._scope
        return made

    def and_(self, other: object) -> Self:
        """`self && other`."""
        return self._with("&&", other)

    def or_(self, other: object) -> Self:
        """`self || other`."""
        return self._with("||", other)

    def is_(self, other: object) -> Self:
        """`self =?= other`."""
        return self._with("=?=", other)

    def isnt_(self, other: object) -> Self:
        """`self =!= other`."""
        return self._with("=!=", other)

    def __eq__(self, other: object) -> Self:  # type: ignore[override]  # version 1 made expressions of these
        return self._with("==", other)

    def __ne__(self, other: object) -> Self:  # type: ignore[override]
        return self._with("!=", other)

    def __lt__(self, other: object) -> Self:
        return self._with("<", other)

    def __le__(self, other: object) -> Self:
        return self._with("<=", other)

    def __gt__(self, other: object) -> Self:
        return self._with(">", other)

    def __ge__(self, other: object) -> Self:
        return self._with(">=", other)

    def __add__(self, other: object) -> Self:
        return self._with("+", other)

    def __radd__(self, other: object) -> Self:
        return self._with("+", other, turned=True)

    def __sub__(self, other: object) -> Self:
        return self._with("-", other)

    def __rsub__(self, other: object) -> Self:
        return self._with("-", other, turned=True)

    def __mul__(self, other: object) -> Self:
        return self._with("*", other)

    def __rmul__(self, other: object) -> Self:
        return self._with("*", other, turned=True)

    def __truediv__(self, other: object) -> Self:
        return self._with("/", other)

    def __rtruediv__(self, other: object) -> Self:
        return self._with("/", other, turned=True)

    def __mod__(self, other: object) -> Self:
        return self._with("%", other)

    def __and__(self, other: object) -> Self:
        return self._with("&", other)

    def __or__(self, other: object) -> Self:
        return self._with("|", other)

    def __xor__(self, other: object) -> Self:
        return self._with("^", other)

    def __neg__(self) -> Self:
        return self.around(Unary("-", _operand(self)), self._scope)

    def __invert__(self) -> Self:
        return self.around(Unary("~", _operand(self)), self._scope)

    def __getitem__(self, index: int | str) -> Any:
        value = self.eval()
        if isinstance(value, list) and isinstance(index, int):
            return value[index]  # pyright: ignore[reportUnknownVariableType]
        return self.around(Subscript(_operand(self), to_node(index)), self._scope)


class ClassAd(ads.ClassAd):
    """An ad whose expressions know that they stand in it."""

    __slots__ = ()
    __hash__ = None  # it can change
    expression: ClassVar[type[expressions.ExprTree]] = ExprTree


ExprTree.ads = ClassAd


def Function(name: str, *arguments: object) -> ExprTree:
    """The expression `name(arguments)`."""
    return ExprTree.around(Call(name, name.lower(), tuple(to_node(argument) for argument in arguments)))


def Attribute(name: str) -> ExprTree:
    """The expression that is a name."""
    return ExprTree.around(reference(name))


def Literal(value: object) -> ExprTree:
    """The expression that is a value."""
    return ExprTree.around(to_node(value))


def parseAds(input: Source, parser: ParserType = ParserType.Auto) -> Iterator[ClassAd]:
    """All ads of a text or a file, one after the other."""
    return ad_parsing.ads_of(ClassAd, input, parser)


def parseNext(input: Source, parser: ParserType = ParserType.Auto) -> ClassAd | None:
    """The next ad; a file is read just up to its end."""
    return ad_parsing.next_of(ClassAd, input, parser)


def parseOne(input: Source, parser: ParserType = ParserType.Auto) -> ClassAd:
    """All ads of a text or a file as one."""
    return ad_parsing.one_of(ClassAd, input, parser)


def parse(input: Source) -> ClassAd:
    """The ad that a text is, `[ ... ]`."""
    return ad_parsing.one_of(ClassAd, input, ParserType.New)


def parseOld(input: Source) -> ClassAd:
    """The ad that a text is, `Name = expression` in lines."""
    return ad_parsing.one_of(ClassAd, input, ParserType.Old)


def register(function: Callable[..., Any], name: str | None = None) -> NoReturn:
    """Not carried out: an expression means the same to everybody in a pool."""
    raise NotCarriedOutError(f"{name or function.__name__}: the functions of the language are the pool's")


def registerLibrary(path: str) -> NoReturn:
    """Not carried out: an expression means the same to everybody in a pool."""
    raise NotCarriedOutError(f"{path}: the functions of the language are the pool's")


def _operand(value: object) -> Node:
    node = to_node(value)
    plain = isinstance(node, Constant | Reference | Call | ListLiteral | Parentheses | Subscript)
    return node if plain else Parentheses(node)
