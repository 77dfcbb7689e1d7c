"""
Machines that do not answer: has it recorded of their jobs, and that they answer again, for the owners to see.

Nothing is given up here: what may live, lives until its lease is over (see `kettle_services.schedd.claims.lifecycle`).
"""

from collections.abc import Iterable
from typing import Final

from kettle_services.schedd.domain.jobs.commands import Disconnect, Reconnect
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.queue.recorder import QueueRecorder

MISSED: Final = 2
"""Unanswered renewals after which a machine counts as disconnected: a startd that restarts misses one."""


class Disconnects:
    """Records disconnections of attempts on machines that do not answer."""

    def __init__(self, recorder: QueueRecorder) -> None:
        self._recorder = recorder
        self._queue = recorder.queue

    def record_missed(self, claims: Iterable[str], times: int, reason: str) -> None:
        """The machine of these claims has left as many questions in a row unanswered."""
        if times < MISSED:
            return
        for claim in claims:
            held = self._queue.claims.get(claim)
            if held is None or (job := held.job) is None:
                continue
            state = self._queue.jobs[job].job
            silent = Disconnect(attempt=state.attempt.number, claim=claim, reason=reason)
            self._recorder.record([(job_stream(job), event) for event in decide(state, silent)])
            if self._queue.jobs[job].job.attempt.disconnected:
                self._queue.live.reconnecting[job] = times - MISSED + 1

    def record_answer(self, claims: Iterable[str]) -> None:
        """The machine answers and has these claims."""
        for claim in claims:
            held = self._queue.claims.get(claim)
            if held is not None and held.job is not None and self.is_disconnected(claim):
                state = self._queue.jobs[held.job].job
                back = Reconnect(attempt=state.attempt.number, claim=claim)
                self._recorder.record([(job_stream(held.job), event) for event in decide(state, back)])

    def is_disconnected(self, claim: str) -> bool:
        """Whether the attempt on a claim counts as disconnected."""
        held = self._queue.claims.get(claim)
        return (
            held is not None and held.job is not None and self._queue.jobs[held.job].job.attempt.disconnected
        )
