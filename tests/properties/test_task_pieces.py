"""Pieces of task queues are what a look at each single task makes of them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kettle_services.sessions.domain.task_queues.pieces import Piece, numbers, parts_of, without
from kettle_wire.task_queues import TaskRange

MOST = 30
cuts = st.lists(st.integers(1, MOST), unique=True).map(sorted)


@st.composite
def ranges(draw: st.DrawFn) -> list[TaskRange]:
    """Some that have no task in common, in any order."""
    borders = [1, *draw(cuts), MOST + 1]
    every = [TaskRange(first, end - 1) for first, end in pairwise(borders) if first < end]
    return draw(st.permutations([each for each in every if draw(st.booleans())]))


@st.composite
def pieces(draw: st.DrawFn) -> list[Piece]:
    """Some that have no task in common, in any order, with different pasts."""
    return [Piece(each.first, each.last, draw(st.integers(0, 3))) for each in draw(ranges())]


def single(found: tuple[Piece, ...] | list[Piece]) -> list[Piece]:
    """One for each task."""
    return [Piece(number, number, each.tries) for each in found for number in numbers([each.tasks])]


@given(pieces(), ranges())
def test_what_is_taken_and_what_is_left_of_pieces_is_all_of_them(
    known: list[Piece], tasks: list[TaskRange]
) -> None:
    """Each task as it was, in the order of the pieces, and each piece in no more parts than it has to be."""
    taken = set(numbers(tasks))
    left, gone = without(known, tasks), parts_of(known, tasks)
    assert [each for each in single(known) if each.first not in taken] == single(left)
    assert [each for each in single(known) if each.first in taken] == single(gone)
    assert len(left) + len(gone) <= len(known) + 2 * len(tasks)
