"""
The picture of a workflow that runs: as SVG, which needs no program, and for Graphviz.

Colours are attributes, so that a file of its own has them; a page's style stands above them by the classes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from kettle.dag.view.figures import Arrow, Figure, Picture
from kettle.dag.view.layers import BOX, Placed, Point
from kettle_wire.codes import NodeState

COLOURS: Final = {
    NodeState.DONE: "#1d5ca6",
    NodeState.SKIPPED: "#7f9cc0",
    NodeState.RUNNING: "#0a6847",
    NodeState.PRE: "#3f8f74",
    NodeState.POST: "#3f8f74",
    NodeState.QUEUED: "#b58a1b",
    NodeState.READY: "#d7bb6d",
    NodeState.WAITING: "#c9cfd4",
    NodeState.FAILED: "#a9341d",
    NodeState.FUTILE: "#d99b8d",
}
"""In the order in which parts of a bar stand."""
_LETTERS: Final = 19
"""So many letters of a name fit."""
_INSET: Final = 10

Counts = Sequence[Counter[int]]
Link = Callable[[int], str]


def by_name(counts: Mapping[int, int]) -> dict[str, int]:
    """How many nodes are in which state, by its name, in the order of bars."""
    return {state.name.lower(): count for state in COLOURS if (count := counts.get(state, 0))}


def words_of_counts(counts: Mapping[str, int]) -> str:
    """How many nodes are in which state, as people read it."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


def main_state(counts: Counter[int]) -> NodeState:
    """What a figure of several nodes is shown as: what needs a look first, then what goes on."""
    for state in (
        NodeState.FAILED,
        NodeState.RUNNING,
        NodeState.POST,
        NodeState.PRE,
        NodeState.QUEUED,
        NodeState.READY,
        NodeState.WAITING,
        NodeState.FUTILE,
        NodeState.DONE,
    ):
        if counts[state]:
            return state
    return NodeState.SKIPPED


def svg(picture: Picture, places: Placed, counts: Counts, *, link: Link | None = None) -> str:
    """A picture; `link`: the address of what is behind a figure."""
    return "\n".join(_svg(picture, places, counts, link))


def _svg(picture: Picture, places: Placed, counts: Counts, link: Link | None) -> Iterator[str]:
    total: Counter[int] = Counter()
    for each in counts:
        total.update(each)
    said = escape(f"{sum(total.values()):,} nodes: {words_of_counts(by_name(total))}")
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dag" width="{places.width}" height="{places.height}" '
        f'viewBox="0 0 {places.width} {places.height}" role="{"group" if link else "img"}" aria-label="Graph of {said}" '
        'font-family="system-ui, sans-serif" font-size="13">'
    )
    for arrow, lanes in zip(picture.arrows, places.ways, strict=True):
        yield _arrow(arrow, places, lanes)
    for place, (figure, its) in enumerate(zip(picture.figures, counts, strict=True)):
        box = "".join(_box(figure, its, *places.corners[place]))
        yield f'<a href="{escape(link(place))}">{box}</a>' if link else f"<g>{box}</g>"
    yield "</svg>"


def _arrow(arrow: Arrow, places: Placed, lanes: Sequence[Point]) -> str:
    """A curve from below one figure to above another, straight where it passes a level."""
    (x, y), (end_x, end_y) = places.corners[arrow.parent], places.corners[arrow.child]
    x, y = x + BOX[0] / 2, y + BOX[1]
    way = f"M{x:g} {y:g}"
    for next_x, next_y in (*lanes, (end_x + BOX[0] / 2, end_y)):
        bend = max(18.0, (next_y - y) / 2)
        way += f"C{x:g} {y + bend:g} {next_x:g} {next_y - bend:g} {next_x:g} {next_y:g}"
        x, y = next_x, next_y + BOX[1]
        way += f"V{y:g}"
    way = way.rpartition("V")[0]  # not through the figure at its end
    dashes = ' stroke-dasharray="4 3"' if arrow.weak else ""
    return f'<path class="edge" d="{way}" fill="none" stroke="#8b97a3"{dashes}/>'


def _box(figure: Figure, counts: Counter[int], x: float, y: float) -> Iterator[str]:
    state = main_state(counts)
    words = words_of_counts(by_name(counts)) if figure.nodes > 1 else state.name.lower()
    yield f"<title>{escape(figure.name)}: {words}</title>"
    if figure.nodes > 1:  # a pile
        yield f'<rect class="box" x="{x + 4:g}" y="{y - 4:g}" width="{BOX[0]}" height="{BOX[1]}" rx="4" fill="#fff" stroke="#8b97a3"/>'
    yield (
        f'<rect class="box node-{state.name.lower()}" x="{x:g}" y="{y:g}" width="{BOX[0]}" height="{BOX[1]}" rx="4" fill="#fff" '
        f'stroke="{COLOURS[state]}" stroke-width="2"/>'
    )
    name = (
        figure.name
        if len(figure.name) <= _LETTERS
        else f"{figure.name[: _LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    )
    yield f'<text class="name" x="{x + _INSET:g}" y="{y + 17:g}" fill="#17212b">{escape(name)}</text>'
    good = counts[NodeState.DONE] + counts[NodeState.SKIPPED]
    below = f"{good:,} of {figure.nodes:,} done" if figure.nodes > 1 else words
    yield f'<text class="says" x="{x + _INSET:g}" y="{y + 32:g}" font-size="11" fill="#53606d">{below}</text>'
    yield from _bar(counts, x + _INSET, y + BOX[1] - 9, BOX[0] - 2 * _INSET)


def _bar(counts: Counter[int], x: float, y: float, width: float) -> Iterator[str]:
    total = sum(counts.values())
    for state, colour in COLOURS.items():
        if part := width * counts[state] / total:
            yield (
                f'<rect class="part node-{state.name.lower()}" x="{x:.1f}" y="{y:g}" width="{part:.1f}" height="4" fill="{colour}"/>'
            )
            x += part


def dot(picture: Picture, counts: Counts, name: str) -> Iterator[str]:
    """The lines of a picture for Graphviz."""
    yield f"digraph {_quoted(name)} {{"
    yield '  node [fontname="sans-serif", shape=box, style=rounded];'
    for place, (figure, its) in enumerate(zip(picture.figures, counts, strict=True)):
        says = words_of_counts(by_name(its)) if figure.nodes > 1 else main_state(its).name.lower()
        label = f"{figure.name}\n{says}"
        yield f'  f{place} [label={_quoted(label)}, color="{COLOURS[main_state(its)]}"];'
    for arrow in picture.arrows:
        yield f"  f{arrow.parent} -> f{arrow.child}{' [style=dashed]' if arrow.weak else ''};"
    yield "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
