"""
Draws `docs/explanation/starter-machine.svg` and lists `docs/reference/starter-machine.md`: the state machine of a starter, from
its table.

`docs/generate.py` writes both; by itself this module only makes their text.
Where a phase stands and how an arrow goes is said here; which arrows there are, and what is written at them, is in the table.
What follows for every phase of a frame is drawn once, from the frame; what leaves a phase as it is, is only in the list.
"""

import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from html import escape
from itertools import groupby
from typing import Final

from kettle.schema_generation.field_descriptions import meanings
from kettle_services.starter.domain.instructions import Instruction, Work
from kettle_services.starter.domain.state import StarterPhase, StarterState, SuspensionState
from kettle_services.starter.domain.table import TABLE, Transition

_P: Final = StarterPhase
_WIDTH, _HEIGHT = 1120, 640
_BOX: Final = (132, 40)
_PLACES: Final[Mapping[StarterPhase, tuple[int, int]]] = {
    _P.DEFERRED: (160, 140),
    _P.PREPARING: (160, 310),
    _P.SUSPENDED: (560, 140),
    _P.RUNNING: (560, 310),
    _P.CHECKPOINTING: (560, 470),
    _P.ENDING: (980, 140),
    _P.COLLECTING: (980, 310),
    _P.REPORTING: (980, 440),
    _P.OVER: (980, 550),
}
_GOES_ON: Final = (_P.PREPARING, _P.DEFERRED, _P.RUNNING, _P.SUSPENDED, _P.CHECKPOINTING)
_FRAME: Final = (40, 84, 720, 440)
"""Around these: left, top, width, height."""

Edge = tuple[StarterPhase | None, StarterPhase]
"""From a phase, or from the frame (None), to a phase."""

_ROUTES: Final[Mapping[Edge, tuple[str, tuple[int, int], str]]] = {
    (_P.PREPARING, _P.DEFERRED): ("M145 290 V162", (138, 230), "end"),
    (_P.DEFERRED, _P.PREPARING): ("M175 160 V288", (183, 214), "start"),
    (_P.PREPARING, _P.RUNNING): ("M226 302 H492", (354, 262), "middle"),
    (_P.RUNNING, _P.PREPARING): ("M494 320 H228", (354, 336), "middle"),
    (_P.PREPARING, _P.SUSPENDED): ("M226 292 C300 250 330 136 492 136", (400, 128), "end"),
    (_P.SUSPENDED, _P.PREPARING): ("M494 152 C420 160 320 262 228 298", (446, 196), "start"),
    (_P.RUNNING, _P.SUSPENDED): ("M545 290 V162", (538, 238), "end"),
    (_P.SUSPENDED, _P.RUNNING): ("M575 160 V288", (582, 238), "start"),
    (_P.RUNNING, _P.CHECKPOINTING): ("M545 330 V448", (538, 386), "end"),
    (_P.SUSPENDED, _P.CHECKPOINTING): ("M626 146 C760 200 750 420 628 462", (690, 404), "end"),
    (_P.CHECKPOINTING, _P.PREPARING): ("M494 470 C300 470 150 440 150 332", (400, 500), "middle"),
    (_P.RUNNING, _P.COLLECTING): ("M626 310 H912", (836, 302), "middle"),
    (_P.SUSPENDED, _P.COLLECTING): ("M626 132 C760 150 800 270 912 298", (808, 224), "start"),
    (_P.PREPARING, _P.COLLECTING): ("M120 330 C120 670 880 660 950 332", (512, 610), "middle"),
    (None, _P.ENDING): ("M760 120 H912", (836, 112), "middle"),
    (None, _P.COLLECTING): ("M760 350 C820 350 870 336 914 324", (806, 374), "start"),
    (_P.ENDING, _P.COLLECTING): ("M980 160 V288", (990, 204), "start"),
    (_P.COLLECTING, _P.REPORTING): ("M980 330 V418", (990, 380), "start"),
    (_P.REPORTING, _P.OVER): ("M980 460 V528", (990, 500), "start"),
}

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
_NOTE: Final = (
    "What leaves a phase as it is, and what is done in each case: docs/reference/starter-machine.md."
)


# -- the picture -------------------------------------------------------------------------------------------------------


def edges(table: Sequence[Transition]) -> dict[Edge, list[Transition]]:
    """
    What leads from where to where, with the rows that say so.  Of a phase that is in the frame, only what not all of it has;
    what leads to the same from everywhere is a note.
    """
    moves = [row for row in table if row.phase is not row.to]
    sources: defaultdict[tuple[type, StarterPhase], set[StarterPhase]] = defaultdict(set)
    for row in moves:
        sources[row.stimulus, row.to].add(row.phase)
    found: defaultdict[Edge, list[Transition]] = defaultdict(list)
    for row in moves:
        from_where = sources[row.stimulus, row.to]
        if from_where >= set(StarterPhase) - {row.to}:
            continue
        whole = row.phase in _GOES_ON and from_where >= set(_GOES_ON)
        found[None if whole else row.phase, row.to].append(row)
    return found


