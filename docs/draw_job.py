"""
Draws `docs/explanation/job-phases.svg` and `docs/explanation/attempt-phases.svg`, and lists `docs/reference/job-machine.md`: what
becomes of a job, from the table by which it is decided and those of what events lead to.

`docs/generate.py` writes them; by itself this module only makes their text.
Where a phase stands and how an arrow goes is said here; which arrows there are, and what is written at them, is in the tables.
"""

import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import groupby
from typing import Final

from msgspec import Struct

from kettle.schema_generation.field_descriptions import meanings
from kettle.schema_generation.state_diagrams import Frame, Route, StateBox, cells, state_diagram
from kettle_services.schedd.domain.jobs.attempt import BEGAN, LIVING, PHASE_AFTER, AttemptPhase, AttemptState
from kettle_services.schedd.domain.jobs.job import Job, JobPhase, phase_after
from kettle_services.schedd.domain.jobs.table import TABLE, JobCase
from kettle_wire.events import JobAssigned, JobCompleted, JobContinued, JobEvent, JobVacated

_J, _A = JobPhase, AttemptPhase
_SIZE: Final = (1120, 640)
_NOTE: Final = "What is recorded in each case: docs/reference/job-machine.md."

# -- the job -----------------------------------------------------------------------------------------------------------

_COUNTS: Final = (_J.RUNNING, _J.IDLE_ENDING, _J.HELD_ENDING)
_JOB_FRAME: Final = Frame(620, 84, 460, 330, "an attempt may live")
_JOB_PLACES: Final[Mapping[JobPhase, tuple[int, int]]] = {
    _J.IDLE: (200, 150),
    _J.HELD: (200, 350),
    _J.REMOVED: (200, 550),
    _J.COMPLETED: (480, 470),
    _J.RUNNING: (740, 150),
    _J.IDLE_ENDING: (960, 250),
    _J.HELD_ENDING: (740, 350),
    _J.REMOVED_ENDING: (860, 550),
}
_JobEdge = tuple[JobPhase | None, JobPhase]
_JOB_ROUTES: Final[Mapping[_JobEdge, Route]] = {
    (_J.IDLE, _J.RUNNING): ("M266 142 H672", (440, 134), "middle"),
    (_J.RUNNING, _J.IDLE): ("M674 160 H268", (440, 177), "middle"),
    (_J.RUNNING, _J.HELD): ("M690 170 C600 250 480 310 268 342", (452, 262), "end"),
    (_J.RUNNING, _J.HELD_ENDING): ("M725 170 V328", (718, 250), "end"),
    (_J.HELD_ENDING, _J.IDLE_ENDING): ("M815 338 C860 330 900 310 930 272", (836, 318), "end"),
    (_J.IDLE_ENDING, _J.HELD_ENDING): ("M960 270 C950 330 890 356 817 356", (934, 346), "start"),
    (_J.IDLE_ENDING, _J.IDLE): ("M1000 230 C1000 30 420 36 230 128", (640, 62), "middle"),
    (_J.IDLE_ENDING, _J.HELD): ("M885 256 C700 270 480 330 268 350", (532, 336), "start"),
    (_J.HELD_ENDING, _J.HELD): ("M665 362 H268", (440, 379), "middle"),
    (_J.REMOVED_ENDING, _J.REMOVED): ("M785 556 H268", (520, 574), "middle"),
    (_J.IDLE, _J.HELD): ("M185 170 V328", (178, 240), "end"),
    (_J.HELD, _J.IDLE): ("M215 330 V172", (222, 240), "start"),
    (_J.HELD, _J.REMOVED): ("M200 370 V528", (208, 450), "start"),
    (_J.IDLE, _J.REMOVED): ("M134 156 C70 200 70 480 150 528", (84, 350), "end"),
    (_J.COMPLETED, _J.REMOVED): ("M414 480 C360 490 310 510 268 540", (350, 520), "start"),
    (None, _J.COMPLETED): ("M640 414 C620 450 590 466 548 470", (628, 448), "start"),
    (None, _J.REMOVED_ENDING): ("M860 414 V528", (868, 476), "start"),
}


def job_picture() -> str:
    """How a job gets from phase to phase."""
    return state_diagram(
        title="The phases of a job, and what leads from one to the next",
        size=_SIZE,
        notes=[_NOTE],
        frames=[_JOB_FRAME],
        arrows=[(_JOB_ROUTES[edge], said) for edge, said in _job_edges().items()],
        boxes=[
            StateBox(
                phase.value,
                *_JOB_PLACES[phase],
                "on" if phase in _COUNTS else "off",
                150 if "," in phase.value else 132,
            )
            for phase in JobPhase
        ],
    )


