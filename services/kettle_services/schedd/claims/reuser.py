"""Gives claims that have become free their next jobs: the fast path, without a negotiation."""

import asyncio
import time

from kettle_services.schedd.claims.assignment import AssignmentEvents
from kettle_services.schedd.claims.ends import ClaimEnds
from kettle_services.schedd.claims.idle import IdleClaims
from kettle_services.schedd.domain.claims.claim_states import ClaimStates
from kettle_services.schedd.domain.claims.reuse import ClaimReuse
from kettle_services.schedd.domain.claims.states import ClaimStimulus
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.jobs import JobId


class ClaimReuser:
    """`worklife`: seconds after which a claim is not used for another job."""

    def __init__(
        self,
        recorder: QueueRecorder,
        states: ClaimStates,
        succession: ClaimReuse,
        idle: IdleClaims,
        assigning: AssignmentEvents,
        ends: ClaimEnds,
        shadows: ShadowDispatch,
        tasks: asyncio.TaskGroup,
        *,
        worklife: float,
    ) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._states = states
        self._succession = succession
        self._idle = idle
        self._assigning = assigning
        self._ends = ends
        self._shadows = shadows
        self._tasks = tasks
        self._worklife = worklife

    def reuse(self, claim: str) -> JobId | None:
        """Record the next job for a claim that has become free, or its end; the caller awaits the commit."""
        held = self._queue.claims.get(claim)
        if held is None:
            return None
        if held.job is not None:
            return held.job
        if held.once:
            self._ends.give_back(claim, "each job that runs without a match has a claim of its own")
            return None
        if time.time() - held.at / 1e6 > self._worklife:
            self._ends.give_back(claim, "the claim has served its time, and others shall have their turn")
            return None
        match self._succession.next(claim):
            case JobId() as job:
                events = self._assigning.assignment_events(job, held.granted)
                self._states.feed(claim, ClaimStimulus.ASSIGNED)
                self._recorder.record(events)
                return job
            case reason:
                if not self._idle.keeps(claim):
                    self._ends.give_back(claim, reason)
                return None

    def reuse_or_end_idle(self) -> None:
        """Give claims without a job one, or end them: our predecessor may have stopped between two frames."""
        for claim, held in list(self._queue.claims.items()):
            if held.job is None:
                self.reuse_idle(claim)

    def reuse_idle(self, claim: str) -> None:
        """Give one without a job the next one, if there is one."""
        if (job := self.reuse(claim)) is not None:
            self._tasks.create_task(self._hand_over(job))

    async def _hand_over(self, job: JobId) -> None:
        await self._recorder.shard.committed()
        self._shadows.hand_over(job)
