"""
Where the figures of a picture stand: levels from top to bottom, and in each the figures so that arrows cross little.

An arrow over several levels takes a narrow place in each that it passes, so that it leads between figures and not behind them.
Lengths are those of a picture, in its own units (CSS pixels).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle.dag.view.figures import Picture

BOX: Final = (150, 46)
"""Width and height of a figure."""
GAP: Final = (18, 44)
"""Between two figures of a level, and between two levels."""
MARGIN: Final = 8
_SWEEPS: Final = 4
_LANE: Final = 6
"""Width of the place of an arrow that passes a level."""
_MOST_LANES: Final = 3_000
"""Of a picture; if there were more, arrows over several levels pass behind figures."""

Point = tuple[float, float]


class Placed(msgspec.Struct, frozen=True):
    """A picture with places."""

    width: int
    height: int
    corners: Sequence[Point]
    """By figure its upper left corner."""
    ways: Sequence[Sequence[Point]]
    """By arrow where it enters the levels that it passes, at the height of their figures' upper edges."""


def placed(picture: Picture) -> Placed:
    """Where the figures stand."""
    rows = _Rows(picture)
    rows.arrange()
    width = max((row.width for row in rows.rows), default=BOX[0])
    x = {
        item: MARGIN + (width - row.width) / 2 + left
        for row in rows.rows
        for item, left in row.places().items()
    }
    y = {
        item: MARGIN + level * (BOX[1] + GAP[1]) for level, row in enumerate(rows.rows) for item in row.items
    }
    figures = range(len(picture.figures))
    height = max(len(rows.rows), 1) * (BOX[1] + GAP[1]) - GAP[1]
    return Placed(
        int(width) + 2 * MARGIN,
        height + 2 * MARGIN,
        [(x[figure], y[figure]) for figure in figures],
        [[(x[lane] + _LANE / 2, y[lane]) for lane in lanes] for lanes in rows.lanes],
    )


class _Row:
    """One level: figures, and behind their numbers those of lanes."""

    def __init__(self, figures: int) -> None:
        self._figures = figures
        self.items: list[int] = []

    @property
    def width(self) -> float:
        return sum(map(self._width, self.items)) + GAP[0] * max(len(self.items) - 1, 0)

    def places(self) -> dict[int, float]:
        """By item how far it is from the left end of the row."""
        found: dict[int, float] = {}
        left = 0.0
        for item in self.items:
            found[item] = left
            left += self._width(item) + GAP[0]
        return found

    def middles(self) -> Iterator[tuple[int, float]]:
        """By item how far its middle is from that of the row."""
        half = self.width / 2
        return ((item, left + self._width(item) / 2 - half) for item, left in self.places().items())

    def _width(self, item: int) -> float:
        return BOX[0] if item < self._figures else _LANE


class _Rows:
    """All levels of a picture."""

    def __init__(self, picture: Picture) -> None:
        count = len(picture.figures)
        levels = {level: row for row, level in enumerate(sorted({each.level for each in picture.figures}))}
        self.rows = [_Row(count) for _ in levels]
        row_of = [levels[each.level] for each in picture.figures]
        for figure, row in enumerate(row_of):
            self.rows[row].items.append(figure)
        passed = [range(row_of[each.parent] + 1, row_of[each.child]) for each in picture.arrows]
        has_lanes = sum(map(len, passed)) <= _MOST_LANES
        self.lanes: list[list[int]] = []
        self._parents: defaultdict[int, list[int]] = defaultdict(list)
        self._children: defaultdict[int, list[int]] = defaultdict(list)
        for arrow, rows in zip(picture.arrows, passed, strict=True):
            lanes: list[int] = []
            for row in rows if has_lanes else ():
                lanes.append(count)
                self.rows[row].items.append(count)
                count += 1
            self.lanes.append(lanes)
            for parent, child in zip([arrow.parent, *lanes], [*lanes, arrow.child], strict=True):
                self._parents[child].append(parent)
                self._children[parent].append(child)

    def arrange(self) -> None:
        """Each item goes to the middle of those that it is joined to, from above and from below by turns."""
        where = {item: middle for row in self.rows for item, middle in row.middles()}
        for sweep in range(_SWEEPS):
            near: Mapping[int, list[int]] = self._children if sweep % 2 else self._parents
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                wanted = {
                    item: _mean([where[each] for each in near.get(item, ())], where[item])
                    for item in row.items
                }
                row.items.sort(key=wanted.__getitem__)
                where.update(row.middles())


def _mean(places: Sequence[float], otherwise: float) -> float:
    return sum(places) / len(places) if places else otherwise
