"""
Pictures of state machines as SVG, for the documentation: boxes, arrows with what they mean, and a table of cases as cells.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final, Literal

import msgspec

_STYLE: Final = """\
text { font: 12.5px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2933; }
.name { text-anchor: middle; font-size: 14px; font-weight: 600; }
.note { fill: #616e7c; }
.condition { font-style: italic; fill: #616e7c; }
.arrow { fill: none; stroke: #6b7a89; stroke-width: 1.4; marker-end: url(#tip); }
.frame { fill: #f5f7fa; stroke: #b8c4cf; stroke-dasharray: 5 4; }
.on { fill: #dbeafe; stroke: #6b93c9; }
.off { fill: #fdecc8; stroke: #c9a04e; }
"""
_TIP: Final = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0.8 L8 4 L0 7.2 Z" fill="#6b7a89"/></marker>'
)
_LINE: Final = 15

Route = tuple[str, tuple[int, int], str]
"""An SVG path; where its text stands, and which end of the text stands there."""


class StateBox(msgspec.Struct, frozen=True):
    """A state; `x` and `y` are its middle."""

    name: str
    x: int
    y: int
    kind: Literal["on", "off"]
    width: int = 132
    height: int = 40


class Frame(msgspec.Struct, frozen=True):
    """What is around states that have something in common."""

    left: int
    top: int
    width: int
    height: int
    text: str


def state_diagram(
    *,
    title: str,
    size: tuple[int, int],
    notes: Sequence[str],
    frames: Sequence[Frame],
    arrows: Iterable[tuple[Route, Mapping[str, Sequence[str]]]],
    boxes: Iterable[StateBox],
) -> str:
    """
    The text of a picture.

    What is written at an arrow: the words that lead there, each with its conditions; without one, or with an empty one, it
    always does.
    """
    width, height = size
    left = frames[0].left
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">',
            f'<title id="title">{escape(title)}</title>',
            f"<style>\n{_STYLE}</style>",
            f"<defs>{_TIP}</defs>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *(
                f'<text class="note" x="{left}" y="{34 + 20 * number}">{escape(note)}</text>'
                for number, note in enumerate(notes)
            ),
            *(_frame(frame) for frame in frames),
            *(_arrow(route, said) for route, said in arrows),
            *(_box(box) for box in boxes),
            "</svg>\n",
        ]
    )


def _frame(frame: Frame) -> str:
    left, top = frame.left, frame.top
    return (
        f'<rect class="frame" x="{left}" y="{top}" width="{frame.width}" height="{frame.height}" rx="10"/>\n'
        f'<text class="note" x="{left + 12}" y="{top + 20}">{escape(frame.text)}</text>'
    )


def _box(box: StateBox) -> str:
    left, top = box.x - box.width // 2, box.y - box.height // 2
    return (
        f'<rect class="{box.kind}" x="{left}" y="{top}" width="{box.width}" height="{box.height}" rx="8"/>'
        f'<text class="name" x="{box.x}" y="{box.y + 5}">{box.name}</text>'
    )


def _arrow(route: Route, said: Mapping[str, Sequence[str]]) -> str:
    path, (x, y), anchor = route
    lines: list[tuple[str, str]] = []
    for name, conditions in said.items():
        lines.append(("", name))
        if conditions and "" not in conditions:
            lines += [("condition", text) for text in dict.fromkeys(conditions)]
    if len({line for line in lines if line[0]}) == 1:  # one condition for all is said once
        (condition,) = {line for line in lines if line[0]}
        lines = [*(line for line in lines if line != condition), condition]
    first = y - (len(lines) - 1) * _LINE // 2 if anchor != "middle" else y - max(0, len(lines) - 3) * _LINE
    text = "".join(
        f'<text class="{kind}" x="{x}" y="{first + number * _LINE}" text-anchor="{anchor}">{escape(line)}</text>'
        for number, (kind, line) in enumerate(lines)
    )
    return f'<path class="arrow" d="{path}"/>{text}'


def cells(*texts: str) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |\n"
