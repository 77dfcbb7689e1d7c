"""
What looks at some of its operands only, or only in some rows: ``&&``, ``||``, ``?:``, conditions.

Each function takes kernels of the operands and the node they come from, and gives the kernel of that node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from kettle.classad.columnar.column import Tag
from kettle.classad.columnar.distinct import distinct
from kettle.classad.columnar.logic import holds, logical, merge, truth
from kettle.classad.columnar.vector import FALSE, TRUE, Partition, Unknown, Vector, either, inverse, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kettle.classad.columnar.column import Booleans, Integers
    from kettle.classad.columnar.frame import Frame
    from kettle.classad.nodes import Node

    Run: TypeAlias = Callable[[Frame], Vector]

_FEW: Final = 8
"""Where less than one row in so many is still open, the rest of a chain looks at those alone."""
_WORTH: Final = 512
"""Rows below which that is not worth it."""


def chain(op: str, operands: Sequence[Run], node: Node) -> Run:
    """Operands joined by one logical operator, left to right."""

    def run(frame: Frame) -> Vector:
        try:
            return _chain(op, operands, frame)
        except Unknown:
            return distinct(node, frame)

    return run


def _chain(op: str, operands: Sequence[Run], frame: Frame) -> Vector:
    """Operands joined from left to right, as far as there are rows that are not decided."""
    vector = _deciding(operands[0](frame))
    for number, operand in enumerate(operands[1:], 1):
        if vector.error is True or (vector.clean and vector.data is (op == "||")):
            return vector
        if frame.count >= _WORTH and not number & (number - 1):  # asking costs nearly as much as going on
            positions = _undecided(op, vector)
            if positions is not None:
                return _rest(op, operands[number:], frame, positions, vector)
        right = operand(frame)
        vector = logical(op, vector, right if right.kind == Tag.BOOLEAN else truth(right))
    return vector


def _deciding(vector: Vector) -> Vector:
    """
    What a left side or a condition means to what it decides about.

    A string is an error, but unlike an error it does not keep the rest from being evaluated, which may fail.
    """
    if vector.kind == Tag.STRING:
        raise Unknown
    return truth(vector)


def _undecided(op: str, vector: Vector) -> Integers | None:
    """The positions of the rows that the rest of a chain decides about, if they are few."""
    if not vector.clean or not isinstance(vector.data, np.ndarray):
        return None
    truths = cast("Booleans", vector.data)
    undecided = ~truths if op == "||" else truths
    return np.flatnonzero(undecided) if np.count_nonzero(undecided) * _FEW < len(truths) else None


def _rest(op: str, operands: Sequence[Run], frame: Frame, positions: Integers, vector: Vector) -> Vector:
    """The rest of a chain for the rows that are not decided yet; `vector` holds for the others."""
    if not len(positions):
        return vector
    open_rows = TRUE if op == "&&" else FALSE
    rest = frame.within(positions, lambda part: _chain(op, [lambda _: open_rows, *operands], part))
    scattered = frame.scattered([positions], [rest])
    decided = np.ones(frame.count, np.bool_)
    decided[positions] = False
    return merge(decided, vector, scattered)


def conditional(condition: Run, then: Run, otherwise: Run, node: Node) -> Run:
    """``condition ? then : otherwise``."""

    def run(frame: Frame) -> Vector:
        try:
            chosen = _deciding(condition(frame))
            if chosen.constant:
                return chosen if not chosen.clean else (then if chosen.data else otherwise)(frame)
            return _chosen(chosen, then, otherwise, frame)
        except Unknown:
            return distinct(node, frame)

    return run


def _chosen(chosen: Vector, then: Run, otherwise: Run, frame: Frame) -> Vector:
    """Each branch for its rows; a branch without rows is not looked at."""
    known = spread(inverse(either(chosen.undefined, chosen.error)), frame.count)
    true = spread(holds(chosen), frame.count)
    groups = [np.flatnonzero(true), np.flatnonzero(known & ~true)]
    parts = [
        (group, frame.within(group, branch))
        for group, branch in zip(groups, (then, otherwise), strict=True)
        if len(group)
    ]
    if len(parts) == 1 and len(parts[0][0]) == frame.count:
        return parts[0][1]
    if len({vector.kind for _, vector in parts} - {Tag.UNDEFINED}) > 1:
        raise Partition([group for group in (*groups, np.flatnonzero(~known)) if len(group)])
    vector = frame.scattered([group for group, _ in parts], [vector for _, vector in parts])
    return Vector(
        vector.kind,
        vector.data,
        either(vector.undefined, chosen.undefined),
        either(vector.error, chosen.error),
    )


def elvis(preferred: Run, fallback: Run, node: Node) -> Run:
    """``preferred ?: fallback``."""

    def run(frame: Frame) -> Vector:
        try:
            vector = preferred(frame)
            missing = vector.undefined
            if isinstance(missing, bool):
                return fallback(frame) if missing else vector
            positions = np.flatnonzero(missing)
            if not len(positions):
                return vector
            second = frame.within(positions, fallback)
            if len(positions) == frame.count:
                return second
            if Tag.UNDEFINED not in {vector.kind, second.kind} and vector.kind != second.kind:
                raise Partition([positions, np.flatnonzero(~missing)])
            return merge(~missing, vector, frame.scattered([positions], [second]))
        except Unknown:
            return distinct(node, frame)

    return run
