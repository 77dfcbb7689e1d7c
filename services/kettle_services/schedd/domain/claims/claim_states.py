"""
The state of every claim of a schedd: what is recorded of it, and what is known beside that.

What is recorded is in the queue and nowhere else: a claim on record is idle, running or silent because the queue says so.  Here is
only what a restart forgets: which claims are asked for and which are given back, and which ones their startds have denied once.
"""

from collections.abc import Callable

from kettle_services.schedd.domain.claims.states import (
    ON_RECORD,
    ClaimInstruction,
    ClaimPhase,
    ClaimState,
    ClaimStimulus,
)
from kettle_services.schedd.domain.claims.table import decide
from kettle_services.schedd.domain.queue.fold import Queue

ClaimWitness = Callable[[str, ClaimState, ClaimStimulus, ClaimState], None]
"""Is told of a claim, its state, what happened, and its state after that."""


class ClaimStates:
    """The one place where anything happens to a claim."""

    def __init__(self, queue: Queue, witness: ClaimWitness | None = None) -> None:
        self._queue = queue
        self._witness = witness
        self._unrecorded: dict[str, ClaimPhase] = {}
        """Claims that are not on record, and not over."""
        self._doubted: set[str] = set()

    def state(self, claim: str) -> ClaimState:
        """What a claim is now."""
        held = self._queue.claims.get(claim)
        if held is None:
            return ClaimState(self._unrecorded.get(claim, ClaimPhase.OVER))
        if held.job is None:
            phase = ClaimPhase.IDLE
        elif claim in self._queue.live.lost:
            phase = ClaimPhase.LOST
        else:
            attempt = self._queue.jobs[held.job].job.attempt
            # Of several nodes the first stands for the attempt.
            silent = attempt.disconnected and attempt.claim == claim
            phase = ClaimPhase.SILENT if silent else ClaimPhase.RUNNING
        return ClaimState(phase, claim in self._doubted)

    def feed(self, claim: str, stimulus: ClaimStimulus) -> tuple[ClaimInstruction, ...]:
        """
        Have something happen to a claim; what is to be done is to be done before anything else happens to it.

        Raises:
            UnexpectedClaimStimulusError: a defect of the schedd.
        """
        before = self.state(claim)
        after, instructions = decide(before, stimulus)
        if after != before:
            self._keep(claim, after)
        if self._witness is not None:
            self._witness(claim, before, stimulus, after)
        return instructions

    def _keep(self, claim: str, after: ClaimState) -> None:
        """Keep of the new state what is not recorded."""
        phase, doubted = after
        if phase in ON_RECORD or phase is ClaimPhase.OVER:
            self._unrecorded.pop(claim, None)
        else:
            self._unrecorded[claim] = phase
        (self._doubted.add if doubted else self._doubted.discard)(claim)
        lost = self._queue.live.lost
        (lost.add if phase is ClaimPhase.LOST else lost.discard)(claim)
