"""
Where the figures of a picture stand: levels from top to bottom, and in each the figures so that arrows cross little.

Lengths are those of a picture, in its own units (CSS pixels).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.dag.view.figures import Picture

BOX: Final = (150, 46)
"""Width and height of a figure."""
GAP: Final = (18, 44)
"""Between two figures of a level, and between two levels."""
MARGIN: Final = 8
_SWEEPS: Final = 4


class Placed(msgspec.Struct, frozen=True):
    """A picture with places."""

    width: int
    height: int
    corners: Sequence[tuple[float, float]]
    """By figure its upper left corner."""


def placed(picture: Picture) -> Placed:
    """Where the figures stand."""
    by_level: defaultdict[int, list[int]] = defaultdict(list)
    for place, figure in enumerate(picture.figures):
        by_level[figure.level].append(place)
    rows = [by_level[level] for level in sorted(by_level)]
    _arrange(rows, *_neighbours(picture))
    step = BOX[0] + GAP[0]
    width = max((len(row) for row in rows), default=1) * step - GAP[0]
    corners = [(0.0, 0.0)] * len(picture.figures)
    for level, row in enumerate(rows):
        left = (width - (len(row) * step - GAP[0])) / 2
        for place, of_figure in enumerate(row):
            corners[of_figure] = (MARGIN + left + place * step, MARGIN + level * (BOX[1] + GAP[1]))
    height = len(rows) * (BOX[1] + GAP[1]) - GAP[1]
    return Placed(width + 2 * MARGIN, height + 2 * MARGIN, corners)


def _neighbours(picture: Picture) -> tuple[Mapping[int, list[int]], Mapping[int, list[int]]]:
    parents: defaultdict[int, list[int]] = defaultdict(list)
    children: defaultdict[int, list[int]] = defaultdict(list)
    for arrow in picture.arrows:
        parents[arrow.child].append(arrow.parent)
        children[arrow.parent].append(arrow.child)
    return parents, children


def _arrange(
    rows: Sequence[list[int]], parents: Mapping[int, list[int]], children: Mapping[int, list[int]]
) -> None:
    """Each figure goes to the middle of those that it is joined to, from above and from below by turns."""
    where = {figure: _middle(place, row) for row in rows for place, figure in enumerate(row)}
    for sweep in range(_SWEEPS):
        near = children if sweep % 2 else parents
        for row in reversed(rows) if sweep % 2 else rows:
            wanted = {
                figure: _mean([where[each] for each in near.get(figure, ())], where[figure]) for figure in row
            }
            row.sort(key=wanted.__getitem__)
            where.update((figure, _middle(place, row)) for place, figure in enumerate(row))


def _middle(place: int, row: Sequence[int]) -> float:
    return place - (len(row) - 1) / 2


def _mean(places: Sequence[float], otherwise: float) -> float:
    return sum(places) / len(places) if places else otherwise
