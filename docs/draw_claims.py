"""
Draws `docs/explanation/claim-phases.svg` and lists `docs/reference/claim-machine.md`: what becomes of a claim at its schedd, from
the table by which it is decided.

`docs/generate.py` writes both; by itself this module only makes their text.
Where a phase stands and how an arrow goes is said here; which arrows there are, and what is written at them, is in the table.
What leads from all phases of a frame to one outside is drawn once, from the frame.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import groupby
from typing import Final

from kettle.schema_generation.field_descriptions import meanings
from kettle.schema_generation.state_diagrams import Frame, Route, StateBox, cells, state_diagram
from kettle_services.schedd.domain.claims.states import (
    ASKING,
    ON_RECORD,
    ClaimInstruction,
    ClaimPhase,
    ClaimStimulus,
)
from kettle_services.schedd.domain.claims.table import CLAIM_TABLE, ClaimCase

_P: Final = ClaimPhase
_SIZE: Final = (1180, 710)
_NOTE: Final = "What leaves a phase as it is, and what is done in each case: docs/reference/claim-machine.md."
_PLACES: Final[Mapping[ClaimPhase, tuple[int, int]]] = {
    _P.ASKED: (230, 150),
    _P.WAITING: (230, 320),
    _P.IDLE: (690, 150),
    _P.RUNNING: (690, 320),
    _P.LOST: (990, 150),
    _P.SILENT: (990, 320),
    _P.OVER: (230, 600),
    _P.RETURNING: (690, 600),
}
_GROUPS: Final[Mapping[str, tuple[ClaimPhase, ...]]] = {"asked for": ASKING, "on record": ON_RECORD}
_FRAMES: Final = (Frame(110, 84, 240, 300, "asked for"), Frame(560, 84, 580, 300, "on record"))
_Edge = tuple[ClaimPhase | str, ClaimPhase]
"""From a phase, or from all phases of a group, to a phase."""
_ROUTES: Final[Mapping[_Edge, Route]] = {
    (_P.OVER, _P.ASKED): ("M164 600 C20 560 20 210 162 156", (96, 150), "end"),
    (_P.ASKED, _P.WAITING): ("M230 170 V298", (238, 240), "start"),
    (_P.ASKED, _P.OVER): ("M174 168 C120 260 120 480 186 578", (142, 476), "start"),
    ("asked for", _P.OVER): ("M220 384 V578", (212, 440), "end"),
    ("asked for", _P.RUNNING): ("M350 320 H622", (460, 312), "middle"),
    ("asked for", _P.IDLE): ("M350 150 H622", (460, 142), "middle"),
    ("asked for", _P.RETURNING): ("M330 384 C380 480 500 560 622 586", (404, 490), "end"),
    (_P.WAITING, _P.RETURNING): ("M280 340 C380 420 520 560 640 578", (228, 372), "start"),
    (_P.IDLE, _P.RUNNING): ("M675 170 V298", (668, 240), "end"),
    (_P.RUNNING, _P.IDLE): ("M705 300 V172", (712, 280), "start"),
    (_P.RUNNING, _P.SILENT): ("M756 312 H922", (850, 306), "middle"),
    (_P.SILENT, _P.RUNNING): ("M924 330 H758", (840, 346), "middle"),
    (_P.SILENT, _P.IDLE): ("M950 300 C900 230 820 180 758 164", (826, 208), "end"),
    (_P.LOST, _P.IDLE): ("M924 144 H758", (840, 136), "middle"),
    (_P.RUNNING, _P.LOST): ("M740 300 C800 270 880 210 936 172", (830, 262), "start"),
    (_P.SILENT, _P.LOST): ("M1000 300 V172", (1008, 250), "start"),
    (_P.LOST, _P.OVER): ("M1056 156 C1180 240 1170 690 700 690 C520 690 380 670 290 622", (1050, 520), "end"),
    (_P.IDLE, _P.OVER): ("M626 164 C540 220 480 560 298 592", (542, 236), "end"),
    ("on record", _P.RETURNING): ("M700 384 V578", (708, 470), "start"),
    ("on record", _P.OVER): ("M610 384 C580 480 440 580 298 598", (602, 430), "start"),
    (_P.RETURNING, _P.OVER): ("M624 606 H298", (460, 582), "middle"),
    (_P.OVER, _P.RETURNING): ("M298 616 H622", (560, 632), "middle"),
}


# -- the picture -------------------------------------------------------------------------------------------------------


def claim_picture() -> str:
    """How a claim gets from phase to phase."""
    return state_diagram(
        title="The phases of a claim at its schedd, and what leads from one to the next",
        size=_SIZE,
        notes=[_NOTE],
        frames=_FRAMES,
        arrows=[(_ROUTES[edge], said) for edge, said in _edges().items()],
        boxes=[StateBox(phase.value, *_PLACES[phase], "on" if phase in ON_RECORD else "off") for phase in _P],
    )


def _edges() -> dict[_Edge, dict[str, list[str]]]:
    """What leads from where to where; what leads from all of a group out of it is said once."""
    moves = [case for case in CLAIM_TABLE if case.to is not case.phase]
    sources: defaultdict[tuple[ClaimPhase, ClaimStimulus], set[ClaimPhase]] = defaultdict(set)
    for case in moves:
        sources[case.to, case.stimulus].add(case.phase)
    found: dict[_Edge, dict[str, list[str]]] = {}
    for case in moves:
        group = next(
            (
                name
                for name, phases in _GROUPS.items()
                if case.phase in phases
                and case.to not in phases
                and sources[case.to, case.stimulus] >= set(phases)
            ),
            None,
        )
        said = found.setdefault((group or case.phase, case.to), {})
        said[f"{case.stimulus.value} {_condition(case)}".rstrip()] = []
    return found


def _condition(case: ClaimCase) -> str:
    return "" if case.doubted is None else "twice" if case.doubted else "for the first time"


# -- the list ----------------------------------------------------------------------------------------------------------

_HEAD: Final = """\
# The state machine of a claim

