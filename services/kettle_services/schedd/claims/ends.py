"""
Claims that end: given back, ended by their machines, or dead because nothing has been heard of them for their lease.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kettle_services.schedd.claims.idle import IdleClaims
from kettle_services.schedd.claims.releases import ClaimReleases
from kettle_services.schedd.domain.claims.claim_states import ClaimStates
from kettle_services.schedd.domain.claims.reuse import ClaimReuse
from kettle_services.schedd.domain.claims.states import ClaimInstruction, ClaimPhase, ClaimStimulus
from kettle_services.schedd.domain.jobs.commands import End
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.events import ClaimEnded

_DEAD: Final = frozenset({ClaimPhase.LOST, ClaimPhase.OVER})


class ClaimEnds:
    """Records the ends of claims, and of the attempts that are dead with them."""

    def __init__(
        self,
        recorder: QueueRecorder,
        states: ClaimStates,
        succession: ClaimReuse,
        idle: IdleClaims,
        releases: ClaimReleases,
        shadows: ShadowDispatch,
        tasks: asyncio.TaskGroup,
        settings: ScheddSettings,
    ) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._states = states
        self._succession = succession
        self._idle = idle
        self._releases = releases
        self._shadows = shadows
        self._tasks = tasks
        self._cool_down = settings.cooldown_duration

    def give_back(self, claim: str, reason: str) -> None:
        """Record that a claim is over, if it is on record, and notify its startd after the commit."""
        self._record_end(claim, self._states.feed(claim, ClaimStimulus.GIVEN_BACK), reason)

    def ended_there(self, claim: str, reason: str) -> None:
        """Its machine has ended a claim."""
        self._record_end(claim, self._states.feed(claim, ClaimStimulus.ENDED_THERE), reason)

    def lose(self, claim: str, stimulus: ClaimStimulus, ending: Ending) -> None:
        """
        Its startd does not have a claim, or its lease is over: if it is dead by that, so is the attempt on it.
        """
        instructions = self._states.feed(claim, stimulus)
        if ClaimInstruction.END_ATTEMPT in instructions:
            self._end_attempt(claim, ending)
        else:
            self._record_end(claim, instructions, ending.reason)

    def _end_attempt(self, claim: str, ending: Ending) -> None:
        """The attempt on a dead claim is over when all of its claims are dead."""
        job = self._queue.claims[claim].job
        assert job is not None, "only a claim with a job has an attempt"
        state = self._queue.jobs[job].job
        if not all(self._states.state(each).phase in _DEAD for each in state.attempt.claims):
            if state.attempt.gang is not None and not state.attempt.gang.has_ended(claim):
                self._shadows.order_vacate(job, ending)
            return
        lost = [each for each in state.attempt.claims if each in self._queue.claims]
        ends = [self._states.feed(each, ClaimStimulus.ALL_LOST) for each in lost]
        command = End(
            attempt=state.attempt.number,
            claim=state.claim,
            result=AttemptResult(ending=ending),
            cool_down=self._cool_down,
        )
        self._recorder.record([(job_stream(job), event) for event in decide(state, command)])
        self._shadows.drop_attempt(job)
        for each, instructions in zip(lost, ends, strict=True):
            self._record_end(each, instructions, ending.reason)

    def _record_end(self, claim: str, instructions: Sequence[ClaimInstruction], reason: str) -> None:
        if ClaimInstruction.RECORD_END not in instructions:
            return
        startd = self._queue.claims[claim].granted.startd
        recorded = self._recorder.record([(f"claim/{claim}", ClaimEnded(claim=claim, reason=reason))])
        self._succession.forget(claim)
        self._idle.forget(claim)
        if ClaimInstruction.RELEASE in instructions:
            self._tasks.create_task(self._release(recorded, startd, claim, reason))

    async def _release(self, recorded: asyncio.Future[int], startd: str, claim: str, reason: str) -> None:
        await recorded
        await self._releases.release(startd, [claim], reason)
