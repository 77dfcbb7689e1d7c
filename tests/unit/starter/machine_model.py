"""
A starter that does nothing but what its state machine says: which stimuli can come in which state, and what must never be.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kettle_services.starter.domain import stimuli
from kettle_services.starter.domain.instructions import Instruction as Do
from kettle_services.starter.domain.instructions import Work
from kettle_services.starter.domain.state import StarterPhase as In
from kettle_services.starter.domain.state import StarterState, SuspensionState
from kettle_services.starter.domain.step import step
from kettle_wire.attempts import Ending

REMOVED: Final = Ending(code=1023, reason="removed")
LATE: Final = Ending(code=46, reason="it ran for too long")
FAILED: Final = Ending(code=12, reason="no results")
STUMBLED: Final = Ending(code=21, reason="the starter stumbled")

OUTSIDE: Final[tuple[stimuli.Stimulus, ...]] = (
    stimuli.EndRequested(REMOVED),
    stimuli.EndRequested(LATE, hard=True),
    stimuli.SuspendRequested(),
    stimuli.ContinueRequested(),
    stimuli.KillTimeOver(),
    stimuli.LifelineLost(),
    stimuli.StarterStumbled(STUMBLED),
)
WITHIN: Final[tuple[stimuli.Stimulus, ...]] = (
    stimuli.HelperStarted(),
    stimuli.HelperEnded(),
    stimuli.StartDeferred(),
    stimuli.StartTimeArrived(),
    stimuli.ProgramStarted(),
    stimuli.ProgramStartedAgain(),
    stimuli.TaskStarted(),
    stimuli.ProgramEnded(),
    stimuli.ProgramEnded(checkpoint=True),
    stimuli.TaskEnded(),
    stimuli.TasksFinished(),
    stimuli.CheckpointFinished(),
    stimuli.AttemptFailed(FAILED),
    stimuli.WorkAbandoned(),
    stimuli.ResultsCollected(),
    stimuli.ReportStored(),
    stimuli.ReportStored(traces=True),
)


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A state, and what was done so far."""

    state: StarterState = StarterState()
    work: Work = Work.START
    tasks: bool = False
    """The job has several tasks."""
    program: bool = False
    """A program of the job runs."""
    ended: bool = False
    """No process of the job is left."""
    helper: bool = False
    waits: bool = False
    """For the time at which the job wants to be started."""
    deferred: bool = False
    """It has waited for it."""
    wanted: bool = False
    """It is to be suspended, by the last order."""
    said: bool = False
    """That it is suspended, was the last that was said of it."""
    spoiled: bool = False
    published: bool = False
    asked: bool = False
    killed: bool = False
    stopped: bool = False
    counting: bool = False
    started: bool = False
    collected: bool = False
    reported: bool = False
    over: bool = False


_WITHIN: Final[Mapping[In, tuple[stimuli.Stimulus, ...]]] = {
    In.DEFERRED: (stimuli.StartTimeArrived(), stimuli.AttemptFailed(FAILED)),
    In.CHECKPOINTING: (
        stimuli.HelperStarted(),
        stimuli.CheckpointFinished(),
        stimuli.AttemptFailed(FAILED),
    ),
    In.COLLECTING: (stimuli.HelperStarted(), stimuli.ResultsCollected(), stimuli.AttemptFailed(FAILED)),
    In.REPORTING: (stimuli.ReportStored(), stimuli.ReportStored(traces=True)),
    In.OVER: (),
}
_PROGRAM_ENDS: Final = (stimuli.ProgramEnded(), stimuli.ProgramEnded(checkpoint=True))


def within(model: Model) -> tuple[stimuli.Stimulus, ...]:
    """What the work that is going on can end with, or have happen."""
    phase = model.state.phase
    if model.state.helper and phase is not In.OVER:
        return (stimuli.HelperEnded(),)
    match phase:
        case In.PREPARING:
            return _while_preparing(model)
        case In.RUNNING | In.SUSPENDED:
            ends = (stimuli.TaskEnded(),) if model.tasks else _PROGRAM_ENDS
            return (*ends, stimuli.AttemptFailed(FAILED))
        case In.ENDING if model.program and not model.tasks:
            return _PROGRAM_ENDS
        case In.ENDING:
            return stimuli.HelperStarted(), stimuli.WorkAbandoned(), stimuli.AttemptFailed(FAILED)
        case _:
            return _WITHIN[phase]


