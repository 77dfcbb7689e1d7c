"""
Ads as rows, their attributes as columns.

Rows are dense: what goes is replaced by the last row, so a row's number holds only until a row goes.
A table is the only place where its ads are kept: nine octets a value, and each string and expression once.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kettle.classad.ad import SIDES, ClassAd
from kettle.classad.columnar.cells import Cells
from kettle.classad.columnar.column import Column, Tag
from kettle.classad.values import Stored

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    import numpy.typing as npt

    from kettle.classad.columnar.vector import Vector
    from kettle.classad.nodes import Node
    from kettle_wire.ads.types import Ad, Scalar

_FIRST_CAPACITY: Final = 64
_ROOM_FOR_NAMES: Final = 5_000
"""So many names may be remembered in sets that no ad has any more."""
_REMEMBERED: Final = 64
"""So many expressions whose values are kept, each of up to nine octets a row."""


class Remembered(msgspec.Struct, frozen=True, eq=False):
    """
    The value of an expression in all rows, the same for any ad on the other side that has no name of `absent`.

    It looks at no attribute of `overlaid`, in whose place something stood when it was found.
    `levels` and `steps` are what finding it takes of an evaluation's budget.
    """

    expression: Node
    version: int
    vector: Vector
    absent: frozenset[str]
    overlaid: frozenset[str]
    levels: int
    steps: int


class _Shape(msgspec.Struct, frozen=True, eq=False):
    """The names that an ad has, in their order, and the columns that hold them."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]


_EMPTY: Final = _Shape((), ())


