"""
`kettle now`: an idle job runs at once in the place of running jobs of the same owner.

The startd decides, as it does about every claim: it is asked for one that has what the claims of those jobs have.  If it
accepts, it ends them and the new claim waits until they are gone.  What is not granted by then is asked for again.
"""

import asyncio
from typing import Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle_services.schedd.claims.lifecycle import ClaimLifecycle
from kettle_services.schedd.commands.queue_management import command_id
from kettle_services.schedd.domain.jobs.universes import at_home
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import RunningNow, RunNow
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_MOST: Final = 64
"""Jobs that may make room for one."""
_REMEMBERED_S: Final = 120.0
"""What was refused is not in the log; this is longer than a client asks again."""
_encode: Final = msgspec.msgpack.Encoder().encode


class RunNowCommands:
    """Answers `run_now`."""

    def __init__(self, recorder: QueueRecorder, claims: ClaimLifecycle) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._claims = claims
        self._under_way: dict[str, asyncio.Task[RunningNow]] = {}

    async def run_now(self, request: RunNow, caller: Identity) -> RunningNow:
        """
        Have running jobs make room, once per id.

        `refused` with a sentence if that cannot be, and nothing has happened then; `unknown` if the machine does not say.
        """
        if caller.kind != "user":
            raise RefusedError(
                RefusalCode.DENIED, f"{caller.name} is a service of the pool; only people own jobs"
            )
        command = command_id(caller, "run_now", request.id)
        if (first := self._recorder.shard.answer(command)) is not None:
            return msgspec.msgpack.decode(await first, type=RunningNow)
        if command not in self._under_way:  # else it is repeated while the machine is being asked
            self._under_way[command] = asyncio.create_task(self._swap(request, command, caller.name))
            self._under_way[command].add_done_callback(lambda _: self._remember(command))
        return await asyncio.shield(self._under_way[command])

    def _remember(self, command: str) -> None:
        """Whoever lost the answer and asks again is told the same, also that the machine did not say."""
        asyncio.get_running_loop().call_later(_REMEMBERED_S, self._under_way.pop, command)

    async def _swap(self, request: RunNow, command: str, person: str) -> RunningNow:
        job = request.job
        self._own(job, person)
        state = self._queue.jobs[job].job
        if not state.runnable or at_home(self._queue.universe(job)):
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
        await self._claims.request_swap(job, held)
        reply = RunningNow(job=job)
        await self._recorder.record([], command=command, reply=lambda _: _encode(reply))
        return reply

    def _own(self, job: JobId, person: str) -> None:
        if job not in self._queue.jobs:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"job {job} is not in the queue of {self._queue.schedd}"
            )
        if self._queue.owner(job) != person:
            raise RefusedError(RefusalCode.DENIED, f"job {job} is not yours")

    def _claim_of(self, victim: JobId, person: str) -> str:
        self._own(victim, person)
        state = self._queue.jobs[victim].job
        if state.status != "running" or state.claim not in self._queue.claims:
            raise RefusedError(
                RefusalCode.REFUSED, f"job {victim} is {state.status}, not running: it has no slot to give"
            )
        return state.claim