def _while_preparing(model: Model) -> tuple[stimuli.Stimulus, ...]:
    if model.work is Work.START_AGAIN:
        return stimuli.ProgramStartedAgain(), stimuli.AttemptFailed(FAILED)
    start = stimuli.TaskStarted() if model.work is Work.NEXT_TASK else stimuli.ProgramStarted()
    defers = (stimuli.StartDeferred(),) if model.work is Work.START and not model.deferred else ()
    finished = (stimuli.TasksFinished(),) if model.tasks else ()
    return start, *defers, *finished, stimuli.HelperStarted(), stimuli.AttemptFailed(FAILED)


def after(model: Model, stimulus: stimuli.Stimulus) -> Model:
    """What comes of it; an AssertionError if that must not be."""
    state, instructions = step(model.state, stimulus)
    _must(model.state.ending in {None, state.ending}, "the first reason counts")
    _must(not (model.over and instructions), "nothing follows the end")
    _must(_heeds(model, stimulus, instructions), f"{type(stimulus).__name__} is not heeded")
    model = msgspec.structs.replace(model, state=state, **_facts(model, stimulus))
    for instruction in instructions:
        holds, why, changes = _RULES[instruction]
        _must(holds(model, state.ending is not None), why)
        work = instruction if isinstance(instruction, Work) else model.work
        model = msgspec.structs.replace(model, work=work, **changes)
    _holds(model)
    return model


def _facts(model: Model, stimulus: stimuli.Stimulus) -> dict[str, bool]:
    """What is true from then on, whatever is done about it."""
    match stimulus:
        case stimuli.ProgramStarted() | stimuli.ProgramStartedAgain() | stimuli.TaskStarted():
            return {"program": True, "ended": False}
        case stimuli.ProgramEnded() | stimuli.TaskEnded():
            return {"program": False}
        case stimuli.HelperStarted() | stimuli.HelperEnded():
            return {"helper": isinstance(stimulus, stimuli.HelperStarted)}
        case stimuli.StartDeferred() | stimuli.StartTimeArrived():
            return {"waits": isinstance(stimulus, stimuli.StartDeferred), "deferred": True}
        case stimuli.SuspendRequested() | stimuli.ContinueRequested():
            return {"wanted": isinstance(stimulus, stimuli.SuspendRequested)}
        case stimuli.StarterStumbled():
            return {"spoiled": True}
        case _:
            return {}


_SAYS: Final = frozenset({Do.SUSPEND, Do.CONTINUE, Do.SAY_CONTINUED, Do.REPEAT_SUSPENSION})


def _heeds(model: Model, stimulus: stimuli.Stimulus, instructions: tuple[Do | Work, ...]) -> bool:
    """Whether what has to be done at once is done."""
    if model.reported or model.over:
        return True
    ends = model.state.ending is not None
    match stimulus:
        case stimuli.EndRequested(hard=True):
            return Do.KILL in instructions
        case stimuli.EndRequested():
            return ends or not {Do.ASK_TO_END, Do.KILL}.isdisjoint(instructions)
        case stimuli.KillTimeOver():
            return not ends or Do.KILL in instructions
        case stimuli.SuspendRequested() | stimuli.ContinueRequested():
            return 1 == len(_SAYS.intersection(instructions))
        case stimuli.ProgramStarted() | stimuli.ProgramStartedAgain() | stimuli.TaskStarted():
            return 1 == len(_SAYS.intersection(instructions))
        case _:
            return True


def _always(_: Model, _ends: bool) -> bool:
    return True


