"""
The short way for what nearly every clause of a job's Requirements is: a column against what the job says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from kettle.classad.columnar.column import Tag
from kettle.classad.columnar.operators import COMPARISONS
from kettle.classad.columnar.vector import Vector
from kettle.classad.nodes import Literal, Node, Reference
from kettle.classad.values import UNDEFINED, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from kettle.classad.columnar.column import Column
    from kettle.classad.columnar.frame import Frame

    Run: TypeAlias = Callable[[Frame], Vector]

_COMPARABLE: Final = frozenset({int, float, str})


def against_column(op: str, theirs: str, right: Node, run: Run) -> Run:
    """
    The way that nearly every clause of a job's Requirements takes: ``TARGET.x`` against what the job says.

    If this was compared with this before, that is all there is to do.
    """
    mine: str | None = None
    constant: Value = UNDEFINED
    match right:
        case Reference(key=mine, base=None, absolute=False):
            pass
        case Literal(value=constant):
            pass
        case _:
            return run

    def remembered(frame: Frame) -> Vector:
        shared = frame.shared
        ad = shared.ad
        if frame.rows is None and not frame.mine and ad is not None and shared.plain:
            column = shared.table.columns.get(theirs)
            value = ad.find(mine) if mine is not None else constant
            if column is not None and type(value) in _COMPARABLE and theirs not in shared.overlay:
                shared.own |= mine is not None
                known = column.compared((op, type(value), value), shared.count)
                return _compared(op, column, value, shared.count, run, frame) if known is None else known
        return run(frame)

    return remembered


def _compared(op: str, column: Column, value: object, rows: int, run: Run, frame: Frame) -> Vector:
    """
    Evaluate a clause for the first time; anything but a comparison of numbers of one kind is evaluated the general way.
    """
    kind = column.uniform(rows)
    if kind == Tag.INTEGER and isinstance(value, int):
        data = COMPARISONS[op](column.bits[:rows], value)
    elif kind == Tag.REAL and isinstance(value, float):
        data = COMPARISONS[op](column.reals(rows), value)
    else:
        return run(frame)
    vector = Vector(Tag.BOOLEAN, data)
    column.remember((op, type(value), value), vector)
    return vector
