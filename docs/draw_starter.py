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
from itertools import groupby
from typing import Final

from kettle.schema_generation.field_descriptions import meanings
from kettle.schema_generation.state_diagrams import Frame, Route, StateBox, cells, state_diagram
from kettle_services.starter.domain.instructions import Instruction, Work
from kettle_services.starter.domain.state import StarterPhase, StarterState, SuspensionState
from kettle_services.starter.domain.table import TABLE, Transition

_P: Final = StarterPhase
_SIZE: Final = (1120, 640)
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
_FRAME: Final = Frame(40, 84, 720, 440, "the attempt goes on")
"""Around these."""

Edge = tuple[StarterPhase | None, StarterPhase]
"""From a phase, or from the frame (None), to a phase."""

_ROUTES: Final[Mapping[Edge, Route]] = {
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
    notes = ", ".join(f"{name} leads to {to.value}" for name, to in from_everywhere(table))
    return state_diagram(
        title="The phases of an attempt on its machine, and what leads from one to the next",
        size=_SIZE,
        notes=[_NOTE, f"From every phase: {notes}."],
        frames=[_FRAME],
        arrows=[(_ROUTES[edge], _said(rows)) for edge, rows in edges(table).items()],
        boxes=[
            StateBox(phase.value, *_PLACES[phase], "on" if phase in _GOES_ON else "off")
            for phase in StarterPhase
        ],
    )


def _said(rows: Sequence[Transition]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    for row in rows:
        said.setdefault(row.stimulus.__name__, []).append(row.when.text if row.when is not None else "")
    return said


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
        yield cells("stimulus", "if", "phase then", "what is done") + cells("---", "---", "---", "---")
        for row in group:
            when = row.when.text if row.when is not None else ""
            to = row.to.value if row.to is not row.phase else ""
            yield cells(f"`{row.stimulus.__name__}`", when, to, _done(row))


def _done(row: Transition) -> str:
    words = [f"**{one.value}**" if isinstance(one, Work) else one.value for one in row.instructions]
    if row.suspension is not None:
        words.append(f"(suspension: {row.suspension.value})")
    return ", ".join(words)


def _words() -> Iterator[str]:
    yield "\n## Beside the phase\n\n" + cells("fact", "meaning") + cells("---", "---")
    for name, text in meanings(StarterState).items():
        yield cells(f"`{name}`", " ".join(text.split()))
    for title, kind in (
        ("The suspension", SuspensionState),
        ("What is done at once", Instruction),
        ("What is done next", Work),
    ):
        yield from _kind(title, kind)
    yield "\n## Stimuli\n\n" + cells("stimulus", "meaning") + cells("---", "---")
    for stimulus in sorted({row.stimulus for row in TABLE}, key=lambda each: each.__name__):
        yield cells(f"`{stimulus.__name__}`", " ".join((inspect.getdoc(stimulus) or "").split()))


def _kind(title: str, kind: type[Enum]) -> Iterator[str]:
    said = meanings(kind)
    yield f"\n## {title}\n\n" + cells("word", "meaning") + cells("---", "---")
    for one in kind:
        yield cells(str(one.value), " ".join(said[one.name].split()))