_Rule = tuple[Callable[[Model, bool], bool], str, dict[str, bool]]
_OVER: Final = {"over": True}
_RULES: Final[Mapping[Do | Work, _Rule]] = {
    Do.ASK_TO_END: (
        lambda model, ends: ends and not model.asked and not model.killed,
        "it is asked once, with a reason, and before it is killed",
        {"asked": True},
    ),
    Do.KILL: (lambda _, ends: ends, "nothing is killed without a reason", {"killed": True}),
    Do.SUSPEND: (
        lambda model, ends: not model.stopped and not ends,
        "what is to end has to hear of it",
        {"stopped": True, "said": True},
    ),
    Do.RESUME: (_always, "", {"stopped": False}),
    Do.CONTINUE: (
        lambda model, _: model.stopped,
        "what goes on was stopped",
        {"stopped": False, "said": False},
    ),
    Do.SAY_CONTINUED: (lambda model, _: not model.stopped, "what is said to go on goes on", {"said": False}),
    Do.REPEAT_SUSPENSION: (_always, "", {}),
    Do.SAY_STARTED: (
        lambda model, _: model.program and not model.started,
        "the start is reported once",
        {"started": True},
    ),
    Do.COUNT_EXECUTION: (
        lambda model, _: model.program and not model.counting,
        "the time of a program that runs counts",
        {"counting": True},
    ),
    Do.STOP_COUNTING: (
        lambda model, _: model.counting and not model.program,
        "the time of one that has ended does not",
        {"counting": False},
    ),
    Do.PUBLISH: (lambda model, _: model.program, "there is something to be reached", {"published": True}),
    Do.END_PROCESSES: (_always, "", {"program": False, "ended": True, "published": False}),
    **dict.fromkeys(
        (Work.START, Work.START_AGAIN, Work.NEXT_TASK),
        (
            lambda model, ends: not (ends or model.program or model.stopped or model.over),
            "a start has nothing in its way",
            {},
        ),
    ),
    Work.WATCH: (lambda model, ends: model.program and not ends, "what is watched runs", {}),
    Work.SAVE_CHECKPOINT: (
        lambda model, ends: model.ended and not (ends or model.stopped or model.counting),
        "what is saved does not change",
        {},
    ),
    Work.COLLECT: (
        lambda model, _: model.ended and not model.collected,
        "results are collected once, when nothing runs",
        {"collected": True},
    ),
    Work.REPORT: (
        lambda model, _: model.collected and not model.reported,
        "the final report is made once, of what was collected",
        {"reported": True},
    ),
    Work.END: (lambda model, _: model.reported and not model.over, "one end, after the report", _OVER),
    Work.REST: (
        lambda model, ends: (
            model.reported and not (model.over or ends or model.spoiled) and model.state.reusable
        ),
        "nothing of this job meets the next one",
        _OVER,
    ),
    Work.END_WITH_LIFELINE: (lambda model, _: not model.over, "one end", _OVER),
}


_DOES: Final[Mapping[In, frozenset[Work]]] = {
    In.PREPARING: frozenset({Work.START, Work.START_AGAIN, Work.NEXT_TASK}),
    In.DEFERRED: frozenset({Work.START}),
    In.RUNNING: frozenset({Work.WATCH}),
    In.SUSPENDED: frozenset({Work.WATCH}),
    In.CHECKPOINTING: frozenset({Work.SAVE_CHECKPOINT}),
    In.ENDING: frozenset(Work) - {Work.COLLECT, Work.REPORT, Work.END, Work.REST, Work.END_WITH_LIFELINE},
    In.COLLECTING: frozenset({Work.COLLECT}),
    In.REPORTING: frozenset({Work.REPORT}),
    In.OVER: frozenset({Work.END, Work.REST, Work.END_WITH_LIFELINE}),
}


def _holds(model: Model) -> None:
    """What is true between two stimuli."""
    state, phase, ends = model.state, model.state.phase, model.state.ending is not None
    wrong = f"what was done is another thing than {state}"
    _must(model.over == (phase is In.OVER), wrong)
    _must(model.work in _DOES[phase], wrong)
    if model.over:
        return
    _must(model.stopped == (state.suspension is SuspensionState.IN_FORCE), wrong)
    _must(model.helper == state.helper, wrong)
    _must(not (model.spoiled and state.reusable), wrong)
    if phase in {In.RUNNING, In.SUSPENDED}:
        _must(
            not ends and model.program and model.published and model.stopped == (phase is In.SUSPENDED), wrong
        )
    elif phase in {In.COLLECTING, In.REPORTING}:
        _must(model.collected and model.ended, wrong)
    elif phase is In.ENDING:
        _must(ends and not model.stopped and (model.asked or model.killed), wrong)
    else:
        _must(not ends and not model.program and model.waits == (phase is In.DEFERRED), wrong)
    if not ends and phase is not In.REPORTING:
        _must(model.wanted == state.suspends, wrong)
        _must(model.wanted or not model.said, wrong)


def _must(holds: bool, why: str) -> None:
    """Raises AssertionError."""
    if not holds:
        raise AssertionError(why)
