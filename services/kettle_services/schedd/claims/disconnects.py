"""
Startds that do not answer: it is recorded of their jobs, and that they answer again, for the owners to see.

Nothing is given up here: what may live, lives until its lease is over (`kettle_services.schedd.claims.renewer`).
"""

from collections.abc import Iterable
from typing import Final

from kettle_services.schedd.domain.claims.claim_states import ClaimStates
from kettle_services.schedd.domain.claims.states import ClaimPhase, ClaimStimulus
from kettle_services.schedd.domain.jobs.commands import Disconnect, Reconnect
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.queue.recorder import QueueRecorder

MISSED: Final = 2
"""Unanswered renewals after which a machine counts as disconnected: a startd that restarts misses one."""


class Disconnects:
    """Records of attempts that their machines do not answer, and answer again."""

    def __init__(self, recorder: QueueRecorder, states: ClaimStates) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._states = states

    def record_missed(self, claims: Iterable[str], times: int, reason: str) -> None:
        """The machine of these claims has left as many questions in a row unanswered."""
        if times < MISSED:
            return
        for claim in claims:
            held = self._queue.claims.get(claim)
            if held is None or (job := held.job) is None:
                continue
            state = self._queue.jobs[job].job
            events = decide(state, Disconnect(attempt=state.attempt.number, claim=claim, reason=reason))
            if events:
                self._states.feed(claim, ClaimStimulus.SILENCE)
                self._recorder.record([(job_stream(job), event) for event in events])
            if self._queue.jobs[job].job.attempt.disconnected:
                self._queue.live.reconnecting[job] = times - MISSED + 1

    def record_answer(self, claim: str) -> None:
        """The machine of a claim answers, and has it."""
        if self._states.feed(claim, ClaimStimulus.RENEWED):
            job = self._queue.claims[claim].job
            assert job is not None, "only a claim with a job is silent"
            state = self._queue.jobs[job].job
            back = Reconnect(attempt=state.attempt.number, claim=claim)
            self._recorder.record([(job_stream(job), event) for event in decide(state, back)])

    def is_disconnected(self, claim: str) -> bool:
        """Whether the attempt on a claim counts as disconnected."""
        return self._states.state(claim).phase is ClaimPhase.SILENT
