"""
One attribute of all rows: what kind of value each row has, and 64 bits of it.

Integers and reals are their own bits, booleans 0 and 1, strings and expressions the code under which they are interned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from kettle.classad.columnar.interning import Strings
    from kettle.classad.columnar.vector import Vector

    Integers: TypeAlias = npt.NDArray[np.int64]
    Reals: TypeAlias = npt.NDArray[np.float64]
    Booleans: TypeAlias = npt.NDArray[np.bool_]
    Tags: TypeAlias = npt.NDArray[np.uint8]


class Tag:
    """What stands behind a name in a row: plain integers, because they are compared in every operation."""

    ABSENT: Final = 0
    UNDEFINED: Final = 1
    ERROR: Final = 2
    BOOLEAN: Final = 3
    INTEGER: Final = 4
    REAL: Final = 5
    STRING: Final = 6
    EXPRESSION: Final = 7


TAGS: Final = 8

_COMPARED: Final = 64
"""So many results of comparisons a column keeps, each of one octet a row."""
ORDINARY: Final = (Tag.BOOLEAN, Tag.INTEGER, Tag.REAL, Tag.STRING)


class Classes(msgspec.Struct, frozen=True):
    """Rows by what they have: the class of each row, and one row of each class."""

    of: Integers
    examples: Integers


class Column:
    """
    `tags` and `bits` have room for more rows than there are; who asks says how many rows there are.
    `tag`, `word` and `real` are the same memory for who wants one row: an array hands out single values slowly.

    What is derived from them is kept until a row changes, which who changes one says by `stale`.
    """

    __slots__ = (
        "_booleans", "_classes", "_compared", "_floats", "_folded", "_kind", "_rows", "bits", "counts", "key", "name",
        "quiet", "real", "stale", "tag", "tags", "word"
    )  # fmt: skip

    def __init__(self, name: str, capacity: int, *, quiet: bool = False) -> None:
        self.name = name
        self.quiet = quiet
        self.key = name.lower()
        self._make_room(np.zeros(capacity, np.uint8), np.zeros(capacity, np.int64))
        self.counts = [0] * TAGS  # of all but the absent ones
        self.stale = False
        self._rows = -1
        self._kind: int | None = None
        self._booleans: Booleans | None = None
        self._folded: Integers | None = None
        self._floats: Reals | None = None
        self._classes: Classes | None = None
        self._compared: dict[tuple[str, type, object], Vector] = {}

    def grow(self, capacity: int) -> None:
        """Make room for so many rows; memory that no row uses is never touched, and so costs nothing."""
        used = np.flatnonzero(self.tags)
        tags, bits = np.zeros(capacity, np.uint8), np.zeros(capacity, np.int64)
        tags[used], bits[used] = self.tags[used], self.bits[used]
        self._make_room(tags, bits)

    def _make_room(self, tags: Tags, bits: Integers) -> None:
        self.tags, self.bits = tags, bits
        self.tag, self.word = tags.data, bits.data
        self.real = bits.view(np.float64).data

    def uniform(self, rows: int) -> int | None:
        """The kind that all rows have, if it is an ordinary one, or if all have the same expression."""
        if self.stale or rows != self._rows:
            self.stale = True
            self._refresh()
            self._rows = rows
            self._kind = next((tag for tag in ORDINARY if self.counts[tag] == rows), None)
            if rows and self.counts[Tag.EXPRESSION] == rows and len(self.classes(rows).examples) == 1:
                self._kind = Tag.EXPRESSION
        return self._kind

    def _refresh(self) -> None:
        if self.stale:
            self.stale, self._rows = False, -1
            self._booleans = self._folded = self._floats = self._classes = None
            self._compared.clear()

    def reals(self, rows: int) -> Reals:
        """The bits of `rows` rows as reals."""
        return self.bits[:rows].view(np.float64)

    def booleans(self, rows: int) -> Booleans:
        """The bits as truth values."""
        self._refresh()
        known = self._booleans
        if known is None or len(known) != rows:
            known = self._booleans = np.not_equal(self.bits[:rows], 0)
        return known

    def floats(self, rows: int) -> Reals:
        """Integers as reals."""
        self._refresh()
        if self._floats is None or len(self._floats) != rows:
            self._floats = self.bits[:rows].astype(np.float64)
        return self._floats

    def compared(self, comparison: tuple[str, type, object], rows: int) -> Vector | None:
        """How the values compare with a constant, as (operator, type, constant), if that is remembered."""
        return None if self.stale or self._rows != rows else self._compared.get(comparison)

    def remember(self, comparison: tuple[str, type, object], result: Vector) -> None:
        """Keep the result of a comparison: many autoclusters ask for the same architecture and amounts."""
        self._refresh()
        if len(self._compared) >= _COMPARED:
            self._compared.clear()
        self._compared[comparison] = result

    def folded(self, rows: int, strings: Strings) -> Integers:
        """The folds of the strings; meaningless in rows that have none."""
        self._refresh()
        if self._folded is None or len(self._folded) != rows:
            self._folded = strings.folds(np.where(self.tags[:rows] == Tag.STRING, self.bits[:rows], 0))
        return self._folded

    def classes(self, rows: int) -> Classes:
        """The rows by kind and value."""
        self._refresh()
        if self._classes is None or len(self._classes.of) != rows:
            self._classes = classify(self.bits[:rows], self.tags[:rows])
        return self._classes


def classify(bits: Integers, tags: Tags | None = None) -> Classes:
    """Rows with the same bits (and the same tag) are one class."""
    _, examples, of = np.unique(bits, return_index=True, return_inverse=True)
    values = Classes(of.astype(np.int64, copy=False), examples.astype(np.int64, copy=False))
    if tags is None or len(tags) == 0 or (tags == tags[0]).all():
        return values
    return combine(values, Classes(tags.astype(np.int64), np.arange(TAGS)))


def combine(first: Classes, second: Classes) -> Classes:
    """Rows that are together in both."""
    both = first.of * len(second.examples) + second.of
    _, examples, of = np.unique(both, return_index=True, return_inverse=True)
    return Classes(of.astype(np.int64, copy=False), examples.astype(np.int64, copy=False))
