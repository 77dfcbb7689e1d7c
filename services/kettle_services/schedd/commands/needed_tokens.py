"""
What iam asks before it makes tokens for a running job: whose they are, and which the job was submitted to have.
"""

from kettle.bus.ports import RefusedError
from kettle.jobs.needed_tokens import needed_tokens
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import AskNeededTokens, TokensNeeded
from kettle_wire.identity import Identity


class NeededTokens:
    """Answers `needed_tokens`."""

    def __init__(self, recorder: QueueRecorder) -> None:
        self._queue = recorder.queue

    async def needed_tokens(self, request: AskNeededTokens, caller: Identity) -> TokensNeeded:
        """Of an attempt that runs; `not_running`: of that one there is nothing to be given any more."""
        job, known = request.job, self._queue.jobs.get(request.job)
        if (
            known is None
            or (known.job.status, known.job.attempt.number) != ("running", request.attempt)
            or known.job.claim not in self._queue.claims
        ):
            raise RefusedError(
                RefusalCode.NOT_RUNNING,
                f"attempt {request.attempt} of job {job} does not run, so it gets no token",
            )
        return TokensNeeded(owner=self._queue.owner(job), tokens=needed_tokens(self._queue.ad(job)))