def _job_edges() -> dict[_JobEdge, dict[str, list[str]]]:
    """What leads from where to where; of phases in the frame, only what not all of them have."""
    moves = [
        (case.phase, to, case.word.__name__, case.when.text if case.when is not None else "")
        for case in TABLE
        if isinstance(case.phase, JobPhase) and (to := _job_after(case.phase, case.events)) is not case.phase
    ]
    sources: defaultdict[tuple[JobPhase, str, str], set[JobPhase]] = defaultdict(set)
    for phase, to, word, when in moves:
        sources[to, word, when].add(phase)
    found: dict[_JobEdge, dict[str, list[str]]] = {}
    for phase, to, word, when in moves:
        whole = phase in _COUNTS and sources[to, word, when] >= set(_COUNTS)
        found.setdefault((None if whole else phase, to), {}).setdefault(word, []).append(when)
    return found


def _job_after(phase: JobPhase, events: Iterable[type[JobEvent]]) -> JobPhase:
    for event in events:
        phase = phase_after(phase, event)
    return phase


# -- its attempt -------------------------------------------------------------------------------------------------------

_ATTEMPT_FRAME: Final = Frame(250, 110, 830, 350, "the attempt may live")
_ATTEMPT_PLACES: Final[Mapping[AttemptPhase, tuple[int, int]]] = {
    _A.NONE: (110, 200),
    _A.STARTING: (360, 200),
    _A.STARTING_SUSPENDED: (360, 390),
    _A.RUNNING: (660, 200),
    _A.SUSPENDED: (660, 390),
    _A.DISCONNECTED: (950, 200),
    _A.DISCONNECTED_SUSPENDED: (950, 390),
    _A.FINISHED: (660, 560),
}
_AttemptEdge = tuple[AttemptPhase | None, AttemptPhase]
_ATTEMPT_ROUTES: Final[Mapping[_AttemptEdge, Route]] = {
    (_A.NONE, _A.STARTING): ("M176 192 H292", (178, 184), "start"),
    (_A.STARTING, _A.STARTING_SUSPENDED): ("M345 220 V368", (338, 262), "end"),
    (_A.STARTING_SUSPENDED, _A.STARTING): ("M375 370 V222", (382, 296), "start"),
    (_A.STARTING, _A.RUNNING): ("M426 200 H592", (510, 192), "middle"),
    (_A.STARTING_SUSPENDED, _A.SUSPENDED): ("M466 390 H592", (530, 382), "middle"),
    (_A.RUNNING, _A.SUSPENDED): ("M645 220 V368", (638, 296), "end"),
    (_A.SUSPENDED, _A.RUNNING): ("M675 370 V222", (682, 296), "start"),
    (_A.RUNNING, _A.DISCONNECTED): ("M726 192 H882", (804, 184), "middle"),
    (_A.DISCONNECTED, _A.RUNNING): ("M884 208 H728", (806, 225), "middle"),
    (_A.SUSPENDED, _A.DISCONNECTED_SUSPENDED): ("M726 382 H842", (787, 374), "middle"),
    (_A.DISCONNECTED_SUSPENDED, _A.SUSPENDED): ("M844 398 H728", (787, 415), "middle"),
    (_A.DISCONNECTED, _A.DISCONNECTED_SUSPENDED): ("M935 220 V368", (928, 296), "end"),
    (_A.DISCONNECTED_SUSPENDED, _A.DISCONNECTED): ("M965 370 V222", (972, 296), "start"),
    (None, _A.NONE): ("M250 300 C190 300 120 280 112 222", (40, 330), "start"),
    (None, _A.FINISHED): ("M660 460 V538", (670, 502), "start"),
}
_WIDE: Final = 212


def attempt_picture() -> str:
    """How its attempt does."""
    also = [
        event.__name__
        for event, phases in PHASE_AFTER.items()
        if phases is _CONTINUED and event is not JobContinued
    ]
    return state_diagram(
        title="The phases of an attempt, and what leads from one to the next",
        size=_SIZE,
        notes=[_NOTE, f"As JobContinued, these end a suspension: {', '.join(also)}."],
        frames=[_ATTEMPT_FRAME],
        arrows=[(_ATTEMPT_ROUTES[edge], said) for edge, said in _attempt_edges().items()],
        boxes=[
            StateBox(
                phase.value,
                *_ATTEMPT_PLACES[phase],
                "on" if phase in LIVING else "off",
                _WIDE if "," in phase.value else 132,
            )
            for phase in AttemptPhase
        ],
    )


