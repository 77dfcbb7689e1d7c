"""ClassAd: a mapping from names to values and expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, ClassVar, Final, Self

from kettle import classad
from kettle.bindings.errors import ClassAdException, ClassAdParseError
from kettle.bindings.expressions import ExprTree
from kettle.bindings.values import CONTEXT, AnyAd, named, to_node, to_python
from kettle.classad.ad import as_node
from kettle.classad.nodes import Literal
from kettle.classad.printing import storage_order, unparse, unparse_indented, unparse_long

_JSON: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-f]{4})|.)")


class ClassAd(AnyAd, MutableMapping[str, Any]):
    """
    An ad: names without regard to case, values as Python's, what is no literal as an `ExprTree`.

        ad = ClassAd({"Memory": 1024, "Rank": ExprTree("Memory * 2")})
        ad["rank"].eval(ad)
    """

    __slots__ = ("_inner",)
    __hash__ = None  # type: ignore[assignment]  # it can change
    expression: ClassVar[type[ExprTree]] = ExprTree  # pyright: ignore[reportIncompatibleVariableOverride]  # each kind of ad has its own
    """What its expressions are."""

    def __init__(self, input: str | dict[str, Any] | Mapping[str, Any] | None = None) -> None:
        self._inner = classad.ClassAd()
        match input:
            case None:
                pass
            case str():
                self._inner = self._read(input)
            case Mapping():
                for name, value in input.items():
                    self[name] = value
            case _:  # pyright: ignore[reportUnnecessaryComparison]
                raise TypeError("input must be None, str, or dict")

    @classmethod
    def around(cls, inner: classad.ClassAd) -> Self:
        """The ad with HTCondor's methods."""
        ad = cls.__new__(cls)
        ad._inner = inner
        return ad

    @classmethod
    def _read(cls, text: str) -> classad.ClassAd:
        try:
            return classad.ClassAd.parse(text)
        except classad.ClassAdParseError as error:
            raise ClassAdParseError(f"Unable to parse string into a ClassAd: {error}") from error

    @property
    def inner(self) -> classad.ClassAd:
        """The ad as Kettle's libraries know it."""
        return self._inner

    def __getitem__(self, key: str) -> Any:
        found = self._inner.find(named(key).lower())
        if found is None:
            raise KeyError(key)
        return to_python(found, type(self), self)

    def __setitem__(self, key: str, value: Any) -> None:
        name = named(key)
        node = to_node(value)
        if name:  # an attribute without a name is passed over, as HTCondor does
            self._inner[name] = node

    def __delitem__(self, key: str) -> None:
        del self._inner[named(key)]

    def __contains__(self, key: object) -> bool:
        return key in self._inner

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._inner, key=storage_order))

    def __len__(self) -> int:
        return len(self._inner)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClassAd):
            return NotImplemented
        return self._inner == other.inner

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (repr(self),)

    def __copy__(self) -> Self:
        return self.around(self._inner.copy())

    def __deepcopy__(self, memo: object) -> Self:
        return self.around(self._inner.copy())  # expressions do not change

    def __str__(self) -> str:
        return unparse_indented(as_node(self._inner))

    def __repr__(self) -> str:
        return unparse(as_node(self._inner))

    def eval(self, attr: str) -> Any:
        """The value of an attribute; raises KeyError if there is none of this name."""
        if named(attr) not in self._inner:
            raise KeyError(attr)
        try:
            return to_python(classad.evaluate_attribute(attr, self._inner, None, CONTEXT), type(self), self)
        except classad.EvaluationFailed as error:
            raise ClassAdException(f"{attr} has no value: {error}") from error

    def lookup(self, attr: str) -> ExprTree:
        """The expression of an attribute, a literal too; raises KeyError."""
        found = self._inner.find(named(attr).lower())
        if found is None:
            raise KeyError(attr)
        return self.expression.around(as_node(found), self)

    def flatten(self, expr: ExprTree) -> Any:
        """
        An expression with everything computed that this ad decides: a value, or the expression that is left.
        """
        _expect(expr, ExprTree, "expr must be an ExprTree")
        try:
            flat = classad.flatten(expr.node, self._inner, CONTEXT)
        except classad.EvaluationFailed as error:
            raise ClassAdException(f"this expression cannot be flattened: {error}") from error
        return (
            to_python(flat, type(self), self)
            if isinstance(flat, Literal)
            else self.expression.around(flat, self)
        )

    def externalRefs(self, expr: ExprTree) -> list[str]:
        """The attributes that an expression asks of other ads."""
        _expect(expr, ExprTree, "expr must be an ExprTree")
        return sorted(classad.references(expr.node, self._inner).external, key=str.lower)

    def internalRefs(self, expr: ExprTree) -> list[str]:
        """The attributes of this ad that an expression depends on."""
        _expect(expr, ExprTree, "expr must be an ExprTree")
        return sorted(classad.references(expr.node, self._inner).internal, key=str.lower)

    def matches(self, ad: ClassAd) -> bool:
        """Whether this ad meets the Requirements of the other."""
        _expect(ad, ClassAd, "ad must be a ClassAd")
        return classad.one_way(ad.inner, self._inner, CONTEXT)

    def symmetricMatch(self, ad: ClassAd) -> bool:
        """Whether each of the two meets the other's Requirements."""
        _expect(ad, ClassAd, "ad must be a ClassAd")
        return classad.matches(self._inner, ad.inner, CONTEXT)

    def printOld(self) -> str:
        """One `Name = expression` per line."""
        lines = [f"{name} = {unparse_long(self._inner[name])}" for name in self]
        return "\n".join(lines) + "\n"

    def printJson(self) -> str:
        r"""The ad as JSON; expressions are strings of the form `\/Expr(...)\/`."""
        try:
            return _indented(classad.write_json(self._inner))
        except classad.NotRepresentable as error:
            raise ClassAdException(str(error)) from error

    formatOld = printOld
    formatJson = printJson


ExprTree.ads = ClassAd


def _indented(text: str) -> str:
    """JSON with each member on a line of its own, also of what has none."""
    parts: list[str] = []
    depth = 0
    for token in _JSON.findall(text):
        match token:
            case "{" | "[":
                depth += 1
                parts.append(token + "\n" + "  " * depth)
            case "}" | "]":
                depth -= 1
                if parts[-1].isspace() or parts[-1][:1] in {"{", "["}:
                    parts[-1] = parts[-1].rstrip(" ")
                    parts.append("  " * depth + token)
                else:
                    parts.append("\n" + "  " * depth + token)
            case ",":
                parts.append(",\n" + "  " * depth)
            case ":":
                parts.append(": ")
            case _:
                parts.append(_ESCAPE.sub(_as_htcondor, token))
    return "".join(parts)


def _as_htcondor(escape: re.Match[str]) -> str:
    return escape[0] if escape[1] is None else f"\\u{escape[1].upper()}"


def _expect(value: object, kind: type, sentence: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(sentence)
