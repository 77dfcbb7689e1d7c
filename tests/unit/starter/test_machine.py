"""
The state machine of a starter: every state and stimulus, every way through it, long random walks, and recorded ones.
"""

import itertools
import os
import random
from functools import cache
from pathlib import Path
from typing import Final, get_args

import msgspec
import pytest

from kettle_services.starter.domain import stimuli
from kettle_services.starter.domain.instructions import Instruction, Work
from kettle_services.starter.domain.state import StarterPhase, StarterState, SuspensionState
from kettle_services.starter.domain.step import UnexpectedStimulusError, step
from kettle_services.starter.domain.table import TABLE, Transition
from kettle_services.starter.stimulus_log import RecordedStep

from .machine_model import LATE, OUTSIDE, REMOVED, WITHIN, Model, after, within

RECORDINGS: Final = sorted(Path(__file__).with_name("recorded_stimuli").glob("*.jsonl"))
STEPS: Final = 1_000_000 if "KETTLE_TEST_LONG" in os.environ else 100_000

STATES: Final = [
    StarterState(phase=phase, suspension=suspension, ending=ending, helper=helper, reusable=reusable)
    for phase, suspension, ending, helper, reusable in itertools.product(
        StarterPhase, SuspensionState, (None, REMOVED), (False, True), (False, True)
    )
]


CASES: Final[dict[tuple[StarterPhase, type[stimuli.Stimulus]], list[Transition]]] = {}
for each_row in TABLE:
    CASES.setdefault((each_row.phase, each_row.stimulus), []).append(each_row)


def row_of(state: StarterState, stimulus: stimuli.Stimulus) -> Transition:
    """The row that counts."""
    rows = CASES[state.phase, type(stimulus)]
    return next(row for row in rows if row.when is None or row.when.holds(state, stimulus))


# -- each state, each stimulus -----------------------------------------------------------------------------------------


def test_every_stimulus_is_among_those_that_are_tried() -> None:
    assert set(get_args(stimuli.Stimulus)) == {type(one) for one in (*OUTSIDE, *WITHIN)}
    assert set(get_args(stimuli.Outside)) == {type(one) for one in OUTSIDE}


def test_every_state_and_stimulus_has_an_outcome() -> None:
    """
    What comes from outside is expected in each state; what the starter itself does is refused where it does not do that, and
    nothing is changed by it.
    """
    for state, stimulus in itertools.product(STATES, (*OUTSIDE, *WITHIN)):
        if (state.phase, type(stimulus)) in CASES:
            following, instructions = step(state, stimulus)
            assert isinstance(following, StarterState)
            assert all(isinstance(one, Instruction | Work) for one in instructions)
        else:
            assert stimulus in WITHIN
            with pytest.raises(
                UnexpectedStimulusError, match=f"{type(stimulus).__name__} while .* {state.phase}"
            ):
                step(state, stimulus)


def test_every_case_ends_with_a_row_without_a_condition() -> None:
    """So that none is left out; and after such a row there is no other, which nobody would ever reach."""
    for rows in CASES.values():
        assert [True] * (len(rows) - 1) + [False] == [row.when is not None for row in rows]


# -- each way ----------------------------------------------------------------------------------------------------------


@cache
def reachable() -> tuple[set[Model], set[int]]:
    """
    All states that there can be, with what was done before them, and the identities of the rows that lead there.
    """
    found = {Model(tasks=tasks) for tasks in (False, True)}
    rows: set[int] = set()
    left = list(found)
    while left:
        model = left.pop()
        for stimulus in (*within(model), *OUTSIDE):
            rows.add(id(row_of(model.state, stimulus)))
            following = after(model, stimulus)
            if following not in found:
                found.add(following)
                left.append(following)
    return found, rows


def test_nothing_that_must_not_be_is_reached_on_any_way() -> None:
    """
    All ways through the machine are walked, to each state that there can be: the checks of the model hold on each of them,
    and no row of the table is left over.
    """
    found, rows = reachable()
    assert set(StarterPhase) == {model.state.phase for model in found}
    assert [] == [row for row in TABLE if id(row) not in rows]


def test_whatever_has_happened_an_attempt_can_be_ended() -> None:
    """
    A hard order, and a starter that does its work, lead from every state to one final report within a few steps.
    """
    for start in reachable()[0]:
        model = start if start.over else after(start, stimuli.EndRequested(LATE, hard=True))
        for _ in range(5):
            if model.over:
                break
            model = after(model, next(one for one in within(model) if ends(one)))
        assert model.over, start


