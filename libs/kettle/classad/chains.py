"""Chains of one associative operator, flattened: constants move to the front and become one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from kettle.classad.nodes import Binary, Literal, Logical, Node, Parentheses
from kettle.classad.values import UNDEFINED

if TYPE_CHECKING:
    from collections.abc import Sequence


_LOGICAL: Final = frozenset({"&&", "||"})

Combine: TypeAlias = Callable[[str, Node, Node], Node]
"""Gives ``left op right`` as its value if both sides are values, else as it is."""


def operands_of(node: Binary | Logical) -> list[Node]:
    """What the operator of `node` joins, left to right."""
    operands: list[Node] = []
    chain: Node = node
    while isinstance(chain, Binary | Logical) and chain.op == node.op:
        operands.append(chain.right)
        chain = chain.left
    return [chain, *reversed(operands)]


def regrouped(op: str, operands: list[Node], combine: Combine) -> Node:
    """``a op b op ...`` with its constants, which are literals, in front and combined."""
    return (_logical if op in _LOGICAL else _strict)(op, operands, combine)


def joined(op: str, left: Node, right: Node) -> Node:
    """``left op right``."""
    return (Logical if op in _LOGICAL else Binary)(op, left, right)


def _strict(op: str, operands: list[Node], combine: Combine) -> Node:
    constants = [operand for operand in operands if isinstance(operand, Literal)]
    others = [operand for operand in operands if not isinstance(operand, Literal)]
    if not constants:
        return _chain(op, others)
    constant = _folded(op, constants, combine)
    if not others:
        return constant
    return _chain(op, [_led(constant, op, others[0]), *others[1:]])


def _logical(op: str, operands: list[Node], combine: Combine) -> Node:
    """
    True and false decide or do not matter, undefined comes first, as does false before ``||``.

    An error stays where it is: whether it counts depends on what stands before it.
    """
    if all(isinstance(operand, Literal) for operand in operands):
        return _folded(op, operands, combine)
    decisive = op == "||"
    front: Node | None = None
    others: list[Node] = []
    for operand in operands:
        match operand:
            case Literal(value=bool() | int() | float() as value):
                if bool(value) is decisive:
                    return Literal(decisive)
                front = front or (Literal(value=False) if decisive else None)
            case Literal(value=value) if value is UNDEFINED:
                front = operand
            case _:
                others.append(operand)
    return _chain(op, others if front is None else [front, *others])


def _folded(op: str, constants: Sequence[Node], combine: Combine) -> Node:
    folded = constants[0]
    for constant in constants[1:]:
        folded = combine(op, folded, constant)
    return folded


def _chain(op: str, operands: list[Node]) -> Node:
    node = operands[0]
    for operand in operands[1:]:
        node = joined(op, node, operand)
    return node


def _led(constant: Node, op: str, first: Node) -> Node:
    """``constant op first`` such that its text reads back as what it is."""
    if op == "+" and isinstance(first, Binary) and first.op in {"+", "-"}:
        return Binary(first.op, _led(constant, op, first.left), first.right)
    loose = op == "*" and isinstance(first, Binary) and first.op in {"/", "%"}
    return Binary(op, constant, Parentheses(first) if loose else first)
