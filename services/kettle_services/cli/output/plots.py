"""Series over time as pictures: blocks for a terminal, SVG for a file."""

import time
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

import msgspec

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT = 900, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 230, 40, 40
_TICKS: Final = 5
_COLOURS: Final = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933", "#882255", "#44aa99",
)  # fmt: skip
"""Colours that colour-blind people can distinguish."""
_DAY: Final = 86_400.0


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers at moments, by name; None where nothing is known yet."""

    title: str
    times: Sequence[float]
    """Seconds since the epoch, rising."""
    series: Mapping[str, Sequence[float | None]]

    @property
    def most(self) -> float:
        """The largest number; 1 if there is none above zero."""
        return (
            max((n for numbers in self.series.values() for n in numbers if n is not None), default=0.0) or 1.0
        )


def blocks(numbers: Sequence[float | None], most: float) -> str:
    """One character for each number, as high as it is large; a blank for none."""
    top = len(_BLOCKS) - 1
    return "".join(" " if n is None else _BLOCKS[max(0, min(top, round(n / most * top)))] for n in numbers)


def svg(plot: Plot) -> str:
    """The document: a line for each series, with axes and names."""
    first, last = plot.times[0], plot.times[-1]
    most = plot.most
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="15">{escape(plot.title)}</text>',
    ]
    for tick in range(_TICKS + 1):
        part = tick / _TICKS
        x, y = _across(part), _up(part)
        when, amount = _clock(first + part * (last - first), last - first), f"{part * most:.4g}"
        parts += [
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>',
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{amount}</text>',
            f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{when}</text>',
        ]
    for number, (name, numbers) in enumerate(plot.series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(
            f"{_across((at - first) / ((last - first) or 1.0)):.1f},{_up(n / most):.1f}"
            for at, n in zip(plot.times, numbers, strict=True)
            if n is not None
        )
        y = _TOP + 14 + 18 * number
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<rect x="{_WIDTH - _RIGHT + 14}" y="{y - 9}" width="12" height="10" fill="{colour}"/>',
            f'<text x="{_WIDTH - _RIGHT + 32}" y="{y}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def _across(part: float) -> float:
    return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)


def _up(part: float) -> float:
    return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)


def _clock(at: float, span: float) -> str:
    return time.strftime("%m/%d %H:%M" if span > _DAY / 2 else "%H:%M:%S", time.localtime(at))