class Table(Cells):
    """
    Ads by key.

    `put` and `remove` keep it up to date.
    `version` differs whenever an ad does, `news` whenever one does in more than the attributes that are `quiet`.
    """

    def __init__(self, quiet: Iterable[str] = ()) -> None:
        super().__init__()
        self.columns: dict[str, Column] = {}
        self.keys: list[str] = []
        self._quiet = frozenset(name.lower() for name in quiet)
        self._rows: dict[str, int] = {}
        self._shape_of: list[_Shape] = []
        self._shapes: dict[tuple[str, ...], _Shape] = {(): _EMPTY}
        self._capacity = _FIRST_CAPACITY
        self._names = self._names_used = 0
        self._all_rows = np.arange(0)
        self._remembered: dict[tuple[int, str, bool], Remembered] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def row(self, key: str) -> int:
        """The number that the row has now; KeyError if there is no such ad."""
        return self._rows[key]

    # -- updates ------------------------------------------------------------------------------------------------

    def put(self, key: str, ad: Mapping[str, Scalar]) -> None:
        """Store an ad, a new one or in place of an earlier one; only differences are written."""
        row = self._rows.get(key)
        if row is None:
            row = self._append(key, _EMPTY)
        names = tuple(ad)
        before = self._shape_of[row]
        shape = before if before.names == names else self._reshape(row, names)
        for column, value in zip(shape.columns, ad.values(), strict=True):
            if not self.has(column, row, value):
                self.set(column, row, value)

    def change(self, key: str, attributes: Mapping[str, Scalar]) -> None:
        """Write some attributes of an ad, all of which it has.  KeyError if there is no such ad."""
        row = self._rows[key]
        for name, value in attributes.items():
            column = self.columns[name.lower()]
            if not self.has(column, row, value):
                self.set(column, row, value)

    def put_many(self, ads: Iterable[tuple[str, Mapping[str, Scalar]]]) -> None:
        """Do the same as `put` for each in turn; new ads of the same shape are written a column at a time."""
        fresh: dict[str, Mapping[str, Scalar]] = {}
        for key, ad in ads:
            if key in self._rows or key in fresh:
                self._extend(fresh)
                fresh = {}
                self.put(key, ad)
            else:
                fresh[key] = ad
        self._extend(fresh)

    def remove(self, key: str) -> None:
        """Remove an ad; the last row takes its number.  KeyError if there is none."""
        row, last = self._rows.pop(key), len(self.keys) - 1
        self.changed()
        for column in self._shape_of[row].columns:
            self.write(column, row, Tag.ABSENT, 0)
        if row != last:
            for column in set(self._shape_of[last].columns):  # a name may be there in two spellings
                column.write(row, column.tag[last], column.word[last])
                column.write(last, Tag.ABSENT, 0)
                column.stale = True
            self.keys[row], self._shape_of[row] = self.keys[last], self._shape_of[last]
            self._rows[self.keys[row]] = row
        self.keys.pop()
        self._shape_of.pop()

    # -- what is asked -----------------------------------------------------------------------------------------------

    def ad(self, row: int, keys: Iterable[str] | None = None) -> ClassAd:
        """The ad of a row, or as much of it as `keys` (lower case) names."""
        named: Iterable[tuple[str, Column]]
        if keys is None:
            shape = self._shape_of[row]
            named = zip(shape.names, shape.columns, strict=True)
        else:
            named = ((key, column) for key in keys if (column := self.columns.get(key)) is not None)
        ad = ClassAd()
        for name, column in named:
            stored = self.stored(column, row)
            if stored is not None:
                ad[name] = stored
        return ad

    def wire(self, row: int, keys: Container[str] | None = None) -> Ad:
        """The ad of a row as it travels, or as much of it as `keys` (lower case) names."""
        shape = self._shape_of[row]
        return {
            name: self.scalar(column, row)
            for name, column in zip(shape.names, shape.columns, strict=True)
            if keys is None or column.key in keys
        }

    def expressed(self, name: str) -> npt.NDArray[np.bool_]:
        """In which rows an attribute is an expression, not a plain value."""
        expressed: npt.NDArray[np.bool_] = self._tags(name) == Tag.EXPRESSION
        return expressed

    def present(self, name: str, some: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.bool_]:
        """Which rows, of all or of some, have an attribute."""
        present: npt.NDArray[np.bool_] = self._tags(name, some) != Tag.ABSENT
        return present

    def _tags(self, name: str, some: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint8]:
        rows = len(self.keys)
        column = self.columns.get(name.lower())
        if column is None:
            return np.full(rows if some is None else len(some), Tag.ABSENT, np.uint8)
        return column.tags[slice(rows) if some is None else some]

    def value(self, row: int, name: str) -> Stored | None:
        """What an ad says behind a name, as in `stored`."""
        column = self.columns.get(name.lower())
        return None if column is None else self.stored(column, row)

    def with_instead(self, name: str, instead: str) -> Column:
        """
        The column of attribute `name`, for as long as the table does not change, as if `instead` were it where it is there.
        """
        return self.columns[name.lower()].beneath(self.columns[instead.lower()], len(self.keys))

    def expressions_of(self, column: Column) -> list[Stored]:
        """The distinct expressions of a column."""
        rows = len(self.keys)
        codes = np.unique(column.bits[:rows][column.tags[:rows] == Tag.EXPRESSION])
        return [self.expressions[int(code)] for code in codes]

    def numbers(self, name: str, some: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.float64]:
        """An attribute of all rows, or of some, as numbers; not a number where it is none."""
        rows = len(self.keys)
        column = self.columns.get(name.lower())
        if column is None:
            return np.full(rows if some is None else len(some), np.nan)
        which = slice(rows) if some is None else some
        tags, bits = column.tags[which], column.bits[which]
        integers = tags == Tag.INTEGER
        if integers.all():
            return bits.astype(np.float64)
        reals = tags == Tag.REAL
        numbers = np.where(reals, bits.view(np.float64), bits.astype(np.float64))
        return np.where(integers | reals, numbers, np.nan)

    @property
    def all_rows(self) -> npt.NDArray[np.int64]:
        """The numbers of all rows."""
        if len(self._all_rows) != len(self.keys):
            self._all_rows = np.arange(len(self.keys))
        return self._all_rows

    def recall(self, expression: Node, key: str, *, mine: bool) -> Remembered | None:
        """
        What is remembered of an expression behind a name, written in the rows (`mine`) or in the other ad.
        """
        known = self._remembered.get((id(expression), key, mine))
        return known if known is not None and known.version == self.version else None

    def remember(self, found: Remembered, key: str, *, mine: bool) -> None:
        """Keep the value of an expression until an ad changes."""
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        self._remembered[id(found.expression), key, mine] = found

    def odd_rows(self) -> npt.NDArray[np.bool_] | None:
        """Which rows have an attribute named like MY or TARGET; None if none has."""
        if self.columns.keys().isdisjoint(SIDES):
            return None
        rows = len(self.keys)
        odd = np.zeros(rows, np.bool_)
        for column in (self.columns[name] for name in SIDES if name in self.columns):
            odd |= column.tags[:rows] != Tag.ABSENT
        return odd if odd.any() else None

    def says(self, name: str, text: str) -> npt.NDArray[np.bool_]:
        """In which rows an attribute is this very string."""
        rows = len(self.keys)
        column = self.columns.get(name.lower())
        if column is None:
            return np.zeros(rows, np.bool_)
        literal: npt.NDArray[np.bool_] = column.tags[:rows] == Tag.STRING
        same: npt.NDArray[np.bool_] = column.bits[:rows] == self.strings.code(text)
        return literal & same

    def truths(self, name: str, some: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.bool_]:
        """In which rows, of all or of some, an attribute is the literal true."""
        rows = len(self.keys)
        column = self.columns.get(name.lower())
        if column is None:
            return np.zeros(rows if some is None else len(some), np.bool_)
        which = slice(rows) if some is None else some
        literal: npt.NDArray[np.bool_] = column.tags[which] == Tag.BOOLEAN
        true: npt.NDArray[np.bool_] = column.bits[which] != 0
        return true & literal

    # -- how it is kept ----------------------------------------------------------------------------------------------

    def _append(self, key: str, shape: _Shape) -> int:
        self.changed()
        row = self._rows[key] = len(self.keys)
        self.keys.append(key)
        self._shape_of.append(shape)
        if row >= self._capacity:
            self._capacity *= 2
            for column in self.columns.values():
                column.grow(self._capacity)
        return row

    def _extend(self, fresh: Mapping[str, Mapping[str, Scalar]]) -> None:
        for names, group in groupby(fresh.items(), key=lambda item: tuple(item[1])):
            shape, ads = self._shape(names), list(group)
            if len(set(shape.columns)) != len(names):  # one name in two spellings: the last one counts
                for key, ad in ads:
                    self.put(key, ad)
                continue
            first = len(self.keys)
            for key, _ in ads:
                self._append(key, shape)
            for column, values in zip(
                shape.columns, zip(*(ad.values() for _, ad in ads), strict=True), strict=True
            ):
                self.fill(column, first, values)

    def _reshape(self, row: int, names: tuple[str, ...]) -> _Shape:
        """The row has other names from now on: what is no longer there goes."""
        shape, before = self._shape(names), self._shape_of[row]
        for column in set(before.columns).difference(shape.columns):
            self.write(column, row, Tag.ABSENT, 0)
        self._shape_of[row] = shape
        return shape

    def _shape(self, names: tuple[str, ...]) -> _Shape:
        shape = self._shapes.get(names)
        if shape is None:
            self._names += len(names)
            if self._names > self._names_used * 2 + _ROOM_FOR_NAMES:
                self._tidy()
            shape = self._shapes[names] = _Shape(names, tuple(self._column(name) for name in names))
        return shape

    def _tidy(self) -> None:
        """Forget shapes and columns that no ad has any more."""
        shapes = {shape.names: shape for shape in self._shape_of}
        used = {column.key for shape in shapes.values() for column in shape.columns}
        self._shapes = {**shapes, (): _EMPTY}
        self._names = self._names_used = sum(map(len, shapes))
        self.columns = {key: column for key, column in self.columns.items() if key in used}

    def _column(self, name: str) -> Column:
        key = name.lower()
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = Column(name, self._capacity, quiet=key in self._quiet)
        return column
