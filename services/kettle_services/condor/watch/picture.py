"""The picture of condor_watch_q: a table with bars, a bar for all, and a line of sums.  Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle_services.condor.watch.board import PLACES, Place, Row

_ALWAYS: Final[frozenset[Place]] = frozenset({"IDLE", "RUN", "DONE"})
"""Columns that are there without jobs, too."""
_BAR: Final[Mapping[Place, tuple[str, str]]] = {
    "IDLE": ("-", "93"), "INPUT": (">", "36"), "RUN": ("=", "36"), "OUTPUT": (">", "36"), "DONE": ("#", "32"),
    "HELD": ("!", "31"), "SUSPENDED": ("!", "31"), "REMOVED": ("!", "31"),
}  # fmt: skip
"""Characters and colours of bars, in their order there."""
_SUMS: Final[Mapping[str, tuple[Place, ...]]] = {
    "completed": ("DONE",), "removed": ("REMOVED",), "idle": ("IDLE",), "running": ("INPUT", "RUN", "OUTPUT"),
    "held": ("HELD",), "suspended": ("SUSPENDED",),
}  # fmt: skip
_WIDEST: Final = 79
_NARROWEST: Final = 10
"""Characters that are left for a bar, below which there is none."""
_PROGRESS: Final = "Total Progress: "


class Wishes(msgspec.Struct):
    """What is to be in it."""

    table: bool = True
    progress: bool = True
    row_progress: bool = True
    summary: bool = True
    percentages: bool = False
    updated_at: bool = True
    color: bool = False


def picture(title: str, rows: Sequence[Row], wishes: Wishes, *, width: int, moment: str) -> list[str]:
    """The lines, for a terminal of that width."""
    totals: Counter[Place] = Counter()
    for row in rows:
        totals.update(row.counts)
    parts: list[list[str]] = []
    if wishes.table:
        parts.append(list(_table(title, rows, wishes, width)))
    if wishes.progress:
        parts.append([_PROGRESS + bar(totals, width - len(_PROGRESS), color=wishes.color)])
    if wishes.summary:
        parts.append([summary(totals, width, percentages=wishes.percentages)])
    if wishes.updated_at:
        parts.append([f"Updated at {moment}"])
    return [line for at, part in enumerate(parts) for line in ([""] * bool(at) + part)]


def _table(title: str, rows: Sequence[Row], wishes: Wishes, width: int) -> Iterator[str]:
    places: list[Place] = [
        place for place in PLACES if place in _ALWAYS or any(row.counts[place] for row in rows)
    ]
    cells = [
        [row.name, *(str(row.counts[place] or "-") for place in places), str(row.total), row.active or "-"]
        for row in rows
    ]
    titles = [title, *places, "TOTAL", "JOB_IDS"]
    widths = [max(len(line[column]) for line in [titles, *cells]) for column in range(len(titles))]
    yield _line(titles, widths)
    used = len(_line(titles, widths, stripped=False)) + 1
    for row, line in zip(rows, cells, strict=True):
        text = _line(line, widths, stripped=False)
        if wishes.row_progress and width - used > _NARROWEST:
            text = f"{_coloured(text, _colour(row), color=wishes.color)} {bar(row.counts, width - used, color=wishes.color)}"
        else:
            text = _coloured(text[:width].rstrip(), _colour(row), color=wishes.color)
        yield text


def _line(cells: Sequence[str], widths: Sequence[int], *, stripped: bool = True) -> str:
    """The name and the ids stand at the left, figures at the right."""
    last = len(cells) - 1
    placed = [
        cell.ljust(width) if at in {0, last} else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    text = "  ".join(placed)
    return text.rstrip() if stripped else text


def _colour(row: Row) -> str:
    if row.counts["HELD"]:
        return "31"
    if row.counts["DONE"] == row.total:
        return "32"
    return "36" if row.counts["RUN"] else "33" if row.counts["IDLE"] else "97"


def _coloured(text: str, code: str, *, color: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if color and text else text


def bar(counts: Mapping[Place, int], width: int, *, color: bool = False) -> str:
    """What part of all is where; rounding is made up for by the longest part."""
    room = max(min(width, _WIDEST) - 2, 1)
    total = sum(counts.values())
    lengths: dict[Place, int] = {
        place: room * counts.get(place, 0) // total if total else 0 for place in _BAR
    }
    lengths[max(lengths, key=lambda place: lengths[place])] += room - sum(lengths.values())
    letters = (" ", "0") if not total else None
    parts = (
        _coloured((letters or _BAR[place])[0] * length, _BAR[place][1], color=color and letters is None)
        for place, length in lengths.items()
    )
    return f"[{''.join(parts)}]"


def summary(counts: Mapping[Place, int], width: int, *, percentages: bool = False) -> str:
    """How many jobs are where; words are shortened until it fits."""
    total = sum(counts.values())
    figures = {word: sum(counts.get(place, 0) for place in places) for word, places in _SUMS.items()}
    text = ""
    for letters in range(10, 1, -1):
        if percentages:
            said = [
                f"{round(100 * figure / total) if total else 0}% {word[:letters]}"
                for word, figure in figures.items()
            ]
        else:
            said = [f"{figure} {word[:letters]}" for word, figure in figures.items() if figure]
        text = f"Total: {total} jobs; {', '.join(said)}"
        if len(text) <= width:
            break
    return text
