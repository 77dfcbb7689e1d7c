"""
What a function is: how many arguments it takes, and whether it evaluates them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from kettle.classad.nodes import Node
from kettle.classad.scope import Scope
from kettle.classad.values import Value

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

    def accepts(self, count: int) -> bool:
        """Whether so many arguments are right."""
        return count >= self.least and (self.most is None or count <= self.most)


def strict(body: Strict, least: int, most: int | None = -1) -> Function:
    """A function of values; `most` is `least` unless said otherwise, None for any number."""
    return Function(least, least if most == -1 else most, strict=body)


def lazy(body: Lazy, least: int, most: int | None = -1) -> Function:
    """A function of expressions."""
    return Function(least, least if most == -1 else most, lazy=body)
