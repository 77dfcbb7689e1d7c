"""What a function is: how many arguments it takes, and whether it evaluates them itself."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from kettle.classad.errors import EvaluationFailed
from kettle.classad.nodes import Node
from kettle.classad.scope import Scope
from kettle.classad.values import ERROR, Value

Strict: TypeAlias = Callable[[Sequence[Value], Scope], Value]
Lazy: TypeAlias = Callable[[Sequence[Node], Scope], Value]


class Function(msgspec.Struct, frozen=True):
    """
    A function of the language.

    A `strict` one receives values, all arguments having been evaluated; a `lazy` one receives expressions.
    A `choice` evaluates its first argument and one of the other two: the engines do that themselves.
    A wrong number of arguments is the value error, as is an unknown function.
    """

    least: int
    most: int | None
    strict: Strict | None = None
    lazy: Lazy | None = None
    choice: bool = False

    def accepts(self, count: int) -> bool:
        """Whether so many arguments are right."""
        return count >= self.least and (self.most is None or count <= self.most)


def strict(body: Strict, least: int, most: int | None = -1) -> Function:
    """
    A function of values; `most` is `least` by default, None for any number.

    The texts that it is given, and the one that it gives, count as work.
    """

    def counted(arguments: Sequence[Value], scope: Scope) -> Value:
        for argument in arguments:
            if type(argument) is str:
                scope.state.charge(argument)
        value = body(arguments, scope)
        if type(value) is str:
            scope.state.charge(value)
        return value

    return constant_cost(counted, least, most)


def constant_cost(body: Strict, least: int, most: int | None = -1) -> Function:
    """A function of values that takes as long for a long text as for a short one."""
    return Function(least, least if most == -1 else most, strict=body)


def lazy(body: Lazy, least: int, most: int | None = -1) -> Function:
    """A function of expressions."""
    return Function(least, least if most == -1 else most, lazy=body)


def attempted(argument: Node, scope: Scope) -> Value:
    """
    The value of `argument`, error also where the evaluation fails.

    Only the budget of steps is shared: when it is used up, the evaluation fails.
    """
    state = scope.state
    depth = state.depth
    try:
        return scope.evaluate(argument)
    except EvaluationFailed:
        if state.steps < 0:
            raise
        state.depth = depth
        return ERROR
