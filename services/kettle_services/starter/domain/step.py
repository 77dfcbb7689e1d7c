"""One step of the state machine: the table, applied."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from kettle_services.starter.domain.instructions import Instruction, Work
from kettle_services.starter.domain.state import StarterPhase, StarterState
from kettle_services.starter.domain.stimuli import AttemptFailed, EndRequested, StarterStumbled, Stimulus
from kettle_services.starter.domain.table import TABLE, Transition

Step = tuple[StarterState, tuple[Instruction | Work, ...]]


class UnexpectedStimulusError(Exception):
    """A stimulus of what the starter does where it does not do that: a defect of its shell."""

    def __init__(self, state: StarterState, stimulus: Stimulus) -> None:
        super().__init__(f"{type(stimulus).__name__} while the attempt is {state.phase}")


def _indexed() -> Mapping[tuple[StarterPhase, type[Stimulus]], tuple[Transition, ...]]:
    rows: defaultdict[tuple[StarterPhase, type[Stimulus]], list[Transition]] = defaultdict(list)
    for row in TABLE:
        rows[row.phase, row.stimulus].append(row)
    return {key: tuple(found) for key, found in rows.items()}


_ROWS: Final = _indexed()
_DECIDED: Final = frozenset({StarterPhase.REPORTING, StarterPhase.OVER})
"""No reason to end counts any more in these."""
_REASONS: Final = (EndRequested, AttemptFailed, StarterStumbled)


def step(state: StarterState, stimulus: Stimulus) -> Step:
    """
    The state after `stimulus`, and what is to be done.

    Raises:
        UnexpectedStimulusError: it is no stimulus of this phase; those from outside are expected in each.
    """
    for row in _ROWS.get((state.phase, type(stimulus)), ()):
        if row.when is None or row.when.holds(state, stimulus):
            return _after(row, state, stimulus), row.instructions
    raise UnexpectedStimulusError(state, stimulus)


def _after(row: Transition, state: StarterState, stimulus: Stimulus) -> StarterState:
    ending = state.ending
    if ending is None and isinstance(stimulus, _REASONS) and state.phase not in _DECIDED:
        ending = stimulus.ending
    return StarterState(
        phase=row.to,
        suspension=state.suspension if row.suspension is None else row.suspension,
        ending=ending,
        helper=state.helper if row.helper is None else row.helper,
        reusable=state.reusable and not row.spoils,
    )
