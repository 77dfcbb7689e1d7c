"""
The table of resources at the end of events 004 and 005.

Readers find the columns by where the words of the heading end, so the alignment is part of the format.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from kettle.userlog.events import Resource

_HEADING: Final = "\tPartitionable Resources"
_INDENT: Final = "\t   "


def is_heading(line: str) -> bool:
    """Whether a table begins with this line."""
    return line.startswith(_HEADING)


def render_table(resources: Sequence[Resource]) -> tuple[str, ...]:
    """The lines of the table; none for no resources."""
    return _rendered(tuple(resources)) if resources else ()


@lru_cache(maxsize=1024)
def _rendered(resources: tuple[Resource, ...]) -> tuple[str, ...]:
    """Jobs that are alike use about the same: most tables of short ones were written before."""
    width = max(12, *(len(row.label.partition(" (")[0]) for row in resources)) + 8
    usage = _column([row.usage for row in resources], 8)
    request = _column([row.request for row in resources], 8)
    allocated = _column([row.allocated for row in resources], 9)
    heading = " ".join(
        (
            f"{_HEADING} :",
            f"{'Usage':>{len(usage[0])}}",
            f"{'Request':>{len(request[0])}}",
            f"{'Allocated':>{len(allocated[0])}}",
            "" if all(row.assigned is None for row in resources) else "Assigned",
        )
    )
    return (
        heading,
        *(
            f"{_INDENT}{row.label:<{width}} : {used} {asked} {given} {row.assigned or ''}"
            for row, used, asked, given in zip(resources, usage, request, allocated, strict=True)
        ),
    )


def parse_table(lines: Sequence[str]) -> list[Resource]:
    """Inverse of `render_table`; `lines` begin with the heading."""
    # Readers count columns from the colon: a long label moves the colon of its row, not that of the heading.
    heading = lines[0].partition(":")[2]
    ends = [heading.index(word) + len(word) for word in ("Usage", "Request", "Allocated")]
    has_assigned = "Assigned" in heading
    rows: list[Resource] = []
    for line in lines[1:]:
        label, _, columns = line.partition(" :")
        cells = [columns[a:b].strip() for a, b in zip((0, *ends), (*ends, None), strict=True)]
        rows.append(
            Resource(
                label=label.strip(),
                usage=cells[0],
                request=cells[1],
                allocated=cells[2],
                assigned=cells[3] if has_assigned else None,
            )
        )
    return rows


def _column(cells: Sequence[str], width: int) -> list[str]:
    """Right-aligned; a whole number among reals leaves room where their decimals stand."""
    decimals = any("." in cell for cell in cells)
    padded = [f"{cell}   " if decimals and cell and "." not in cell else cell for cell in cells]
    width = max(width, *(len(cell) for cell in padded))
    return [f"{cell:>{width}}" for cell in padded]