What becomes of a claim at its schedd when something happens to it, phase by phase: the rows of `kettle_services.schedd.domain.claims.table:CLAIM_TABLE`.
[Claims and slots](../explanation/claims-and-slots.md) explains them, and has the picture.

What is done is done in its order.
A stimulus that a phase does not list is one of the schedd's own that cannot come there: it would be a defect.
"""


def claims_page() -> str:
    """The list of the table, and what its words mean."""
    return "".join([_HEAD, *_phases(), *_words()])


def _phases() -> Iterator[str]:
    said = meanings(ClaimPhase)
    order, stimuli = list(ClaimPhase), list(ClaimStimulus)
    rows = sorted(CLAIM_TABLE, key=lambda row: (order.index(row.phase), stimuli.index(row.stimulus)))
    for phase, group in groupby(rows, key=lambda row: row.phase):
        yield f"\n## {phase.value.capitalize()}\n\n{' '.join(said[phase.name].split())}\n\n"
        yield cells("stimulus", "if", "phase then", "what is done") + cells("---", "---", "---", "---")
        for row in group:
            to = row.to.value if row.to is not row.phase else ""
            done = ", ".join(each.value for each in row.instructions)
            yield cells(row.stimulus.value, _condition(row), to, done)


def _words() -> Iterator[str]:
    yield from _kind("Stimuli", ClaimStimulus)
    yield from _kind("What is done", ClaimInstruction)


def _kind(title: str, kind: type[Enum]) -> Iterator[str]:
    said = meanings(kind)
    yield f"\n## {title}\n\n" + cells("word", "meaning") + cells("---", "---")
    for one in kind:
        yield cells(str(one.value), " ".join(said[one.name].split()))