def from_everywhere(table: Sequence[Transition]) -> list[tuple[str, StarterPhase]]:
    """The stimuli that lead from every phase to the same one."""
    sources: defaultdict[tuple[str, StarterPhase], set[StarterPhase]] = defaultdict(set)
    for row in table:
        if row.phase is not row.to:
            sources[row.stimulus.__name__, row.to].add(row.phase)
    return [(name, to) for (name, to), phases in sources.items() if phases >= set(StarterPhase) - {to}]


def picture(table: Sequence[Transition]) -> str:
    """The text of the picture: the same for the same table."""
    left, top, width, height = _FRAME
    notes = ", ".join(f"{name} leads to {to.value}" for name, to in from_everywhere(table))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="title">',
            '<title id="title">The phases of an attempt on its machine, and what leads from one to the next</title>',
            f"<style>\n{_STYLE}</style>",
            f"<defs>{_TIP}</defs>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
            f'<text class="note" x="{left}" y="34">{_NOTE}</text>',
            f'<text class="note" x="{left}" y="54">From every phase: {escape(notes)}.</text>',
            f'<rect class="frame" x="{left}" y="{top}" width="{width}" height="{height}" rx="10"/>',
            f'<text class="note" x="{left + 12}" y="{top + 20}">the attempt goes on</text>',
            *(_arrow(edge, rows) for edge, rows in edges(table).items()),
            *(_box(phase) for phase in StarterPhase),
            "</svg>\n",
        ]
    )


def _box(phase: StarterPhase) -> str:
    x, y = _PLACES[phase]
    width, height = _BOX
    kind = "on" if phase in _GOES_ON else "off"
    return (
        f'<rect class="{kind}" x="{x - width // 2}" y="{y - height // 2}" width="{width}" height="{height}" rx="8"/>'
        f'<text class="name" x="{x}" y="{y + 5}">{phase.value}</text>'
    )


def _arrow(edge: Edge, rows: Sequence[Transition]) -> str:
    path, (x, y), anchor = _ROUTES[edge]
    said: dict[str, list[str]] = {}
    for row in rows:
        conditions = said.setdefault(row.stimulus.__name__, [])
        conditions += [row.when.text] if row.when is not None else [""]
    lines: list[tuple[str, str]] = []
    for name, conditions in said.items():
        lines.append(("", name))
        if "" not in conditions:
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


def starter_picture() -> str:
    """The picture of the table."""
    return picture(TABLE)


# -- the list ----------------------------------------------------------------------------------------------------------

_HEAD: Final = """\
# The state machine of a starter

What a starter does when something happens, phase by phase: the rows of `kettle_services.starter.domain.table:TABLE`.
[The starter as a machine](../explanation/the-starter-as-a-machine.md) explains them, and has the picture.

Of several rows for one stimulus the first whose condition holds counts.
What is done is done in its order; **bold** is what the starter does next, until that ends with a stimulus of its own.
A stimulus that a phase does not list is one of the starter's own that cannot come there: it would be a defect, and the job is held with a sentence that names it.
"""


def starter_page() -> str:
    """The list of the table, and what its words mean."""
    return "".join([_HEAD, *_phases(), *_words()])


def _phases() -> Iterator[str]:
    said = meanings(StarterPhase)
    order = list(StarterPhase)
    rows = sorted(TABLE, key=lambda row: (order.index(row.phase), row.stimulus.__name__))
    for phase, group in groupby(rows, key=lambda row: row.phase):
        yield f"\n## {phase.value.capitalize()}\n\n{' '.join(said[phase.name].split())}\n\n"
        yield _cells("stimulus", "if", "phase then", "what is done") + _cells("---", "---", "---", "---")
        for row in group:
            when = row.when.text if row.when is not None else ""
            to = row.to.value if row.to is not row.phase else ""
            yield _cells(f"`{row.stimulus.__name__}`", when, to, _done(row))


def _done(row: Transition) -> str:
    words = [f"**{one.value}**" if isinstance(one, Work) else one.value for one in row.instructions]
    if row.suspension is not None:
        words.append(f"(suspension: {row.suspension.value})")
    return ", ".join(words)


def _words() -> Iterator[str]:
    yield "\n## Beside the phase\n\n" + _cells("fact", "meaning") + _cells("---", "---")
    for name, text in meanings(StarterState).items():
        yield _cells(f"`{name}`", " ".join(text.split()))
    for title, kind in (
        ("The suspension", SuspensionState),
        ("What is done at once", Instruction),
        ("What is done next", Work),
    ):
        yield from _kind(title, kind)
    yield "\n## Stimuli\n\n" + _cells("stimulus", "meaning") + _cells("---", "---")
    for stimulus in sorted({row.stimulus for row in TABLE}, key=lambda each: each.__name__):
        yield _cells(f"`{stimulus.__name__}`", " ".join((inspect.getdoc(stimulus) or "").split()))


def _kind(title: str, kind: type[Enum]) -> Iterator[str]:
    said = meanings(kind)
    yield f"\n## {title}\n\n" + _cells("word", "meaning") + _cells("---", "---")
    for one in kind:
        yield _cells(str(one.value), " ".join(said[one.name].split()))


def _cells(*texts: str) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |\n"
