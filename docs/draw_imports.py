"""
Draws `docs/explanation/imports.svg`: which component imports which, from the imports themselves.

`docs/generate.py` writes the picture; by itself this module only makes its text.
Layers are those of the contracts in pyproject.toml, a row each; only what is imported at run time counts, and an
arrow that follows from others is left out.
"""

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Final

import grimp
import msgspec

PACKAGES: Final = ("kettle_services", "kettle", "kettle_wire")
_SERVICES, _LIBRARIES, _WIRE = PACKAGES

Edge = tuple[str, str]

_WIDTH: Final = 1320
_MARGIN: Final = 24
_TOP: Final = 118
_ROW: Final = 60
_BELOW_SERVICES: Final = 60
_BOX: Final = 30
_GAP: Final = 30
_LETTER: Final = 8.1
_LANE: Final = 10
_ROUNDS: Final = 24


class _Node(msgspec.Struct, eq=False):
    """A component in its row, or a place where an arrow passes that row."""

    name: str
    row: int
    width: float
    x: float = 0
    above: list["_Node"] = []
    below: list["_Node"] = []

    @property
    def lane(self) -> bool:
        return not self.name


_Link = tuple[_Node, _Node]


# -- what imports what -------------------------------------------------------------------------------------------------


def component_of(module: str) -> str:
    """Package and component; the contract of the wire is one."""
    parts = module.split(".")
    return parts[0] if parts[0] == _WIRE else ".".join(parts[:2])


