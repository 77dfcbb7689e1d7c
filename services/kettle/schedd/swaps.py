"""
`kettle now`: an idle job runs at once in the place of running jobs of the same owner.

The startd decides, as it does about every claim: it is asked for one that has what the claims of those jobs have.  If it
accepts, it ends them and the new claim waits until they are gone.  What is not granted by then is asked for again.
"""

from typing import Final

from kettle.bus.ports import RefusedError
from kettle.schedd.claims import Claims
from kettle.schedd.domain.queue import Queue
from kettle.schedd.domain.universes import at_home
from kettle.wire.commands.schedd import RunningNow, RunNow
from kettle.wire.identity import Identity
from kettle.wire.jobs import JobId

_MOST: Final = 64
"""Jobs that may make room for one."""


class Swaps:
    """Answers `run_now`."""

    def __init__(self, queue: Queue, claims: Claims) -> None:
        self._queue = queue
        self._claims = claims
        self._accepted: dict[JobId, tuple[int, list[JobId]]] = {}
        """Job -> its attempts when others began to make room for it, and these."""

    async def run_now(self, request: RunNow, caller: Identity) -> RunningNow:
        """Have running jobs make room; `refused` with a sentence if that cannot be, and nothing has happened then."""
        job, person = request.job, caller.name
        if caller.kind != "user":
            raise RefusedError("denied", f"{caller.name} is a service of the pool; only people own jobs")
        self._own(job, person)
        state = self._queue.jobs[job].job
        if self._is_repeat(request, state.attempt):
            return RunningNow(job=job)
        if not state.runnable or at_home(self._queue.universe(job)):
            what = (
                "is of a universe that needs no machine" if state.runnable else f"is {state.status}, not idle"
            )
            raise RefusedError("refused", f"job {job} {what}")
        victims = list(dict.fromkeys(request.instead_of))
        if not 0 < len(victims) <= _MOST:
            raise RefusedError("malformed", f"name between 1 and {_MOST} jobs that are to make room")
        held = [self._claim_of(victim, person) for victim in victims]
        if len({self._queue.claims[claim].granted.startd for claim in held}) > 1:
            raise RefusedError("refused", "the jobs that are to make room run on different machines")
        reason = await self._claims.swap(job, held)
        if reason:
            raise RefusedError("refused", f"the machine refuses it: {reason}; nothing was changed")
        self._accepted = {one: said for one, said in self._accepted.items() if one in self._queue.jobs}
        self._accepted[job] = state.attempt, request.instead_of
        return RunningNow(job=job)

    def _is_repeat(self, request: RunNow, attempt: int) -> bool:
        """Whether the same was asked and accepted, and the job is about to run or runs for it: its answer was lost."""
        before, victims = self._accepted.get(request.job, (-2, []))
        return attempt - before <= 1 and victims == request.instead_of

    def _own(self, job: JobId, person: str) -> None:
        if job not in self._queue.jobs:
            raise RefusedError("not_found", f"job {job} is not in the queue of {self._queue.schedd}")
        if self._queue.owner(job) != person:
            raise RefusedError("denied", f"job {job} is not yours")

    def _claim_of(self, victim: JobId, person: str) -> str:
        self._own(victim, person)
        state = self._queue.jobs[victim].job
        if state.status != "running" or state.claim not in self._queue.claims:
            raise RefusedError(
                "refused", f"job {victim} is {state.status}, not running: it has no slot to give"
            )
        return state.claim
