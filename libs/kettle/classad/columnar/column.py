"""
One attribute of all rows: what kind of value each row has, and 64 bits of it.

Integers and reals are their own bits, booleans 0 and 1, strings and expressions the code under which they are interned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

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

_N = TypeVar("_N", bound=np.generic)
_SMALL: Final = 64
"""So many rows are an array at once."""
_RARE: Final = 32
"""What less than one row in so many has is no array."""
_COMPARED: Final = 64
"""So many results of comparisons a column keeps, each of one octet a row."""
ORDINARY: Final = (Tag.BOOLEAN, Tag.INTEGER, Tag.REAL, Tag.STRING)


class Classes(msgspec.Struct, frozen=True):
    """Rows by what they have: the class of each row, and one row of each class."""

    of: Integers
    examples: Integers


class _Few(dict[int, int]):
    """What few rows have; the others have nothing."""

    def __missing__(self, _: int) -> int:
        return 0


class _Reals:
    """The 64-bit values of few rows as reals."""

    def __init__(self, words: _Few) -> None:
        self._words = words

    def __getitem__(self, row: int) -> float:
        return float(np.int64(self._words[row]).view(np.float64))


class Column:
    """
    `tags` and `bits` have room for more rows than there are; callers say how many rows there are.
    `tag`, `word` and `real` are the same memory for access to single rows: an array hands out single values slowly.

    An attribute of few rows (which one machine made up) is not stored as an array until an expression uses it, and only
    as long as it does: names must cost no more than their values.

    Derived values are kept until a row changes, which is reported by `stale`.
    """

    __slots__ = (
        "_bits", "_booleans", "_capacity", "_classes", "_compared", "_floats", "_folded", "_kind", "_rows", "_tags",
        "counts", "key", "name", "quiet", "real", "stale", "tag", "word"
    )  # fmt: skip

    def __init__(self, name: str, capacity: int, *, quiet: bool = False) -> None:
        self.name = name
        self.quiet = quiet
        self.key = name.lower()
        self._capacity = capacity
        self.forget()
        self.counts = [0] * TAGS  # of all but the absent ones
        self.stale = False
        self._rows = -1
        self._kind: int | None = None
        self._booleans: Booleans | None = None
        self._folded: Integers | None = None
        self._floats: Reals | None = None
        self._classes: Classes | None = None
        self._compared: dict[tuple[str, type, object], Vector] = {}

    def forget(self) -> None:
        """No row has anything."""
        few = _Few()
        self._tags: Tags | None = None
        self._bits: Integers | None = None
        self.tag: _Few | memoryview = few
        self.word: _Few | memoryview = _Few()
        self.real: _Reals | memoryview = _Reals(self.word)
        if self._capacity <= _SMALL:
            self.make_room()

    def grow(self, capacity: int) -> None:
        """Make room for so many rows."""
        few = self._tags is None
        tags, bits = self.tags, self.bits
        self._capacity = capacity
        if not few:
            self._settle(np.resize(tags, capacity), np.resize(bits, capacity), len(tags))

    def make_room(self) -> None:
        """Become arrays, permanently."""
        if self._tags is None:
            self._settle(self.tags, self.bits, self._capacity)

    def _settle(self, tags: Tags, bits: Integers, used: int) -> None:
        tags[used:], bits[used:] = 0, 0
        self._tags, self._bits = tags, bits
        self.tag, self.word, self.real = tags.data, bits.data, bits.view(np.float64).data

    def write(self, row: int, tag: int, word: int) -> None:
        """Write one row."""
        if isinstance(self.tag, _Few) and isinstance(self.word, _Few):
            if tag == Tag.ABSENT:
                self.tag.pop(row, None)
                self.word.pop(row, None)
                return
            self.tag[row], self.word[row] = tag, word
            if len(self.tag) * _RARE > self._capacity:
                self.make_room()
        else:
            self.tag[row], self.word[row] = tag, word

    def beneath(self, other: Column, rows: int) -> Column:
        """A column by this name of what `other` has, and where that has nothing, of what this has."""
        there = other.tags[:rows] != Tag.ABSENT
        both = Column(self.name, rows)
        tags = np.where(there, other.tags[:rows], self.tags[:rows])
        both._settle(tags, np.where(there, other.bits[:rows], self.bits[:rows]), rows)
        both.counts = np.bincount(tags, minlength=TAGS).tolist()
        both.counts[Tag.ABSENT] = 0
        return both

    @classmethod
    def of_reals(cls, name: str, values: Reals) -> Column:
        """A column of numbers; absent where there is none (NaN)."""
        rows = len(values)
        column = cls(name, rows)
        tags = np.where(np.isnan(values), Tag.ABSENT, Tag.REAL).astype(np.uint8)
        column._settle(tags, np.where(np.isnan(values), 0.0, values).view(np.int64).copy(), rows)
        column.counts = np.bincount(tags, minlength=TAGS).tolist()
        column.counts[Tag.ABSENT] = 0
        return column

    @property
    def tags(self) -> Tags:
        """What each row has."""
        return self._array(np.zeros(self._capacity, np.uint8), self.tag) if self._tags is None else self._tags

    @property
    def bits(self) -> Integers:
        """The values of all rows."""
        return (
            self._array(np.zeros(self._capacity, np.int64), self.word) if self._bits is None else self._bits
        )

    @staticmethod
    def _array(array: npt.NDArray[_N], few: _Few | memoryview) -> npt.NDArray[_N]:
        assert isinstance(few, _Few), "arrays are there already"
        for row, value in few.items():
            array[row] = value
        return array

    def uniform(self, rows: int) -> int | None:
        """The kind that all rows have, if it is an ordinary one, or if all have the same expression."""
        if self.stale or rows != self._rows:
            self._derive_anew()
            self._rows = rows
            self._kind = next((tag for tag in ORDINARY if self.counts[tag] == rows), None)
            if rows and self.counts[Tag.EXPRESSION] == rows and len(self.classes(rows).examples) == 1:
                self._kind = Tag.EXPRESSION
        return self._kind

    def _refresh(self) -> None:
        if self.stale:
            self._derive_anew()

    def _derive_anew(self) -> None:
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
