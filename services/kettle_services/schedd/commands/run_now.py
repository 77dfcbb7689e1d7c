"""
`kettle now`: an idle job runs at once in the place of running jobs of the same owner.

The startd decides, as it does about every claim: it is asked for one that has what the claims of those jobs have.  If it
accepts, it ends them and the new claim waits until they are gone.  What is not granted by then is asked for again.
"""

from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.schedd.claims.requester import ClaimRequester
from kettle_services.schedd.domain.authorization import refusal
from kettle_services.schedd.domain.jobs.universes import unmatched
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import RunningNow, RunNow
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_MOST: Final = 64
"""Jobs that may make room for one."""
REMEMBERED_S: Final = 120.0
"""What was refused is not in the log; this is longer than a client asks again."""


class RunNowCommands:
    """Decides `run_now`."""

    def __init__(self, recorder: QueueRecorder, requester: ClaimRequester) -> None:
        self._queue = recorder.queue
        self._requester = requester

    async def run_now(self, request: RunNow, caller: Identity) -> Decision[RunningNow]:
        """
        Have running jobs make room.

        `refused` with a sentence if that cannot be, and nothing has happened then; `unknown` if the machine does not say.
        """
        job, person = request.job, caller.name
        self._own(job, person)
        state = self._queue.jobs[job].job
        if not state.runnable or unmatched(self._queue.universe(job)):
            what = (
                "is of a universe that needs no machine" if state.runnable else f"is {state.status}, not idle"
            )
            raise RefusedError(RefusalCode.REFUSED, f"job {job} {what}")
        victims = list(dict.fromkeys(request.instead_of))
        if not 0 < len(victims) <= _MOST:
            raise RefusedError(
                RefusalCode.MALFORMED, f"name between 1 and {_MOST} jobs that are to make room"
            )
        held = [self._claim_of(victim, person) for victim in victims]
        if len({self._queue.claims[claim].granted.startd for claim in held}) > 1:
            raise RefusedError(
                RefusalCode.REFUSED, "the jobs that are to make room run on different machines"
            )
        await self._requester.request_swap(job, held)
        return Decision(lambda _: RunningNow(job=job))

    def _own(self, job: JobId, person: str) -> None:
        if job not in self._queue.jobs:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"job {job} is not in the queue of {self._queue.schedd}"
            )
        owner = self._queue.owner(job)
        if owner != person:
            raise RefusedError(
                RefusalCode.DENIED,
                refusal(person, f"have job {job} run now, or make room", owner, super_users=False),
            )

    def _claim_of(self, victim: JobId, person: str) -> str:
        self._own(victim, person)
        state = self._queue.jobs[victim].job
        if state.status != "running" or state.claim not in self._queue.claims:
            raise RefusedError(
                RefusalCode.REFUSED, f"job {victim} is {state.status}, not running: it has no slot to give"
            )
        return state.claim
