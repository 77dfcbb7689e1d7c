"""
What a function is: how many arguments it takes, and whether it evaluates them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from kettle.classad.nodes import Node
from kettle.classad.scope import Scope
from kettle.classad.values import ERROR, Value

Strict: TypeAlias = Callable[[Sequence[Value], Scope], Value]
Lazy: TypeAlias = Callable[[Sequence[Node], Scope], Value]


class Function(msgspec.Struct, frozen=True):
    """
    A function of the language.

    A `strict` one receives values, all arguments having been evaluated; a `lazy` one receives expressions.
    A wrong number of arguments is the value error, as is an unknown function.
    """

    least: int
    most: int | None
    strict: Strict | None = None
    lazy: Lazy | None = None

    def call(self, arguments: Sequence[Node], scope: Scope) -> Value:
        """The function's value in `scope`."""
        if len(arguments) < self.least or (self.most is not None and len(arguments) > self.most):
            return ERROR
        if self.lazy is not None:
            return self.lazy(arguments, scope)
        assert self.strict is not None
        evaluate = scope.state.evaluate
        values: list[Value] = []
        for argument in arguments:
            values.append(evaluate(argument, scope))  # noqa: PERF401 - a comprehension would cost a frame per level
        return self.strict(values, scope)


def strict(body: Strict, least: int, most: int | None = -1) -> Function:
    """A function of values; `most` is `least` unless said otherwise, None for any number."""
    return Function(least, least if most == -1 else most, strict=body)


def lazy(body: Lazy, least: int, most: int | None = -1) -> Function:
    """A function of expressions."""
    return Function(least, least if most == -1 else most, lazy=body)