_CONTINUED: Final = PHASE_AFTER[JobContinued]


def _attempt_edges() -> dict[_AttemptEdge, dict[str, list[str]]]:
    """What leads from where to where; what ends an attempt is drawn from the frame."""
    found: dict[_AttemptEdge, dict[str, list[str]]] = {}
    for event, phases in PHASE_AFTER.items():
        if event is JobAssigned:
            found.setdefault((_A.NONE, phases[_A.NONE]), {})[event.__name__] = []
        elif event in {JobVacated, JobCompleted}:
            for to in dict.fromkeys(phases[phase] for phase in LIVING):
                found.setdefault((None, to), {})[event.__name__] = _when(phases, to)
        elif event is JobContinued or phases is not _CONTINUED:
            for phase, to in phases.items():
                found.setdefault((phase, to), {})[event.__name__] = []
    return found


def _when(phases: Mapping[AttemptPhase, AttemptPhase], to: AttemptPhase) -> list[str]:
    sources = {phase for phase in LIVING if phases[phase] is to}
    if sources == set(LIVING):
        return []
    assert sources in (set(LIVING) & BEGAN, set(LIVING) - BEGAN), "another condition has no words yet"
    return ["its program was seen running" if sources <= BEGAN else "its program was not seen running"]


# -- the list ----------------------------------------------------------------------------------------------------------

_HEAD: Final = """\
# The state machine of a job

What is recorded when something is said of a job, phase by phase: the cases of `kettle_services.schedd.domain.jobs.table:TABLE`.
[The job as a machine](../explanation/the-job-as-a-machine.md) explains them, and has the pictures.

Of several cases for one word the first whose condition holds counts.
Where nothing is recorded, the word changes nothing; what is refused is answered with a sentence.
Events with a star come after `JobReconnected`, if the machine counted as disconnected: it has shown that it is there.
What is reported of an attempt that is over, or of another one, changes nothing in any phase.
"""


def job_page() -> str:
    """The list of the table, and what its words mean."""
    return "".join([_HEAD, *_phases(JobPhase), *_phases(AttemptPhase), *_words()])


def _phases(kind: type[JobPhase] | type[AttemptPhase]) -> Iterator[str]:
    said, order = meanings(kind), list(kind)
    what = "A job that is" if kind is JobPhase else "An attempt that is"
    cases = sorted(
        (case for case in TABLE if isinstance(case.phase, kind)),
        key=lambda case: (order.index(case.phase), case.word.__name__),
    )
    for phase, group in groupby(cases, key=lambda case: case.phase):
        yield f"\n## {what} {phase.value}\n\n{said[phase.name]}\n\n"
        yield cells("word", "if", "recorded", "phase then") + cells("---", "---", "---", "---")
        for case in group:
            when = case.when.text if case.when is not None else ""
            yield cells(f"`{case.word.__name__}`", when, _recorded(case), _then(case))


def _recorded(case: JobCase) -> str:
    if case.refusal is not None:
        return "refused"
    star = "*" if case.ends_silence else ""
    return ", ".join(f"`{event.__name__}`" for event in case.events) + star


def _then(case: JobCase) -> str:
    phase: JobPhase | AttemptPhase = case.phase
    for event in case.events:
        if isinstance(phase, JobPhase):
            phase = phase_after(phase, event)
        else:
            phase = PHASE_AFTER.get(event, {}).get(phase, phase)
    return "" if phase is case.phase else phase.value


def _words() -> Iterator[str]:
    for title, kind in (("What is known of a job", Job), ("What is known of its attempt", AttemptState)):
        yield f"\n## {title}\n\n" + cells("fact", "meaning") + cells("---", "---")
        yield from _facts(kind)
    yield "\n## Phases of an attempt\n\n" + cells("phase", "meaning") + cells("---", "---")
    said = meanings(AttemptPhase)
    yield from (cells(str(phase.value), said[phase.name]) for phase in AttemptPhase)
    yield "\n## Words\n\n" + cells("word", "meaning") + cells("---", "---")
    for word in sorted({case.word for case in TABLE}, key=lambda each: each.__name__):
        yield cells(f"`{word.__name__}`", " ".join((inspect.getdoc(word) or "").split()))


def _facts(kind: type[Struct] | type[Enum]) -> Iterator[str]:
    return (cells(f"`{name}`", " ".join(text.split())) for name, text in meanings(kind).items())
