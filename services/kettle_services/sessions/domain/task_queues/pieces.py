"""Pieces of a task queue: tasks whose numbers follow each other and that have had the same happen to them."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kettle_wire.task_queues import TaskRange

_SHRINK: Final = 8
"""By so much a lease of tasks that have lost a worker is smaller than the one before."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """
    Tasks, first and last inclusive.

    `tries`: how often each has failed. `losses`: how often it was among those of a worker that was lost.
    """

    first: int
    last: int
    tries: int = 0
    losses: int = 0

    @property
    def count(self) -> int:
        """How many tasks it has."""
        return self.last - self.first + 1

    @property
    def tasks(self) -> TaskRange:
        """Their numbers alone."""
        return TaskRange(self.first, self.last)


def counted(pieces: Iterable[Piece | TaskRange]) -> int:
    """How many tasks there are in them."""
    return sum(each.last - each.first + 1 for each in pieces)


def numbers(ranges: Iterable[TaskRange]) -> Iterator[int]:
    """The number of each task, in order."""
    for each in ranges:
        yield from range(each.first, each.last + 1)


def taken(pending: Sequence[Piece], want: int) -> list[Piece]:
    """
    What a worker gets from the front that has room for so many tasks.

    Tasks that have lost a worker come in smaller and smaller leases, and in the end alone: so the one that is the cause of it is
    found, and no other is given up for it.
    """
    found: list[Piece] = []
    for each in pending:
        if found and (each.losses or found[0].losses):
            break
        most = max(1, want // _SHRINK**each.losses) if each.losses else want
        part = msgspec.structs.replace(each, last=min(each.last, each.first + most - 1))
        found.append(part)
        want -= part.count
        if want <= 0 or part.last < each.last:
            break
    return found


def shared(
    pieces: Iterable[Piece], tasks: Iterable[TaskRange]
) -> Iterator[tuple[Piece, list[tuple[int, int]]]]:
    """
    Each piece, with the first and last of what it has of these tasks, in ascending order; no task is in two pieces or two ranges.

    Ranges are looked up: tasks that fail here and there come as thousands of pieces, and are reported as thousands of ranges.
    """
    ranges = sorted((each.first, each.last) for each in tasks)
    lasts = [last for _, last in ranges]
    for piece in pieces:
        own: list[tuple[int, int]] = []
        for at in range(bisect_left(lasts, piece.first), len(ranges)):
            first, last = ranges[at]
            if first > piece.last:
                break
            own.append((max(first, piece.first), min(last, piece.last)))
        yield piece, own


def without(pieces: Iterable[Piece], tasks: Iterable[TaskRange]) -> tuple[Piece, ...]:
    """What is left of pieces without these tasks; both may be in any order."""
    left: list[Piece] = []
    for piece, gone in shared(pieces, tasks):
        begin = piece.first
        for first, last in gone:
            if first > begin:
                left.append(msgspec.structs.replace(piece, first=begin, last=first - 1))
            begin = last + 1
        if begin <= piece.last:
            left.append(msgspec.structs.replace(piece, first=begin) if gone else piece)
    return tuple(left)


def parts_of(pieces: Iterable[Piece], tasks: Iterable[TaskRange]) -> list[Piece]:
    """
    These tasks as the pieces have them, in the order of the pieces; those that are in none are left out.
    """
    return [
        msgspec.structs.replace(piece, first=first, last=last)
        for piece, own in shared(pieces, tasks)
        for first, last in own
    ]


def joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """These tasks in as few pieces as possible, by their numbers."""
    found: list[Piece] = []
    for each in sorted(pieces, key=lambda piece: piece.first):
        before = found[-1] if found else None
        if before and (before.last + 1, before.tries, before.losses) == (each.first, each.tries, each.losses):
            found[-1] = msgspec.structs.replace(before, last=each.last)
        else:
            found.append(each)
    return tuple(found)


def ranges_of(tasks: Iterable[int]) -> list[TaskRange]:
    """Numbers that come in ascending order, as ranges."""
    found: list[TaskRange] = []
    for each in tasks:
        if found and found[-1].last + 1 == each:
            found[-1] = TaskRange(found[-1].first, each)
        else:
            found.append(TaskRange(each, each))
    return found
