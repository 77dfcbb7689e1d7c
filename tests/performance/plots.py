"""
Draws curves as an SVG without script: several panels side by side, each with named curves over an axis of powers of two or ten.

    python -m tests.performance.plots --output growth.svg < panels.json

The JSON is a list of panels: {"title": ..., "across": "slots", "up": "ms a job", "curves": {"name": [[1, 9.2], ...]}}.
"""

import argparse
import html
import sys
from collections.abc import Mapping
from itertools import cycle
from math import ceil, log2
from pathlib import Path
from typing import Final

import msgspec

WIDTH: Final = 420
HEIGHT: Final = 314
LEFT: Final = 46
BOTTOM: Final = 44
TOP: Final = 48
RIGHT: Final = 118
COLOURS: Final = (
    *("#1b6ca8", "#d1495b", "#2f9e44", "#e8890c", "#7b4fb5", "#555555"),
    *("#00897b", "#c2185b", "#8d6e63", "#afb42b", "#0097a7", "#3949ab"),
)


class Panel(msgspec.Struct, frozen=True):
    """One set of axes; points as (across, up)."""

    title: str
    across: str
    up: str
    curves: dict[str, list[tuple[float, float]]]


def nice(most: float) -> float:
    """The end of an axis: 1, 2 or 5 times a power of ten, at least `most`."""
    size = 10.0 ** len(str(int(most)))
    return min(step * size / 10 for step in (1, 2, 5, 10) if step * size / 10 >= most)


def drawn(panel: Panel, left: float, colours: Mapping[str, str]) -> list[str]:
    """One panel, `left` pixels from the edge; `colours` of the curves by their names."""
    points = [point for curve in panel.curves.values() for point in curve]
    first, last = (log2(end(each[0] for each in points)) for end in (min, max))
    top = nice(max(each[1] for each in points))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        share = (log2(x) - first) / (last - first or 1.0)
        return left + LEFT + share * wide, TOP + high * (1 - y / top)

    found = [f'<text x="{left + LEFT}" y="18" font-size="13">{html.escape(panel.title)}</text>']
    for step in range(5):
        _, y = place(2**first, top * step / 4)
        found.append(
            f'<path d="M{left + LEFT},{y:.1f}h{wide}" stroke="#dddddd"/>'
            f'<text x="{left + LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{top * step / 4:g}</text>'
        )
    for x in sorted({each[0] for each in points}):
        across, y = place(x, 0)
        found.append(f'<text x="{across:.1f}" y="{y + 15:.1f}" text-anchor="middle">{x:g}</text>')
    middle = left + LEFT + wide / 2
    found.append(
        f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(panel.across)}</text>'
    )
    found.append(f'<text x="{left + 4}" y="{TOP - 12}" font-size="10">{html.escape(panel.up)}</text>')
    for number, (name, curve) in enumerate(panel.curves.items()):
        colour = colours[name]
        places = [place(*point) for point in curve]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        found.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        found += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        height = TOP + 14 * number + 8
        found.append(
            f'<text x="{left + WIDTH - RIGHT + 8}" y="{height}" fill="{colour}">{html.escape(name)}</text>'
        )
    return found


def picture(panels: list[Panel]) -> str:
    """All of them, two in a row."""
    rows = ceil(len(panels) / 2)
    names = dict.fromkeys(name for panel in panels for name in panel.curves)
    colours = dict(zip(names, cycle(COLOURS), strict=False))  # one service looks the same everywhere
    parts: list[str] = []
    for number, panel in enumerate(panels):
        left, shift = WIDTH * (number % 2), HEIGHT * (number // 2)
        parts.append(f'<g transform="translate(0,{shift})">{"".join(drawn(panel, left, colours))}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {rows * HEIGHT}" font-family="sans-serif" '
        f'font-size="11">\n<rect width="{2 * WIDTH}" height="{rows * HEIGHT}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def main() -> int:
    """Read, draw and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    panels = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Panel])
    arguments.output.write_text(picture(panels))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
