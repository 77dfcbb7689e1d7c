"""
The state machine of a claim at its schedd: every state and stimulus, every way through it, long random walks, and recorded ones.
"""

import itertools
import os
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest

from kettle_services.schedd.claims.stimulus_log import RecordedClaimStep
from kettle_services.schedd.domain.claims.states import (
    ASKING,
    ON_RECORD,
    WITH_JOB,
    ClaimInstruction,
    ClaimPhase,
    ClaimState,
    ClaimStimulus,
)
from kettle_services.schedd.domain.claims.table import CLAIM_TABLE, UnexpectedClaimStimulusError, decide

P, S, DO = ClaimPhase, ClaimStimulus, ClaimInstruction
RECORDINGS: Final = sorted(Path(__file__).with_name("recorded_claims").glob("*.jsonl"))
STEPS: Final = 1_000_000 if "KETTLE_TEST_LONG" in os.environ else 100_000
OWN: Final = frozenset({
    S.REQUESTED, S.DEFERRED, S.ASSIGNED, S.GRANTED, S.NOT_NEEDED, S.REFUSED, S.NOT_DELIVERED, S.NOT_ANSWERED, S.JOB_ENDED,
    S.JOB_HEARD, S.ALL_LOST, S.CONFIRMED,
})  # fmt: skip
"""What the schedd itself does, or awaits: it comes only where the schedd does it."""
BY_RECORD: Final = (S.JOB_ENDED, S.JOB_HEARD)
"""What follows from what is recorded of the job."""
STATES: Final = [ClaimState(phase) for phase in P] + [ClaimState(phase, doubted=True) for phase in ON_RECORD]


# -- each state, each stimulus -----------------------------------------------------------------------------------------


def test_every_state_and_stimulus_has_an_outcome() -> None:
    """
    What others say may come at any time; what the schedd itself does is refused where it does not do that.
    """
    for state, stimulus in itertools.product(STATES, S):
        if any((case.phase, case.stimulus) == (state.phase, stimulus) for case in CLAIM_TABLE):
            after, _ = decide(state, stimulus)
            assert after in STATES
        else:
            assert stimulus in OWN
            with pytest.raises(UnexpectedClaimStimulusError, match=f"{stimulus} of a claim .* {state.phase}"):
                decide(state, stimulus)


def test_each_case_is_one_row() -> None:
    """Or two, of which one is for claims that are doubted and one for the others."""
    for _, rows in itertools.groupby(
        sorted(CLAIM_TABLE, key=lambda case: (case.phase, case.stimulus)),
        lambda case: (case.phase, case.stimulus),
    ):
        assert [case.doubted for case in rows] in ([None], [False, True])


@pytest.mark.parametrize("phase", ON_RECORD)
def test_a_claim_is_dead_when_its_startd_denies_it_twice_in_a_row(phase: ClaimPhase) -> None:
    """
    The first time its last report may still be under way; an answer that names the claim ends the doubt.
    """
    doubted, nothing = decide(ClaimState(phase), S.NOT_FOUND)
    assert (ClaimState(phase, doubted=True), ()) == (doubted, nothing)
    renewed, _ = decide(doubted, S.RENEWED)
    assert not renewed.doubted
    dead, (instruction,) = decide(doubted, S.NOT_FOUND)
    idle = phase is P.IDLE
    assert (P.OVER if idle else P.LOST, DO.RECORD_END if idle else DO.END_ATTEMPT) == (
        dead.phase,
        instruction,
    )


# -- each way ----------------------------------------------------------------------------------------------------------


class Model(NamedTuple):
    """A claim as both sides and the log know it."""

    state: ClaimState = ClaimState(P.OVER)
    there: bool = False
    """Its startd may have it."""
    recorded: bool = False
    """Its grant is recorded, and its end is not."""
    attempt: bool = False
    """An attempt that is recorded may live on it."""
    asked: bool = False
    """It was asked for once: an id is used once."""


def own(model: Model) -> Iterator[tuple[ClaimStimulus, bool]]:
    """
    What the schedd can do, or hear of what it has asked; and whether the startd may have the claim after that.
    """
    phase = model.state.phase
    if not model.asked:
        yield S.REQUESTED, True
    if phase in ASKING:
        yield from ((stimulus, True) for stimulus in (S.DEFERRED, S.ASSIGNED, S.GRANTED, S.NOT_NEEDED))
        yield S.NOT_ANSWERED, True
        yield S.NOT_DELIVERED, phase is P.WAITING  # it has agreed to the first request
        yield S.REFUSED, False
    if phase is P.IDLE:
        yield S.ASSIGNED, model.there
    if phase in WITH_JOB:
        yield S.JOB_ENDED, model.there
    if phase is P.SILENT:
        yield S.JOB_HEARD, model.there
    if phase is P.LOST:
        yield S.ALL_LOST, False
    if phase in {P.RETURNING, P.OVER} and model.asked:
        yield S.NOT_ANSWERED, model.there
        yield S.CONFIRMED, False


