"""
What becomes of a claim when something happens to it: a row for each case.

What a startd says, and what time says of it, may come in each phase; what the schedd itself does with a claim comes only where it
does that.
`docs/generate.py` draws the picture and the list of the page on claims from these rows.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kettle_services.schedd.domain.claims.states import (
    ASKING,
    ON_RECORD,
    WITH_JOB,
    ClaimInstruction,
    ClaimPhase,
    ClaimState,
    ClaimStimulus,
)

_P, _S, _I = ClaimPhase, ClaimStimulus, ClaimInstruction


class ClaimCase(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    phase: ClaimPhase
    stimulus: ClaimStimulus
    to: ClaimPhase
    instructions: tuple[ClaimInstruction, ...] = ()
    doubted: bool | None = None
    """Counts only for a claim that its startd has, or has not, denied once; None: for both."""
    doubts: bool | None = None
    """Whether it counts as denied once afterwards; None: as before."""


class UnexpectedClaimStimulusError(Exception):
    """The schedd does with a claim what it does not do in this phase: a defect."""

    def __init__(self, state: ClaimState, stimulus: ClaimStimulus) -> None:
        super().__init__(f"{stimulus} of a claim that is {state.phase}")


def _rows(
    phases: Iterable[ClaimPhase],
    stimulus: ClaimStimulus,
    to: ClaimPhase | None,
    *instructions: ClaimInstruction,
    doubted: bool | None = None,
    doubts: bool | None = None,
) -> Iterator[ClaimCase]:
    """A row for each phase; `to` None: it stays what it is."""
    for phase in phases:
        yield ClaimCase(
            phase=phase,
            stimulus=stimulus,
            to=phase if to is None else to,
            instructions=instructions,
            doubted=doubted,
            doubts=doubts,
        )


def _nothing(stimulus: ClaimStimulus, *changes: ClaimPhase) -> Iterator[ClaimCase]:
    """In all phases but these it changes nothing."""
    return _rows((phase for phase in _P if phase not in changes), stimulus, None)


def _requests() -> Iterator[ClaimCase]:
    """From the request to the first job."""
    yield from _rows((_P.OVER,), _S.REQUESTED, _P.ASKED)
    yield from _rows(ASKING, _S.DEFERRED, _P.WAITING)
    yield from _rows(ASKING, _S.ASSIGNED, _P.RUNNING, _I.RECORD_GRANT, _I.RECORD_ASSIGNMENT, _I.RENEW_SOON)
    yield from _rows(ASKING, _S.GRANTED, _P.IDLE, _I.RECORD_GRANT, _I.RENEW_SOON)
    yield from _rows(ASKING, _S.NOT_NEEDED, _P.RETURNING, _I.RELEASE)
    yield from _rows(ASKING, _S.REFUSED, _P.OVER)
    yield from _rows((_P.ASKED,), _S.NOT_DELIVERED, _P.OVER)
    # Only the repeat was not delivered: the startd has agreed to the first request.
    yield from _rows((_P.WAITING,), _S.NOT_DELIVERED, _P.RETURNING, _I.RELEASE_LATER)
    yield from _rows(ASKING, _S.NOT_ANSWERED, _P.RETURNING, _I.RELEASE_LATER)


def _uses() -> Iterator[ClaimCase]:
    """From job to job, until there is none."""
    yield from _rows((_P.IDLE,), _S.ASSIGNED, _P.RUNNING, _I.RECORD_ASSIGNMENT)
    yield from _rows(WITH_JOB, _S.JOB_ENDED, _P.IDLE)
    yield from _rows((_P.SILENT,), _S.JOB_HEARD, _P.RUNNING)
    yield from _rows(ON_RECORD, _S.GIVEN_BACK, _P.RETURNING, _I.RECORD_END, _I.RELEASE)
    yield from _nothing(_S.GIVEN_BACK, *ON_RECORD)
    yield from _rows(ON_RECORD, _S.ENDED_THERE, _P.OVER, _I.RECORD_END)
    yield from _nothing(_S.ENDED_THERE, *ON_RECORD)


def _renewals() -> Iterator[ClaimCase]:
    """What the startd says of it again and again, or does not."""
    yield from _rows((_P.IDLE, _P.RUNNING), _S.RENEWED, None, doubts=False)
    yield from _rows((_P.SILENT,), _S.RENEWED, _P.RUNNING, _I.RECORD_RECONNECTION, doubts=False)
    yield from _rows((_P.LOST,), _S.RENEWED, None, _I.RECORD_RECONNECTION, doubts=False)
    yield from _nothing(_S.RENEWED, *ON_RECORD)
    yield from _rows((_P.RUNNING, _P.SILENT), _S.SILENCE, _P.SILENT, _I.RECORD_DISCONNECTION)
    yield from _rows((_P.LOST,), _S.SILENCE, None, _I.RECORD_DISCONNECTION)
    yield from _nothing(_S.SILENCE, *WITH_JOB)
    yield from _rows(ON_RECORD, _S.NOT_FOUND, None, doubted=False, doubts=True)
    yield from _rows((_P.IDLE,), _S.NOT_FOUND, _P.OVER, _I.RECORD_END, doubted=True, doubts=False)
    yield from _rows(WITH_JOB, _S.NOT_FOUND, _P.LOST, _I.END_ATTEMPT, doubted=True, doubts=False)
    yield from _nothing(_S.NOT_FOUND, *ON_RECORD)
    yield from _rows((_P.IDLE,), _S.LEASE_OVER, _P.OVER, _I.RECORD_END)
    yield from _rows(WITH_JOB, _S.LEASE_OVER, _P.LOST, _I.END_ATTEMPT)
    yield from _rows((_P.RETURNING,), _S.LEASE_OVER, _P.OVER)
    yield from _nothing(_S.LEASE_OVER, _P.RETURNING, *ON_RECORD)
    yield from _rows((_P.LOST,), _S.ALL_LOST, _P.OVER, _I.RECORD_END)


def _returns() -> Iterator[ClaimCase]:
    """Until its startd knows that it is over."""
    yield from _rows((_P.OVER, _P.RETURNING), _S.LISTED, _P.RETURNING, _I.RELEASE)
    yield from _nothing(_S.LISTED, _P.OVER, _P.RETURNING)
    yield from _rows((_P.RETURNING,), _S.CONFIRMED, _P.OVER)
    yield from _rows((_P.OVER,), _S.CONFIRMED, None)
    yield from _rows((_P.RETURNING,), _S.NOT_ANSWERED, None, _I.RELEASE_LATER)
    yield from _rows((_P.OVER,), _S.NOT_ANSWERED, None)


CLAIM_TABLE: Final = (*_requests(), *_uses(), *_renewals(), *_returns())


def _indexed() -> Mapping[tuple[ClaimPhase, ClaimStimulus], tuple[ClaimCase, ...]]:
    rows: defaultdict[tuple[ClaimPhase, ClaimStimulus], list[ClaimCase]] = defaultdict(list)
    for row in CLAIM_TABLE:
        rows[row.phase, row.stimulus].append(row)
    return {key: tuple(found) for key, found in rows.items()}


_CASES: Final = _indexed()


def decide(state: ClaimState, stimulus: ClaimStimulus) -> tuple[ClaimState, tuple[ClaimInstruction, ...]]:
    """
    The state after a stimulus, and what is to be done.

    Raises:
        UnexpectedClaimStimulusError: the schedd does not do that with a claim in this phase.
    """
    phase, doubted = state
    for row in _CASES.get((phase, stimulus), ()):
        if row.doubted is None or row.doubted == doubted:
            after = doubted if row.doubts is None else row.doubts
            return ClaimState(row.to, doubted=after and row.to in ON_RECORD), row.instructions
    raise UnexpectedClaimStimulusError(state, stimulus)
