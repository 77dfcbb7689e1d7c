"""
The clock of jobs that start at a time of their own: it offers them in time, and sets the next time of those that recur.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from kettle.schedd.domain.deferral import INVALID_CRON_SETTINGS, Move, Senseless, Wait, plan
from kettle.schedd.domain.job import Command, Defer, Hold, decide
from kettle.schedd.domain.queue import job_stream
from kettle.schedd.ledger import Ledger
from kettle.schedd.turns import Turn
from kettle.wire.events import Event
from kettle.wire.jobs import JobId

_FLOOR_S: Final = 0.2
"""Between two looks, however much happens to the queue meanwhile."""
_LONGEST_S: Final = 60.0
"""The clock on the wall may be set."""


class Deferrals:
    """Looks at the jobs of one queue that wait for their time."""

    def __init__(self, ledger: Ledger, urge: Callable[[], None]) -> None:
        """`urge` is called when there is work that was not offered before."""
        self._ledger = ledger
        self._queue = ledger.queue
        self._urge = urge
        self._news = asyncio.Event()

    def note(self, event: Event) -> None:
        """Something was recorded."""
        del event
        if self._queue.deferred:
            self._news.set()

    async def run(self) -> None:
        """Look whenever something has changed or a time has come; for ever."""
        while True:
            self._news.clear()
            soonest = await self.look()
            await asyncio.sleep(_FLOOR_S)
            try:
                async with asyncio.timeout(min(max(soonest - time.time(), 0.0), _LONGEST_S)):
                    await self._news.wait()
            except TimeoutError:
                pass  # a time has come

    async def look(self) -> float:
        """Look at each of them once; when one is to be looked at again, seconds since 1970."""
        soonest, turn = float("inf"), Turn()
        for job in list(self._queue.deferred):
            await turn.pause()
            if job in self._queue.deferred:  # else something happened to it meanwhile
                soonest = min(soonest, self._look_at(job, time.time()))
        return soonest

    def _look_at(self, job: JobId, now: float) -> float:
        match plan(self._queue.ad(job), now):
            case Move(to=to):
                self._record(job, Defer(to))
                return now
            case Senseless(reason=reason):
                self._record(job, Hold(reason=reason, by="", code=INVALID_CRON_SETTINGS))
            case Wait(until=until) if until > now:
                return until
            case Wait():
                if not self._queue.deferred[job]:
                    self._queue.due(job)
                    self._urge()
                return now + _LONGEST_S  # perhaps it misses its time
        return float("inf")

    def _record(self, job: JobId, command: Command) -> None:
        events = decide(self._queue.jobs[job].job, command)
        self._ledger.record([(job_stream(job), event) for event in events])
