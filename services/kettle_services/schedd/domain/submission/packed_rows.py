"""
The rows of a submission, packed: as lists they would take ten times the room, and most of them only wait.
"""

from collections.abc import Iterator, Sequence
from typing import Final, cast, overload

import msgspec

from kettle_wire.ads import Scalar

BLOCK: Final = 128
"""Rows that are packed together, and unpacked together when one is asked for."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[list[Scalar]]).decode


class PackedRows(Sequence[list[Scalar]]):
    """
    Rows by number. They are read in their order, mostly, so the block that was asked for last is kept as it is.
    """

    def __init__(self, rows: Sequence[list[Scalar]]) -> None:
        self._size = len(rows)
        self._blocks: Final = [
            _encode(rows[start : start + BLOCK])
            for start in (range(0, len(rows), BLOCK) if any(rows) else ())
        ]
        self._open = -1, list[list[Scalar]]()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[list[Scalar]]:
        return (self[number] for number in range(self._size))

    @overload
    def __getitem__(self, number: int) -> list[Scalar]: ...
    @overload
    def __getitem__(self, number: slice) -> list[list[Scalar]]: ...
    def __getitem__(self, number: int | slice) -> list[Scalar] | list[list[Scalar]]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(self._size))]
        if not 0 <= number < self._size:
            raise IndexError(f"row {number} of {self._size}")
        if not self._blocks:
            return []
        block, place = divmod(number, BLOCK)
        if self._open[0] != block:
            self._open = block, _decode(self._blocks[block])
        return self._open[1][place]

    def as_list(self) -> list[list[Scalar]]:
        """The rows themselves, for structs whose rows are lists on the wire: readers see no difference."""
        return cast("list[list[Scalar]]", self)
