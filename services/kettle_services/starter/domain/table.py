"""
What a starter does when something happens: the table of its state machine, a row for each case.

Of several rows for one phase and stimulus the first whose condition holds counts.  `docs/generate.py` draws the picture and the
page of the machine from these rows.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kettle_services.starter.domain import stimuli as on
from kettle_services.starter.domain.instructions import Instruction as Do
from kettle_services.starter.domain.instructions import Work
from kettle_services.starter.domain.state import StarterPhase as In
from kettle_services.starter.domain.state import StarterState, SuspensionState

_NONE, _WANTED = SuspensionState.NONE, SuspensionState.WANTED
_REPORTED, _IN_FORCE = SuspensionState.REPORTED, SuspensionState.IN_FORCE
_COLLECT: Final = (Do.END_PROCESSES, Work.COLLECT)
_PREPARES: Final = (In.PREPARING, In.DEFERRED, In.CHECKPOINTING)
"""No program of the job runs in these, and one is to run."""
_HELPED: Final = (In.PREPARING, In.CHECKPOINTING, In.ENDING, In.COLLECTING)


class Condition(msgspec.Struct, frozen=True):
    """When a row counts."""

    text: str
    holds: Callable[[StarterState, on.Stimulus], bool]


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    phase: In
    stimulus: type[on.Stimulus]
    to: In
    instructions: tuple[Do | Work, ...] = ()
    when: Condition | None = None
    suspension: SuspensionState | None = None
    """What it is afterwards; None: as before."""
    helper: bool | None = None
    """Whether a helper runs afterwards; None: as before."""
    spoils: bool = False
    """This process runs no other job."""


def _at_once(state: StarterState, stimulus: on.Stimulus) -> bool:
    return (isinstance(stimulus, on.EndRequested) and stimulus.hard) or not state.helper


HARD: Final = Condition("hard", lambda _, stimulus: isinstance(stimulus, on.EndRequested) and stimulus.hard)
AT_ONCE: Final = Condition("hard, or no helper runs", _at_once)
ENDS: Final = Condition("it has a reason to end", lambda state, _: state.ending is not None)
ENDS_AND_HARD: Final = Condition(
    "hard, and it has a reason to end",
    lambda state, stimulus: ENDS.holds(state, stimulus) and HARD.holds(state, stimulus),
)
SUSPENDS: Final = Condition("suspension wanted", lambda state, _: state.suspends)
IN_FORCE: Final = Condition("suspension in force", lambda state, _: state.suspension is _IN_FORCE)
REPORTED: Final = Condition("suspension reported", lambda state, _: state.suspension is _REPORTED)
CHECKPOINT: Final = Condition(
    "with a checkpoint", lambda _, stimulus: isinstance(stimulus, on.ProgramEnded) and stimulus.checkpoint
)
RESTS: Final = Condition(
    "it ended by itself, and left nothing",
    lambda state, stimulus: (
        state.reusable
        and state.ending is None
        and isinstance(stimulus, on.ReportStored)
        and not stimulus.traces
    ),
)


def _row(
    phase: In,
    stimulus: type[on.Stimulus],
    to: In,
    *instructions: Do | Work,
    when: Condition | None = None,
    suspension: SuspensionState | None = None,
) -> Transition:
    return Transition(
        phase=phase, stimulus=stimulus, to=to, instructions=instructions, when=when, suspension=suspension
    )


def _orders_to_end() -> Iterator[Transition]:
    """The first reason counts; a hard order also hurries one that was given time."""
    for phase in (In.PREPARING, In.CHECKPOINTING):
        yield _row(phase, on.EndRequested, In.ENDING, Do.KILL, when=AT_ONCE)
        yield _row(phase, on.EndRequested, In.ENDING, Do.ASK_TO_END)
    yield _row(In.DEFERRED, on.EndRequested, In.ENDING, Do.KILL)
    yield _row(In.RUNNING, on.EndRequested, In.ENDING, Do.KILL, when=HARD)
    yield _row(In.RUNNING, on.EndRequested, In.ENDING, Do.ASK_TO_END)
    # A stopped process does not hear of its end.
    yield _row(In.SUSPENDED, on.EndRequested, In.ENDING, Do.KILL, Do.RESUME, when=HARD, suspension=_NONE)
    yield _row(In.SUSPENDED, on.EndRequested, In.ENDING, Do.ASK_TO_END, Do.RESUME, suspension=_NONE)
    yield _row(In.ENDING, on.EndRequested, In.ENDING, Do.KILL, when=HARD)
    yield _row(In.ENDING, on.EndRequested, In.ENDING)
    yield _row(In.COLLECTING, on.EndRequested, In.COLLECTING, Do.KILL, when=ENDS_AND_HARD)
    yield _row(In.COLLECTING, on.EndRequested, In.COLLECTING, when=ENDS)
    yield _row(
        In.COLLECTING, on.EndRequested, In.COLLECTING, Do.KILL, Do.RESUME, when=AT_ONCE, suspension=_NONE
    )
    yield _row(In.COLLECTING, on.EndRequested, In.COLLECTING, Do.ASK_TO_END, Do.RESUME, suspension=_NONE)
    yield _row(In.ENDING, on.KillTimeOver, In.ENDING, Do.KILL)
    yield _row(In.COLLECTING, on.KillTimeOver, In.COLLECTING, Do.KILL, when=ENDS)
    for phase in In:
        if phase is not In.ENDING:
            yield _row(phase, on.KillTimeOver, phase)
    yield _row(In.REPORTING, on.EndRequested, In.REPORTING)
    yield _row(In.OVER, on.EndRequested, In.OVER)


def _suspension() -> Iterator[Transition]:
    """What prepares a job is not suspended; what sends the results of one that ended by itself is."""
    for phase in (In.PREPARING, In.CHECKPOINTING):
        yield _row(phase, on.SuspendRequested, phase, Do.REPEAT_SUSPENSION, when=REPORTED)
        yield _row(phase, on.ContinueRequested, phase, Do.SAY_CONTINUED, when=REPORTED, suspension=_NONE)
    for phase in _PREPARES:
        yield _row(phase, on.SuspendRequested, phase, Do.REPEAT_SUSPENSION, suspension=_WANTED)
        yield _row(phase, on.ContinueRequested, phase, Do.REPEAT_SUSPENSION, suspension=_NONE)
    yield _row(In.RUNNING, on.SuspendRequested, In.SUSPENDED, Do.SUSPEND, suspension=_IN_FORCE)
    yield _row(In.RUNNING, on.ContinueRequested, In.RUNNING, Do.REPEAT_SUSPENSION)
    yield _row(In.SUSPENDED, on.SuspendRequested, In.SUSPENDED, Do.REPEAT_SUSPENSION)
    yield _row(In.SUSPENDED, on.ContinueRequested, In.RUNNING, Do.CONTINUE, suspension=_NONE)
    yield _row(In.ENDING, on.SuspendRequested, In.ENDING, Do.REPEAT_SUSPENSION)
    yield _row(In.ENDING, on.ContinueRequested, In.ENDING, Do.REPEAT_SUSPENSION)
    yield _row(In.COLLECTING, on.SuspendRequested, In.COLLECTING, Do.REPEAT_SUSPENSION, when=ENDS)
    yield _row(In.COLLECTING, on.SuspendRequested, In.COLLECTING, Do.REPEAT_SUSPENSION, when=IN_FORCE)
    yield _row(In.COLLECTING, on.SuspendRequested, In.COLLECTING, Do.SUSPEND, suspension=_IN_FORCE)
    yield _row(
        In.COLLECTING, on.ContinueRequested, In.COLLECTING, Do.CONTINUE, when=IN_FORCE, suspension=_NONE
    )
    yield _row(
        In.COLLECTING, on.ContinueRequested, In.COLLECTING, Do.SAY_CONTINUED, when=REPORTED, suspension=_NONE
    )
    yield _row(In.COLLECTING, on.ContinueRequested, In.COLLECTING, Do.REPEAT_SUSPENSION, suspension=_NONE)
    for phase in (In.REPORTING, In.OVER):
        yield _row(phase, on.SuspendRequested, phase)
        yield _row(phase, on.ContinueRequested, phase)


def _starts() -> Iterator[Transition]:
    """From an empty directory to a program that runs."""
    yield _row(In.PREPARING, on.StartDeferred, In.DEFERRED)
    yield _row(In.DEFERRED, on.StartTimeArrived, In.PREPARING)
    for stimulus, begin, end in (
        (on.ProgramStarted, (Do.COUNT_EXECUTION, Do.SAY_STARTED), (Do.PUBLISH, Work.WATCH)),
        (on.ProgramStartedAgain, (Do.COUNT_EXECUTION,), (Do.PUBLISH, Work.WATCH)),
        (on.TaskStarted, (), (Work.WATCH,)),
    ):
        suspended = (*begin, Do.SUSPEND, *end)
        yield _row(In.PREPARING, stimulus, In.SUSPENDED, *suspended, when=SUSPENDS, suspension=_IN_FORCE)
        yield _row(In.PREPARING, stimulus, In.RUNNING, *begin, Do.REPEAT_SUSPENSION, *end)


def _ends() -> Iterator[Transition]:
    """From a program that has ended, or was not started, to the final report."""
    saves = (Do.STOP_COUNTING, Work.SAVE_CHECKPOINT)
    yield _row(In.RUNNING, on.ProgramEnded, In.CHECKPOINTING, Do.END_PROCESSES, *saves, when=CHECKPOINT)
    yield _row(In.RUNNING, on.ProgramEnded, In.COLLECTING, *_COLLECT)
    yield _row(In.RUNNING, on.TaskEnded, In.PREPARING, Work.NEXT_TASK)
    # In a group that is frozen nobody can start a program.
    yield _row(
        In.SUSPENDED, on.ProgramEnded, In.CHECKPOINTING, Do.END_PROCESSES, Do.RESUME, *saves, when=CHECKPOINT,
        suspension=_REPORTED,
    )  # fmt: skip
    yield _row(In.SUSPENDED, on.ProgramEnded, In.COLLECTING, *_COLLECT)
    yield _row(In.SUSPENDED, on.TaskEnded, In.PREPARING, Do.RESUME, Work.NEXT_TASK, suspension=_REPORTED)
    yield _row(In.PREPARING, on.TasksFinished, In.COLLECTING, *_COLLECT)
    yield _row(In.CHECKPOINTING, on.CheckpointFinished, In.PREPARING, Work.START_AGAIN)
    for phase in (*_PREPARES, In.RUNNING, In.SUSPENDED, In.ENDING):
        yield _row(phase, on.AttemptFailed, In.COLLECTING, *_COLLECT)
    yield _row(In.COLLECTING, on.AttemptFailed, In.COLLECTING)
    yield _row(In.ENDING, on.ProgramEnded, In.COLLECTING, *_COLLECT)
    yield _row(In.ENDING, on.WorkAbandoned, In.COLLECTING, *_COLLECT)
    yield _row(In.COLLECTING, on.ResultsCollected, In.REPORTING, Work.REPORT)
    yield _row(In.REPORTING, on.ReportStored, In.OVER, Work.REST, when=RESTS)
    yield _row(In.REPORTING, on.ReportStored, In.OVER, Work.END)


def _mishaps() -> Iterator[Transition]:
    """What may happen at any time."""
    for phase in In:
        collects = phase not in {In.COLLECTING, In.REPORTING, In.OVER}
        yield Transition(
            phase=phase,
            stimulus=on.StarterStumbled,
            to=In.COLLECTING if collects else phase,
            instructions=_COLLECT if collects else (),
            spoils=phase is not In.OVER,
        )
        over = phase is In.OVER
        yield _row(phase, on.LifelineLost, In.OVER, *([] if over else [Work.END_WITH_LIFELINE]))
    for phase in _HELPED:
        yield Transition(phase=phase, stimulus=on.HelperStarted, to=phase, helper=True)
        yield Transition(phase=phase, stimulus=on.HelperEnded, to=phase, helper=False)


TABLE: Final = (*_starts(), *_orders_to_end(), *_suspension(), *_ends(), *_mishaps())
