"""Single values in columns: read, compared, written, and what they share counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kettle.classad.columnar.column import Column, Tag
from kettle.classad.columnar.interning import Expressions, Strings
from kettle.classad.values import ERROR, UNDEFINED, Exceptional, Stored, wrapped
from kettle_wire.ads.types import Expr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kettle_wire.ads.types import Scalar

_PLAIN: Final[Mapping[type, tuple[int, type]]] = {
    bool: (Tag.BOOLEAN, np.int64),
    int: (Tag.INTEGER, np.int64),
    float: (Tag.REAL, np.float64),
}


class Cells:
    """
    What the values of a table have in common.

    `version` differs whenever a value does, `news` whenever one does whose column is not quiet.
    """

    def __init__(self) -> None:
        self.strings = Strings()
        self.expressions = Expressions()
        self.version = 0
        self.news = 0

    def stored(self, column: Column, row: int) -> Stored | None:
        """What stands behind the column's name in a row; None if nothing does."""
        tag = column.tag[row]
        if tag == Tag.INTEGER:
            return column.word[row]
        if tag == Tag.REAL:
            return column.real[row]
        if tag == Tag.STRING:
            return self.strings[column.word[row]]
        if tag == Tag.BOOLEAN:
            return column.word[row] != 0
        if tag == Tag.EXPRESSION:
            return self.expressions[column.word[row]]
        return (None, UNDEFINED, ERROR)[tag]

    def scalar(self, column: Column, row: int) -> Scalar:
        """The value of a row that has one, in its wire form: an expression as its original text."""
        tag = column.tag[row]
        if tag == Tag.EXPRESSION:
            return Expr(self.expressions.text(column.word[row]))
        stored = self.stored(column, row)
        return (
            stored if isinstance(stored, bool | int | float | str) else Expr(("", "undefined", "error")[tag])
        )

    def has(self, column: Column, row: int, value: Scalar) -> bool:
        """Whether a row says this already; nearly always it does, and then nothing else is done."""
        tag, kind = column.tag[row], type(value)
        if kind is str:
            return tag == Tag.STRING and column.word[row] == self.strings.code(value)  # type: ignore[arg-type]
        if kind is int:
            return tag == Tag.INTEGER and column.word[row] == value
        if kind is bool:
            return tag == Tag.BOOLEAN and column.word[row] == value
        if kind is float:
            return tag == Tag.REAL and value != 0.0 and column.real[row] == value  # there are two zeros
        return (
            isinstance(value, Expr)
            and tag == Tag.EXPRESSION
            and column.word[row] == self.expressions.code(value.expr)
        )

    def set(self, column: Column, row: int, value: Scalar | Stored) -> None:
        """Write a value, as it came or as it was found."""
        if isinstance(value, bool):
            self.write(column, row, Tag.BOOLEAN, int(value))
        elif isinstance(value, int):
            self.write(column, row, Tag.INTEGER, wrapped(value))
        elif isinstance(value, str):
            self.write(column, row, Tag.STRING, self.strings.take(value))
        elif isinstance(value, float):
            self.write(column, row, Tag.REAL, int(np.float64(value).view(np.int64)))
        elif isinstance(value, Expr):
            code = self.expressions.take(value.expr)
            stored = self.expressions[code]
            if isinstance(stored, bool | int | float | str | Exceptional):
                self.expressions.drop(code)
                self.set(column, row, stored)
            else:
                self.write(column, row, Tag.EXPRESSION, code)
        else:
            self.write(column, row, Tag.UNDEFINED if value is UNDEFINED else Tag.ERROR, 0)

    def write(self, column: Column, row: int, tag: int, bits: int) -> None:
        """What a string or an expression that is written uses has been counted; what it replaces goes."""
        before, old = column.tag[row], column.word[row]
        if before == Tag.STRING:
            self.strings.drop(old)
        elif before == Tag.EXPRESSION:
            self.expressions.drop(old)
        if before == tag and old == bits:
            return
        column.write(row, tag, bits)
        column.counts[before] -= before != Tag.ABSENT
        column.counts[tag] += tag != Tag.ABSENT
        if tag == Tag.ABSENT and not any(column.counts):
            column.forget()
        column.stale = True
        self.version += 1
        self.news += not column.quiet

    def fill(self, column: Column, first: int, values: Sequence[Scalar]) -> None:
        """Write a column's values of new rows."""
        last = first + len(values)
        kind, *others = set(map(type, values))
        if others or kind is Expr or (kind is int and any(wrapped(v) != v for v in values)):  # type: ignore[arg-type]
            for row, value in enumerate(values, first):
                self.set(column, row, value)
            return
        column.make_room()
        if kind is str:
            tag = Tag.STRING
            column.bits[first:last] = [self.strings.take(text) for text in values if isinstance(text, str)]
        else:
            tag, dtype = _PLAIN[kind]
            column.bits[first:last] = np.array(values, dtype).view(np.int64)
        column.tags[first:last] = tag
        column.counts[tag] += last - first
        column.stale = True

    def changed(self) -> None:
        """An ad came or went."""
        self.version += 1
        self.news += 1