def edges_between_components() -> set[Edge]:
    """Who imports whom at run time; packages as such are left out."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None, exclude_type_checking_imports=True)
    pairs = {
        (component_of(importer), component_of(imported))
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    }
    return {(a, b) for a, b in pairs if a != b and not {a, b} & {_SERVICES, _LIBRARIES}}


def reduced(edges: Iterable[Edge]) -> set[Edge]:
    """Without the edges that follow from others; there must be no circle."""
    after: defaultdict[str, set[str]] = defaultdict(set)
    for a, b in edges:
        after[a].add(b)
    reached: dict[str, frozenset[str]] = {}

    def reach(name: str) -> frozenset[str]:
        if name not in reached:
            reached[name] = frozenset(after[name]).union(*(reach(each) for each in sorted(after[name])))
        return reached[name]

    return {
        (a, b)
        for a, found in sorted(after.items())
        for b in found
        if not any(b in reach(other) for other in found - {b})
    }


def rows(pyproject: Path) -> list[list[str]]:
    """The components by row, from the top: the layers of the contracts."""
    contracts = tomllib.loads(pyproject.read_text())["tool"]["importlinter"]["contracts"]
    layers = {
        contract["containers"][0]: contract["layers"]
        for contract in contracts
        if contract["type"] == "layers" and len(contract.get("containers", ())) == 1
    }
    found = [
        [f"{package}.{name.strip(' ()')}" for name in layer.split("|")]
        for package in (_SERVICES, _LIBRARIES)
        for layer in layers[package]
    ]
    return [*found, [_WIRE]]


# -- where it stands ---------------------------------------------------------------------------------------------------


def _linked(layers: Sequence[Sequence[str]], edges: Iterable[Edge]) -> tuple[list[list[_Node]], list[_Link]]:
    """
    The nodes of each row, and the lines from each row to the next.

    Arrows to the same box share their lanes; those to the wire, which is below all, do not.
    """
    grid = [[_Node(name, row, _width(name)) for name in names] for row, names in enumerate(layers)]
    at = {node.name: node for row in grid for node in row}
    links: list[_Link] = []
    lanes: dict[tuple[str, str, int], _Node] = {}
    for a, b in sorted(edges):
        path = [at[a]]
        for row in range(at[a].row + 1, at[b].row):
            key = (b, a if b == _WIRE else "", row)
            if key not in lanes:
                lanes[key] = _Node("", row, _LANE)
                grid[row].append(lanes[key])
            path.append(lanes[key])
        for upper, lower in pairwise([*path, at[b]]):
            if lower not in upper.below:
                upper.below.append(lower)
                lower.above.append(upper)
                links.append((upper, lower))
    return grid, links


def _place(grid: Sequence[list[_Node]]) -> None:
    """
    Order each row from left to right and give its nodes their places: near to what they are joined with.
    """
    for row in grid:
        _spread(row, [_WIDTH * (i + 0.5) / len(row) for i in range(len(row))])
    for turn in range(_ROUNDS):
        down = turn % 2 == 0
        for row in grid if down else reversed(grid):
            wanted = {id(node): _middle(node, node.above if down else node.below) for node in row}
            row.sort(key=lambda node: wanted[id(node)])
            _spread(row, [wanted[id(node)] for node in row])
    for _ in range(_ROUNDS):
        for row in (*grid, *reversed(grid)):
            _spread(row, [_middle(node, node.above + node.below) for node in row])


def _width(name: str) -> float:
    if name == _WIRE:
        return _WIDTH - 2 * _MARGIN
    return max(62, len(name.split(".")[1]) * _LETTER + 18)


def _middle(node: _Node, others: Sequence[_Node]) -> float:
    """Where a node would like to be; the wire is as wide as the picture and pulls nobody."""
    places = [other.x for other in others if other.name != _WIRE]
    return sum(places) / len(places) if places else node.x


def _spread(row: Sequence[_Node], wanted: Sequence[float]) -> None:
    """Put the nodes of a row as near to where they want to be as their order and their widths allow."""
    offsets = [0.0]
    for left, right in pairwise(row):
        gap = _GAP if not (left.lane and right.lane) else _LANE
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + gap)
    blocks: list[tuple[float, int]] = []  # sum of places and number of nodes, places rising
    for place, offset in zip(wanted, offsets, strict=True):
        total, count = place - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            before = blocks.pop()
            total, count = total + before[0], count + before[1]
        blocks.append((total, count))
    places = [total / count for total, count in blocks for _ in range(count)]
    first = _MARGIN + row[0].width / 2
    last = _WIDTH - _MARGIN - row[-1].width / 2 - offsets[-1]
    for node, place, offset in zip(row, places, offsets, strict=True):
        node.x = max(first, min(place, last)) + offset


# -- how it looks ------------------------------------------------------------------------------------------------------

_STYLE: Final = """\
text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2933; }
.name { text-anchor: middle; font-weight: 600; }
.title { font-size: 14px; font-weight: 600; }
.note { fill: #616e7c; }
.line { fill: none; stroke: #8a99a8; stroke-width: 1.3; }
.arrow { marker-end: url(#tip); }
.exception { fill: none; stroke: #b0722a; stroke-width: 1.2; stroke-dasharray: 4 3; marker-end: url(#tip-of-exception); }
.kettle_services { fill: #dbeafe; stroke: #6b93c9; }
.kettle { fill: #e3f4e4; stroke: #7aab80; }
.kettle_wire { fill: #fdecc8; stroke: #c9a04e; }
"""

_TIP: Final = (
    '<marker id="{}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0.8 L8 4 L0 7.2 Z" fill="{}"/></marker>'
)


def _y(row: int) -> float:
    return _TOP + row * _ROW + (_BELOW_SERVICES if row else 0)


def _box(node: _Node) -> str:
    package, _, name = node.name.rpartition(".")
    left, top = node.x - node.width / 2, _y(node.row) - _BOX / 2
    return (
        f'<rect class="{package or name}" x="{left:.0f}" y="{top:.0f}" width="{node.width:.0f}" '
        f'height="{_BOX}" rx="6"/><text class="name" x="{node.x:.0f}" y="{_y(node.row) + 4.5:.1f}">{escape(name)}</text>'
    )


def _arrow(link: _Link, begins: Mapping[_Link, float], ends: Mapping[_Link, float]) -> str:
    """From one row to the next: out of a box or on from a lane, into a box or down a lane."""
    upper, lower = link
    x, to = begins.get(link, upper.x), ends.get(link, lower.x)
    y, top = _y(upper.row) + _BOX / 2, _y(lower.row) - _BOX / 2
    if lower.name == _WIRE:
        to = x
    half = (top - y) / 2
    drawn = f"M{x:.0f} {y:.0f} C{x:.0f} {y + half:.0f} {to:.0f} {top - half:.0f} {to:.0f} {top:.0f}"
    if lower.lane:
        return f'<path class="line" d="{drawn} V{top + _BOX:.0f}"/>'
    return f'<path class="line arrow" d="{drawn}"/>'


def _ports(links: Sequence[_Link], end: int) -> dict[_Link, float]:
    """
    Where each line leaves its box (`end` 0) or reaches it (1): side by side, in the order of where they go.
    """
    by_box: defaultdict[int, list[_Link]] = defaultdict(list)
    for link in links:
        if not link[end].lane:
            by_box[id(link[end])].append(link)
    found: dict[_Link, float] = {}
    for at_box in by_box.values():
        at_box.sort(key=lambda link: link[1 - end].x)
        box = at_box[0][end]
        step = min(14.0, (box.width - 16) / len(at_box))
        for place, link in enumerate(at_box):
            found[link] = box.x + step * (place - (len(at_box) - 1) / 2)
    return found


def _exceptions(grid: Sequence[Sequence[_Node]], edges: Iterable[Edge]) -> Iterator[str]:
    """Arcs above the services, for those that use the pure code of others."""
    at = {node.name: node.x for node in grid[0]}
    top = _y(0) - _BOX / 2
    for a, b in sorted(edges):
        lift = 14 + min(abs(at[a] - at[b]) / 12, 48)
        side = 8 if at[a] < at[b] else -8
        yield (
            f'<path class="exception" d="M{at[a] + side:.0f} {top:.0f} C{at[a] + side:.0f} {top - lift:.0f} '
            f'{at[b] - side:.0f} {top - lift:.0f} {at[b] - side:.0f} {top:.0f}"/>'
        )


def picture(layers: Sequence[Sequence[str]], edges: Iterable[Edge]) -> str:
    """The text of the picture: the same for the same imports."""
    found = set(edges)
    level = {name: row for row, names in enumerate(layers) for name in names}
    beside = {(a, b) for a, b in found if level[a] == level[b]}
    grid, links = _linked(layers, reduced(found - beside))
    _place(grid)
    begins, ends = _ports(links, 0), _ports(links, 1)
    height = _y(len(layers) - 1) + _BOX / 2 + _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-labelledby="title">',
            '<title id="title">Which component of Kettle imports which: services, libraries, wire contract</title>',
            f"<style>\n{_STYLE}</style>",
            f"<defs>{_TIP.format('tip', '#8a99a8')}{_TIP.format('tip-of-exception', '#b0722a')}</defs>",
            f'<rect width="{_WIDTH}" height="{height:.0f}" fill="#ffffff"/>',
            *_legend(),
            *(_arrow(link, begins, ends) for link in links),
            *_exceptions(grid, reduced(beside)),
            *(_box(node) for row in grid for node in row if not node.lane),
            "</svg>\n",
        ]
    )


def _legend() -> Iterator[str]:
    words = (
        (_SERVICES, "kettle_services, in services/"),
        (_LIBRARIES, "kettle, in libs/"),
        (_WIRE, "kettle_wire, in schemas/"),
    )
    x = _MARGIN
    for package, said in words:
        yield f'<rect class="{package}" x="{x}" y="14" width="16" height="16" rx="4"/>'
        yield f'<text class="title" x="{x + 23}" y="27">{said}</text>'
        x += 46 + 8 * len(said)
    yield (
        f'<text class="note" x="{_MARGIN}" y="50">An arrow leads to what is imported; one that follows from others is '
        "left out.  Dashed: code of another service, an exception that pyproject.toml lists.</text>"
    )


def imports_picture() -> str:
    """The picture of the tree."""
    return picture(rows(Path(__file__).parents[1] / "pyproject.toml"), edges_between_components())