def ends(stimulus: stimuli.Stimulus) -> bool:
    """Whether it is the end of what goes on."""
    return isinstance(
        stimulus,
        stimuli.HelperEnded
        | stimuli.ProgramEnded
        | stimuli.WorkAbandoned
        | stimuli.ResultsCollected
        | stimuli.ReportStored,
    )


@pytest.mark.parametrize("tasks", [False, True], ids=["program", "tasks"])
def test_random_walks_keep_what_must_hold(tasks: bool) -> None:
    """Attempt after attempt, with orders at any time."""
    chance = random.Random(15)
    model = Model(tasks=tasks)
    reported = 0
    for _ in range(STEPS // 2):
        if model.over:
            reported += model.work is not Work.END_WITH_LIFELINE
            model = Model(tasks=tasks)
        if chance.random() < 0.3:
            stimulus = (
                OUTSIDE[int(chance.random() * 5)] if chance.random() < 0.95 else chance.choice(OUTSIDE[5:])
            )
        else:
            stimulus = chance.choice(within(model))
        model = after(model, stimulus)
    assert reported > STEPS // 100


# -- the races that docs/explanation/the-starter-as-a-machine.md walks through ------------------------------------------


def walked(*happens: stimuli.Stimulus) -> list[tuple[StarterPhase, tuple[Instruction | Work, ...]]]:
    """The phases after each, and what was done."""
    state = StarterState()
    steps: list[tuple[StarterPhase, tuple[Instruction | Work, ...]]] = []
    for stimulus in happens:
        state, instructions = step(state, stimulus)
        steps.append((state.phase, instructions))
    assert state.ending == REMOVED
    return steps


def test_a_checkpoint_that_meets_the_order_to_end_is_not_waited_for() -> None:
    """Whichever is first, there is one report with the reason of the order, and nothing is started again."""
    phase, do = StarterPhase, Instruction
    begun = (
        phase.RUNNING,
        (do.COUNT_EXECUTION, do.SAY_STARTED, do.REPEAT_SUSPENSION, do.PUBLISH, Work.WATCH),
    )
    collects = (phase.COLLECTING, (do.END_PROCESSES, Work.COLLECT))
    reported = [(phase.REPORTING, (Work.REPORT,)), (phase.OVER, (Work.END,))]
    checkpoint, order = stimuli.ProgramEnded(checkpoint=True), stimuli.EndRequested(REMOVED)
    start, end = stimuli.ProgramStarted(), (stimuli.ResultsCollected(), stimuli.ReportStored())

    assert [
        begun,
        (phase.CHECKPOINTING, (do.END_PROCESSES, do.STOP_COUNTING, Work.SAVE_CHECKPOINT)),
        (phase.ENDING, (do.KILL,)),
        collects,
        *reported,
    ] == walked(start, checkpoint, order, stimuli.WorkAbandoned(), *end)
    assert [begun, (phase.ENDING, (do.ASK_TO_END,)), collects, *reported] == walked(
        start, order, checkpoint, *end
    )


def test_a_job_that_is_suspended_before_it_runs_hears_of_its_end() -> None:
    """It is stopped at its first moment, and goes on to end."""
    phase, do = StarterPhase, Instruction
    assert [
        (phase.PREPARING, ()),
        (phase.PREPARING, (do.REPEAT_SUSPENSION,)),
        (phase.PREPARING, ()),
        (phase.SUSPENDED, (do.COUNT_EXECUTION, do.SAY_STARTED, do.SUSPEND, do.PUBLISH, Work.WATCH)),
        (phase.ENDING, (do.ASK_TO_END, do.RESUME)),
        (phase.ENDING, (do.KILL,)),
        (phase.COLLECTING, (do.END_PROCESSES, Work.COLLECT)),
    ] == walked(
        stimuli.HelperStarted(),
        stimuli.SuspendRequested(),
        stimuli.HelperEnded(),
        stimuli.ProgramStarted(),
        stimuli.EndRequested(REMOVED),
        stimuli.KillTimeOver(),
        stimuli.ProgramEnded(),
    )


# -- recorded ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_recorded_stimuli_lead_to_the_same_states(recording: Path) -> None:
    """What real starters were fed, and where that has led them."""
    first, *lines = recording.read_bytes().splitlines()
    state = msgspec.json.decode(first, type=StarterState)
    for line in lines:
        recorded = msgspec.json.decode(line, type=RecordedStep)
        state, _ = step(state, recorded.stimulus)
        assert recorded.state == state
    assert state.phase is StarterPhase.OVER
