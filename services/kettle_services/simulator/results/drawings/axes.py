"""A frame with two axes, and what is drawn in it, as SVG."""

import html
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from kettle_services.simulator.results.result import Cells

WIDTH: Final = 960
HEIGHT: Final = 360
LEFT: Final = 90
RIGHT: Final = 150
TOP: Final = 40
BOTTOM: Final = 46
COLOURS: Final = (
    "#1d5ca6", "#b58a1b", "#0a6847", "#a9341d", "#7b4fb5", "#7f9cc0", "#d7bb6d", "#3f8f74", "#d99b8d", "#555555",
)  # fmt: skip
_TICKS: Final = 6
_UNITS: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_MOST_NAMES: Final = 22


class Axes:
    """
    One drawing: `across` and `up` are the ends of the axes, in units of what is drawn; the left one is 0 if nothing else is said.
    """

    def __init__(
        self,
        title: str,
        *,
        across: float,
        up: float,
        up_title: str = "",
        height: int = HEIGHT,
        unit: str = "",
    ) -> None:
        self.across, self.up = across or 1.0, up or 1.0
        self.height = height
        self._unit = unit
        self._parts = [
            f'<text x="{LEFT}" y="20" font-size="14">{html.escape(title)}</text>',
            f'<text x="{LEFT}" y="{TOP - 6}" fill="#555555">{html.escape(up_title)}</text>',
        ]

    def x(self, value: Cells | float) -> Cells:
        """Pixels from the left edge."""
        return np.asarray(LEFT + np.asarray(value) / self.across * (WIDTH - LEFT - RIGHT), dtype=np.float64)

    def y(self, value: Cells | float) -> Cells:
        """Pixels from the upper edge."""
        below = self.height - BOTTOM
        return np.asarray(below - np.asarray(value) / self.up * (below - TOP), dtype=np.float64)

    def time_axis(self) -> None:
        """Below, in the largest unit that gives some whole numbers; the values are seconds."""
        size, name = next(
            ((size, name) for size, name in _UNITS if self.across >= 2 * size), (self.across / 2 or 1.0, "s")
        )
        size = size if name != "s" or self.across >= 2 else 1.0
        for value in ticks(self.across / size):
            self._below(value * size, f"{value:g} {name}")

    def number_axis(self) -> None:
        """On the left, with lines across."""
        for value in ticks(self.up):
            y = float(self.y(value))
            self._parts.append(
                f'<path d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}" stroke="#e2e2e2"/>'
                f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}{self._unit}</text>'
            )

    def names(self, names: Sequence[str]) -> None:
        """On the left, one for each row from above; of many only some."""
        every = -(-len(names) // _MOST_NAMES)
        row = (self.height - BOTTOM - TOP) / max(len(names), 1)
        for number in range(0, len(names), every):
            y = TOP + (number + 0.5) * row + 4
            self._parts.append(
                f'<text x="{LEFT - 6}" y="{y:.1f}" text-anchor="end">{html.escape(names[number][-14:])}</text>'
            )

    def legend(self, names: Iterable[str]) -> None:
        """On the right, in the order of the colours; what has no colour of its own shares the last one."""
        for number, name in enumerate(names):
            if TOP + 16 * number > self.height - BOTTOM:
                break
            self._parts.append(
                f'<rect x="{WIDTH - RIGHT + 12}" y="{TOP + 16 * number}" width="10" height="10" '
                f'fill="{colour(number)}"/><text x="{WIDTH - RIGHT + 28}" y="{TOP + 16 * number + 9}">'
                f"{html.escape(name[:18])}</text>"
            )

    def curve(self, x: Cells, y: Cells, number: int = 0) -> None:
        """A line through points."""
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(self.x(x), self.y(y), strict=True))
        self._parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour(number)}" stroke-width="1.5"/>'
        )

    def steps(self, edges: Cells, values: Cells, number: int = 0) -> None:
        """A value for each span between two edges, as an area above the axis."""
        x, y, floor = self.x(edges), self.y(values), float(self.y(0.0))
        way = "".join(f"V{b:.1f}H{a:.1f}" for a, b in zip(x[1:], y, strict=True))
        self._parts.append(f'<path d="M{x[0]:.1f},{floor:.1f}{way}V{floor:.1f}Z" fill="{colour(number)}"/>')

    def level(self, value: float, name: str) -> None:
        """A dashed line across, with its name."""
        y = float(self.y(value))
        self._parts.append(
            f'<path d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}" stroke="#a9341d" stroke-dasharray="5 4"/>'
            f'<text x="{WIDTH - RIGHT + 6}" y="{y + 4:.1f}" fill="#a9341d">{html.escape(name)}</text>'
        )

    def bars(self, ways: Iterable[tuple[str, str]]) -> None:
        """Paths that were made elsewhere, each with its colour: one element for all bars of a colour."""
        self._parts += [f'<path d="{way}" fill="{fill}"/>' for way, fill in ways]

    def svg(self) -> str:
        """All of it."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" font-family="sans-serif" '
            f'font-size="11">\n<rect width="{WIDTH}" height="{self.height}" fill="white"/>\n'
            + "\n".join(self._parts)
            + f'\n<path d="M{LEFT},{TOP}V{self.height - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#333333"/>\n</svg>\n'
        )

    def _below(self, value: float, text: str) -> None:
        x = float(self.x(value))
        self._parts.append(
            f'<path d="M{x:.1f},{self.height - BOTTOM}v4" stroke="#333333"/>'
            f'<text x="{x:.1f}" y="{self.height - BOTTOM + 17}" text-anchor="middle">{text}</text>'
        )


def colour(number: int) -> str:
    """Of a user or a curve by its number."""
    return COLOURS[min(number, len(COLOURS) - 1)]


def ticks(most: float) -> list[float]:
    """Round numbers from 0 up to the end of an axis: steps of 1, 2 or 5 times a power of ten."""
    if most <= 0:
        return [0.0]
    size = 10.0 ** np.floor(np.log10(most))
    steps = (factor * power for power in (size / 10, size) for factor in (1, 2, 5))
    step = next(step for step in steps if most / step <= _TICKS)
    return [float(number * step) for number in range(int(most / step + 1e-9) + 1)]
