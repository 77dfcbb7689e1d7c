"""
The transfer queue: how many jobs move files at once, in each direction (HTCondor's MAX_CONCURRENT_UPLOADS and -DOWNLOADS).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from kettle_services.shadow.domain.transfer_queue import Turns
from kettle_wire.attempts import Transfer
from kettle_wire.jobs import JobId

_UNUSED_S: Final = 30.0
"""
How long a machine that does not ask for input files keeps its turn, or its place among those who wait: it may be busy with a
URL or an image, or be gone, and has to leave the turn to others.

One that reads over the slowest link gives up on each piece after 10 s, and one that waits for its turn or for an answer asks
again after 5 s at most (`kettle.execution.input_files.download`): this is twice as long as both together. If that is not long
enough once, nothing breaks: it waits for its turn again, and goes on where it was.
"""


class JobOnClaim(NamedTuple):
    """
    What has a turn: a job of several nodes has as many. The job is named too, because the next one may have the claim already.
    """

    job: JobId
    claim: str


class TransferTurn:
    """How long one job waits for its turn in one direction."""

    def __init__(self) -> None:
        self._since = self._given = 0.0

    def ask(self, *, given: bool) -> None:
        """It asks, and has it or has not; from the first time that it has, nothing more counts."""
        self._since = self._since or time.time()
        if given:
            self._given = self._given or time.time()

    def of(self, moved: Transfer | None) -> Transfer | None:
        """What a worker says that it has fetched, without the time of waiting."""
        queued = max(0.0, self._given - self._since)
        if moved is None or not queued:
            return moved
        return Transfer(began=min(moved.began + queued, moved.ended), ended=moved.ended, queued=queued)

    def ended(self, before: Transfer | None) -> Transfer:
        """What was fetched in this turn until now, after what the worker itself had sent somewhere."""
        queued = max(0.0, self._given - self._since)
        began = before.began if before is not None else self._given
        return Transfer(began=began, ended=time.time(), queued=0.0 if before is not None else queued)


class TransferQueue:
    """
    Machines read input files piece by piece: requests before a job's turn are told to try again.

    The shadow fetches results itself, and waits here for the turn of each.
    """

    def __init__(self, *, uploads: int, downloads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uploads: Turns[JobOnClaim] = Turns(uploads, unused=_UNUSED_S)
        self._downloads: Turns[JobOnClaim] = Turns(downloads)
        self._waiting: dict[JobOnClaim, asyncio.Future[None]] = {}

    @property
    def waiting(self) -> int:
        """How many turns are waited for: of each job one, or one of each of its nodes."""
        return len(self._uploads) + len(self._downloads)

    def may_upload(self, who: JobOnClaim, user: str) -> bool:
        """Whether the machine may read input files of its job now."""
        return self._uploads.ask(who, user, self._clock())

    def uploaded(self, who: JobOnClaim) -> None:
        """The job runs there, or never will."""
        self._uploads.done(who)

    @asynccontextmanager
    async def download(self, who: JobOnClaim, user: str) -> AsyncGenerator[None]:
        """The turn to have the results fetched that a job has on a machine."""
        try:
            if not self._downloads.ask(who, user):
                turn = self._waiting[who] = asyncio.get_running_loop().create_future()
                await turn
            yield
        finally:
            self._waiting.pop(who, None)
            for other in self._downloads.done(who):
                waiting = self._waiting.get(other)
                if waiting is not None and not waiting.done():
                    waiting.set_result(None)
