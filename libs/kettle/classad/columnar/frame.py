"""
Where a kernel runs: some rows of a table on one side, one ad (or none) on the other.

A frame looks names up as `kettle.classad.scope` does, for all its rows at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kettle.classad.columnar.column import ORDINARY, TAGS, Column, Tag
from kettle.classad.columnar.logic import merge
from kettle.classad.columnar.shared import Shared, Spending
from kettle.classad.columnar.table import Remembered, Table
from kettle.classad.columnar.vector import (
    NOTHING_UNDEFINED,
    Partition,
    Unknown,
    Vector,
    of_value,
)
from kettle.classad.context import NOTHING, Context
from kettle.classad.match_ad import IN_MATCH
from kettle.classad.nodes import Node
from kettle.classad.values import Exceptional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from kettle.classad.ad import ClassAd
    from kettle.classad.columnar.column import Booleans, Integers, Reals
    from kettle.classad.columnar.shared import Compile, Overlay


_MAGIC: Final = frozenset({"my", "self", "parent", "root", "toplevel", "target", "other"}) | IN_MATCH


class Frame:
    """
    An evaluation of expressions written on one side; `flipped` is the same seen from the other, if there is a match.

    `rows` are the numbers of the rows that take part, None for all; positions count within them.
    """

    __slots__ = ("count", "flipped", "mine", "rows", "shared")

    def __init__(
        self, shared: Shared, rows: Integers | None, *, mine: bool, flipped: Frame | None = None
    ) -> None:
        self.shared = shared
        self.rows = rows
        self.mine = mine
        self.count = shared.count if rows is None else len(rows)
        self.flipped = flipped
        if flipped is None and shared.ad is not None:
            self.flipped = Frame(shared, rows, mine=not mine, flipped=self)

    def part(self, positions: Integers) -> Frame:
        """The frame for some of the rows."""
        rows = positions if self.rows is None else self.rows[positions]
        return Frame(self.shared, rows, mine=self.mine)

    # -- looking names up ----------------------------------------------------------------------------------------------

    def bare(self, key: str) -> Vector:
        """A name without a scope: here, by magic, or in the other ad."""
        return self._found(key, self._beyond)

    def selected(self, key: str) -> Vector:
        """A name selected from this ad."""
        return self._found(key, self._magic)

    def _magic(self, key: str) -> Vector:
        if key == "currenttime":
            self.shared.own = True
            return NOTHING_UNDEFINED if self.shared.now is None else of_value(self.shared.now)
        if key in _MAGIC:
            raise Unknown
        return NOTHING_UNDEFINED

    def _beyond(self, key: str) -> Vector:
        other = self.flipped
        if key == "currenttime" or key in _MAGIC:
            return self._magic(key)
        if other is None:
            self.shared.consulted.add(key)  # an ad that is not there lacks every name
            return NOTHING_UNDEFINED
        return other._found(key, _nowhere)  # noqa: SLF001 - the other half of this

    def _found(self, key: str, otherwise: Callable[[str], Vector]) -> Vector:
        shared = self.shared
        if not self.mine:
            ad = shared.ad
            stored = None if ad is None else ad.find(key)
            if stored is None:
                shared.consulted.add(key)
                return otherwise(key)
            shared.own = True
            return self.enter(key, stored) if isinstance(stored, Node) else of_value(stored)
        column = shared.table.columns.get(key)
        if shared.overlay:
            overlaid = shared.overlay.get(key)
            if overlaid is not None:
                shared.own = True
                if not isinstance(overlaid, Column):
                    return Vector(Tag.INTEGER, overlaid if self.rows is None else overlaid[self.rows])
                column = overlaid
        if column is None:
            return otherwise(key)
        kind = column.uniform(shared.count)
        if kind is None:
            return self._mixed(column, otherwise)
        if kind == Tag.EXPRESSION:
            return self._entered(key, shared.table.expressions[int(column.bits[0])])
        return self._uniform(column, kind)

    def _uniform(self, column: Column, kind: int) -> Vector:
        """The values of a column as if all of them were of this kind."""
        rows, count = self.rows, self.shared.count
        data: Reals | Booleans | Integers
        if kind == Tag.REAL:
            data = column.reals(count)
        elif kind == Tag.BOOLEAN:
            data = column.booleans(count)
        else:
            data = column.bits[:count]
        return Vector(kind, data, column=column) if rows is None else Vector(kind, data[rows])

    def _mixed(self, column: Column, otherwise: Callable[[str], Vector]) -> Vector:
        """Rows that differ in what they have: undefined here, nothing there, an expression elsewhere."""
        tags = column.tags[: self.shared.count] if self.rows is None else column.tags[self.rows]
        present = [tag for tag, count in enumerate(np.bincount(tags, minlength=TAGS)) if count]
        kinds = [tag for tag in present if tag in ORDINARY]
        if len(kinds) > 1:
            raise Partition([np.flatnonzero(tags == tag) for tag in present])
        vector = Vector(
            kinds[0] if kinds else Tag.UNDEFINED,
            self._uniform(column, kinds[0]).data if kinds else False,
            tags == Tag.UNDEFINED if Tag.UNDEFINED in present else False,
            tags == Tag.ERROR if Tag.ERROR in present else False,
        )
        if present == kinds:
            return vector
        known = (tags != Tag.ABSENT) & (tags != Tag.EXPRESSION)
        if Tag.ABSENT in present:
            absent = tags == Tag.ABSENT
            vector = self._joined(~absent, vector, otherwise(column.key))
            known |= absent
        if Tag.EXPRESSION in present:
            computed = self._expressions(column, np.flatnonzero(tags == Tag.EXPRESSION))
            vector = self._joined(known, vector, computed)
        return vector

    def _joined(self, chosen: Booleans, first: Vector, second: Vector) -> Vector:
        if not chosen.any():
            return second
        if Tag.UNDEFINED not in {first.kind, second.kind} and first.kind != second.kind:
            raise Partition([np.flatnonzero(chosen), np.flatnonzero(~chosen)])
        return merge(chosen, first, second)

    def _expressions(self, column: Column, positions: Integers) -> Vector:
        """What the expressions at these positions evaluate to, each distinct one for all its rows at once."""
        codes = column.bits[positions if self.rows is None else self.rows[positions]]
        distinct = np.unique(codes)
        expressions = self.shared.table.expressions
        if len(distinct) == 1 and len(positions) == self.count:
            return self._entered(column.key, expressions[int(distinct[0])])
        groups = [positions[codes == code] for code in distinct]
        vectors = [
            self.within(group, lambda part, code=code: part._entered(column.key, expressions[int(code)]))  # type: ignore[misc]  # noqa: SLF001
            for code, group in zip(distinct, groups, strict=True)
        ]
        return self.scattered(groups, vectors)

    def within(self, positions: Integers, run: Callable[[Frame], Vector]) -> Vector:
        """What `run` gives for some of the rows."""
        if len(positions) == self.count:
            return run(self)
        try:
            return run(self.part(positions))
        except Partition as partition:
            rest = np.setdiff1d(np.arange(self.count), positions)
            raise Partition([*(positions[group] for group in partition.groups), rest]) from None

    def scattered(self, groups: Sequence[Integers], vectors: Sequence[Vector]) -> Vector:
        """One vector of those of disjoint groups of positions; the other positions mean nothing."""
        kinds = {vector.kind for vector in vectors} - {Tag.UNDEFINED}
        if len(kinds) > 1:
            rest = np.setdiff1d(np.arange(self.count), np.concatenate(groups))
            raise Partition([*groups, rest] if len(rest) else groups)
        kind = kinds.pop() if kinds else Tag.UNDEFINED
        data: npt.NDArray[np.generic] = np.zeros(self.count, _DTYPES[kind])
        undefined, error = np.zeros(self.count, np.bool_), np.zeros(self.count, np.bool_)
        for group, vector in zip(groups, vectors, strict=True):
            if vector.kind == kind:
                if isinstance(vector.data, str):
                    raise Unknown  # the code of a constant is not known to the table
                data[group] = vector.data
            undefined[group], error[group] = vector.undefined, vector.error
        return Vector(kind, data, undefined, error)

    def _entered(self, key: str, stored: object) -> Vector:
        if isinstance(stored, Node):
            return self.enter(key, stored)
        if isinstance(stored, bool | int | float | str | Exceptional):
            return of_value(stored)
        raise Unknown

    def enter(self, key: str, expression: Node) -> Vector:
        """
        The value of an attribute of this side that is an expression; undefined within itself.

        Raises `Overrun` if the interpreter might run out of levels or steps.
        """
        shared = self.shared
        if not shared.path and self.rows is None and shared.plain:
            return self._remembered(key, expression)
        return self._enter(key, expression)

    def _enter(self, key: str, expression: Node) -> Vector:
        shared = self.shared
        mark = (self.mine, key)
        if mark in shared.path:
            return NOTHING_UNDEFINED
        kernel = shared.compile(expression)
        levels = kernel.height + 1
        shared.depth += levels
        shared.steps += kernel.size
        shared.path.append(mark)
        try:
            shared.check()
            shared.spend(kernel.size, self.count)
            return kernel.run(self)
        finally:
            shared.path.pop()
            shared.depth -= levels

    def _remembered(self, key: str, expression: Node) -> Vector:
        """
        What depends on nothing but the rows (a Rank by speed, say) is computed once for all autoclusters.
        """
        shared = self.shared
        known = shared.table.recall(expression, key, mine=self.mine)
        if known is not None and shared.holds_here(known):
            shared.steps += known.steps
            shared.check(known.levels)
            return known.vector
        shared.consulted, shared.own = set(), False
        shared.deepest, steps = shared.depth, shared.steps
        vector = self._enter(key, expression)
        if not shared.own:
            found = Remembered(
                expression=expression,
                version=shared.table.version,
                vector=vector,
                absent=frozenset(shared.consulted),
                overlaid=frozenset(shared.overlay),
                levels=shared.deepest - shared.depth,
                steps=shared.steps - steps,
            )
            shared.table.remember(found, key, mine=self.mine)
        return vector


_DTYPES: Final = {
    Tag.UNDEFINED: np.bool_,
    Tag.BOOLEAN: np.bool_,
    Tag.INTEGER: np.int64,
    Tag.REAL: np.float64,
    Tag.STRING: np.int64,
}


def _nowhere(_: str) -> Vector:
    return NOTHING_UNDEFINED


def frame_of(
    table: Table,
    compile_: Compile,
    *,
    my: ClassAd | None = None,
    target: ClassAd | None = None,
    rows: Integers | None = None,
    overlay: Overlay | None = None,
    context: Context = NOTHING,
    odd: bool = False,
    spending: Spending | None = None,
) -> Frame:
    """
    `my` and the rows as its targets, or the rows and `target` (if any) as theirs.

    `odd` says that the rows have attributes named like MY or TARGET.
    """
    shared = Shared(
        table, my if my is not None else target, context, overlay or {}, compile_, odd=odd, spending=spending
    )
    shared.begun_in_rows = my is None
    return Frame(shared, rows, mine=my is None)