def happens(model: Model) -> Iterator[tuple[ClaimStimulus, bool]]:
    """All that can happen."""
    yield from own(model)
    yield S.GIVEN_BACK, model.there
    yield S.SILENCE, model.there
    yield S.RENEWED, model.there  # perhaps a late answer
    yield S.LISTED, model.there
    yield S.ENDED_THERE, False
    yield S.NOT_FOUND, model.there and not model.state.doubted
    # While it is asked for, and before, no lease of it is counted.
    yield S.LEASE_OVER, model.there and model.state.phase in ASKING


def after(model: Model, stimulus: ClaimStimulus, *, there: bool) -> Model:
    """The claim after that; an AssertionError if something is done that must not be."""
    state, instructions = decide(model.state, stimulus)
    recorded, attempt = model.recorded, model.attempt and stimulus is not S.JOB_ENDED
    for instruction in instructions:
        match instruction:
            case DO.RECORD_GRANT:
                assert not recorded, "it is granted twice"
                recorded = True
            case DO.RECORD_ASSIGNMENT:
                assert not attempt, "two jobs have it"
                attempt = True
            case DO.RECORD_END:
                assert recorded, "it ends twice, or never began"
                recorded = attempt = False
            case DO.RELEASE | DO.RELEASE_LATER:
                assert not recorded, "it is given back and still on record"
            case _:
                assert recorded, "something of it is recorded before it is"
    assert recorded == (state.phase in ON_RECORD)
    assert attempt == (state.phase in WITH_JOB)
    assert not state.doubted or recorded
    later = Model(state, there, recorded, attempt, asked=True)
    if state.phase is P.OVER:
        assert not there or stimulus not in {S.REFUSED, S.NOT_DELIVERED}, "nobody gives it back"
    return later


@cache
def reachable() -> tuple[set[Model], set[tuple[ClaimState, ClaimStimulus]]]:
    """All that a claim can be, and what happened on the ways there."""
    found, happened = {Model()}, set[tuple[ClaimState, ClaimStimulus]]()
    left = [Model()]
    while left:
        model = left.pop()
        for stimulus, there in happens(model):
            happened.add((model.state, stimulus))
            following = after(model, stimulus, there=there)
            if following not in found:
                found.add(following)
                left.append(following)
    return found, happened


def test_nothing_that_must_not_be_is_reached_on_any_way() -> None:
    """
    All ways of a claim are walked: it is granted, has one job at a time and ends once; no row of the table is left over.
    """
    found, happened = reachable()
    assert set(P) == {model.state.phase for model in found}
    left = [
        case
        for case in CLAIM_TABLE
        if not any(
            (state.phase, stimulus) == (case.phase, case.stimulus)
            and (case.doubted is None or case.doubted == state.doubted)
            for state, stimulus in happened
        )
    ]
    assert [] == [(case.phase.value, case.stimulus.value) for case in left]


def test_random_walks_keep_what_must_hold() -> None:
    """Claim after claim, whatever happens to it; each of them can be brought to its end from where it is."""
    chance = random.Random(33)
    model, ended = Model(), 0
    for _ in range(STEPS):
        choices = list(happens(model))
        stimulus, there = choices[int(chance.random() * len(choices))]
        model = after(model, stimulus, there=there)
        if model.asked and model.state.phase is P.OVER and not model.there:
            model, ended = Model(), ended + 1
    assert ended > STEPS // 100


@pytest.mark.parametrize("path", RECORDINGS, ids=[path.stem for path in RECORDINGS])
def test_recorded_stimuli_lead_to_the_same_states(path: Path) -> None:
    """
    What the schedd of a pool was fed while things were broken: each step is what the table says today, and begins where the step
    before it has led, if its job has done nothing meanwhile.
    """
    known: dict[str, ClaimState] = {}
    steps = [msgspec.json.decode(line, type=RecordedClaimStep) for line in path.read_bytes().splitlines()]
    assert len(steps) > 20
    for step in steps:
        followed = {known.get(step.claim, step.before)}  # one on record has had a past with another schedd
        for _ in BY_RECORD:
            followed |= {
                decide(state, stimulus)[0]
                for state in followed
                for stimulus in BY_RECORD
                if any((case.phase, case.stimulus) == (state.phase, stimulus) for case in CLAIM_TABLE)
            }
        assert step.before in followed
        known[step.claim], _ = decide(step.before, step.stimulus)
        assert step.after == known[step.claim]
