"""
Expressions compiled to kernels: functions of a frame that give a vector.

A construct without a kernel of its own raises `Unknown`; the smallest expression around it whose value a vector can
hold is then left to a closure, once for each distinct combination of the attributes it mentions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np

from kettle.classad.ad import OTHER, OWN
from kettle.classad.columnar.arithmetic import unary
from kettle.classad.columnar.branches import chain, conditional, elvis
from kettle.classad.columnar.clauses import against_column
from kettle.classad.columnar.column import Tag
from kettle.classad.columnar.distinct import distinct
from kettle.classad.columnar.operators import COMPARISONS, binary
from kettle.classad.columnar.predicates import PREDICATES, predicate
from kettle.classad.columnar.vector import (
    NOTHING_ERROR,
    NOTHING_UNDEFINED,
    Overrun,
    Unknown,
    Vector,
    of_value,
)
from kettle.classad.cost import Kept
from kettle.classad.functions import FUNCTIONS
from kettle.classad.nodes import (
    Binary,
    Call,
    Conditional,
    Elvis,
    Literal,
    Logical,
    Node,
    Parentheses,
    Reference,
    RelTimeLiteral,
    Unary,
)
from kettle.classad.reference_analysis import children

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kettle.classad.columnar.frame import Frame

    Run: TypeAlias = Callable[[Frame], Vector]

_HIGHEST: Final = 200
"""Levels of an expression that gets a kernel; higher ones are left to closures as a whole."""


class Kernel(msgspec.Struct, frozen=True, eq=False):
    """
    A compiled expression.

    `height` is how many levels it uses at most, `size` how many nodes it has.
    """

    node: Node
    run: Run
    height: int
    size: int


_KERNELS: Final[Kept[Kernel]] = Kept()


def kernel_of(node: Node) -> Kernel:
    """The kernel of an expression, compiled once as long as it is kept."""
    kernel = _KERNELS.get(id(node))
    if kernel is None or kernel.node is not node:
        height, size = _measure(node)
        run = _compile(node) if height <= _HIGHEST else _overrun
        kernel = _KERNELS.keep(node, Kernel(node, run, height, size), size)
    return kernel


def _measure(node: Node) -> tuple[int, int]:
    """Levels and nodes of an expression."""
    highest, size = 0, 0
    pending = [(node, 1)]
    while pending:
        current, level = pending.pop()
        highest, size = max(highest, level), size + 1
        pending.extend((child, level + 1) for child in children(current))
    return highest, size


def _overrun(_: Frame) -> Vector:
    raise Overrun


def _compile(node: Node) -> Run:
    compiler = _COMPILERS.get(type(node))
    return _unknown if compiler is None else compiler(node)


def _unknown(_: Frame) -> Vector:
    raise Unknown


def _left_to_closures(node: Node) -> Run:
    def run(frame: Frame) -> Vector:
        return distinct(node, frame)

    return run


def _literal(node: Literal) -> Run:
    try:
        vector = of_value(node.value)
    except Unknown:
        return _unknown
    return lambda _: vector


def _parentheses(node: Parentheses) -> Run:
    return _compile(node.inner)


def _reference(node: Reference) -> Run:
    key, base = node.key, node.base
    if node.absolute:
        return _unknown
    if base is None:
        return lambda frame: frame.bare(key)
    if not isinstance(base, Reference) or base.base is not None or base.absolute:
        return _unknown
    scope = base.key
    if scope in OWN:

        def own(frame: Frame) -> Vector:
            if not frame.shared.plain:
                raise Unknown
            return frame.selected(key)

        return own
    if scope in OTHER:

        def other(frame: Frame) -> Vector:
            there = frame.flipped
            if there is None or not frame.shared.plain:
                raise Unknown
            return there.selected(key)

        return other
    return _unknown


def _unary(node: Unary) -> Run:
    op, operand = node.op, _compile(node.operand)

    def run(frame: Frame) -> Vector:
        try:
            return unary(op, operand(frame))
        except Unknown:
            return distinct(node, frame)

    return run


def _binary(node: Binary) -> Run:
    op, left, right = node.op, _compile(node.left), _compile(node.right)

    def run(frame: Frame) -> Vector:
        try:
            return binary(op, left(frame), right(frame), frame.shared.table.strings)
        except Unknown:
            return distinct(node, frame)

    match node:
        case Binary(left=Reference(key=theirs, base=Reference(key=scope, base=None, absolute=False))) if (
            op in COMPARISONS and scope in OTHER
        ):
            return against_column(op, theirs, node.right, run)
        case _:
            return run


def _logical(node: Logical) -> Run:
    operands: list[Run] = []
    left: Node = node
    while isinstance(left, Logical) and left.op == node.op:
        operands.append(_compile(left.right))
        left = left.left
    operands.append(_compile(left))
    operands.reverse()
    return chain(node.op, operands, node)


def _conditional(node: Conditional) -> Run:
    return conditional(_compile(node.condition), _compile(node.then), _compile(node.otherwise), node)


def _elvis(node: Elvis) -> Run:
    return elvis(_compile(node.preferred), _compile(node.fallback), node)


def _call(node: Call) -> Run:
    function = FUNCTIONS.get(node.key)
    if function is None or not function.accepts(len(node.arguments)):
        return lambda _: NOTHING_ERROR
    if node.key == "ifthenelse":
        condition, then, otherwise = (_compile(argument) for argument in node.arguments)
        return conditional(condition, then, otherwise, node)
    if node.key == "random" and not node.arguments:
        return _random
    holds = PREDICATES.get(node.key)
    if holds is not None:
        return predicate(holds, _compile(node.arguments[0]), node)
    return _left_to_closures(node)


def _random(frame: Frame) -> Vector:
    """Each row draws a number of its own."""
    shared = frame.shared
    shared.own = True
    draw = shared.context.random
    if draw is None:
        return NOTHING_UNDEFINED
    return Vector(Tag.REAL, np.array([draw() for _ in range(frame.count)], np.float64))


_COMPILERS: Final[Mapping[type[Node], Callable[[Any], Run]]] = {
    Literal: _literal,
    RelTimeLiteral: lambda node: _literal(Literal(node.seconds)),
    Parentheses: _parentheses,
    Reference: _reference,
    Unary: _unary,
    Binary: _binary,
    Logical: _logical,
    Conditional: _conditional,
    Elvis: _elvis,
    Call: _call,
}
