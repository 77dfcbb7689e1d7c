"""
The clock of jobs that start at a time of their own: it offers them in time, and sets the next time of those that recur.
Jobs that are none for any machine are over at once.
"""

import asyncio
import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from kettle_services.schedd.domain.jobs.commands import Command, Hold
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.deferral import Move, Senseless, Wait, plan
from kettle_services.schedd.domain.jobs.orders import Defer
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.time_slice import TimeSlice
from kettle_wire.attempts import ExitRecord
from kettle_wire.codes import HoldCode
from kettle_wire.events import Event, JobCompleted
from kettle_wire.jobs import JobId

_FLOOR_S: Final = 0.2
"""Between two looks, however much happens to the queue meanwhile."""
_LONGEST_S: Final = 60.0
"""The clock on the wall may be set."""


class Deferrals:
    """
    Looks at the jobs of one queue that wait for their time: at each when it begins to wait, and when it is due.
    """

    def __init__(self, recorder: QueueRecorder, urge: Callable[[], None]) -> None:
        """`urge` is called when there is work that was not offered before."""
        self._recorder = recorder
        self._queue = recorder.queue
        self._urge = urge
        self._news = asyncio.Event()
        self._agenda: list[tuple[float, JobId]] = []
        """A heap; what is not in `_next` any more is passed over."""
        self._next: dict[JobId, float] = {}
        """When a job is looked at again, seconds since 1970."""

    def on_event(self, event: Event) -> None:
        """Something was recorded."""
        del event
        self.wake()

    def wake(self) -> None:
        """Perhaps a job has begun to wait for its time."""
        if self._queue.waiting.unplanned:
            self._news.set()

    async def watch_times(self) -> None:
        """Check whenever a job begins to wait or a time has come; never returns."""
        while True:
            self._news.clear()
            soonest = await self.handle_due()
            await asyncio.sleep(_FLOOR_S)
            try:
                async with asyncio.timeout(min(max(soonest - time.time(), 0.0), _LONGEST_S)):
                    await self._news.wait()
            except TimeoutError:
                pass  # a time has come

    async def handle_due(self) -> float:
        """Look at those that are new or due; when the next one is due, seconds since 1970."""
        turn = TimeSlice()
        for job in [*self._fresh(), *self._due(time.time())]:
            await turn.yield_if_over()
            if job in self._queue.waiting.deferred:  # else something happened to it meanwhile
                until = self._look_at(job, time.time())
                if until is not None:
                    self._next[job] = until
                    heappush(self._agenda, (until, job))
        return self._agenda[0][0] if self._agenda else float("inf")

    def _fresh(self) -> list[JobId]:
        fresh = sorted(self._queue.waiting.unplanned)
        self._queue.waiting.unplanned.clear()
        for job in fresh:
            self._next.pop(job, None)
        return fresh

    def _due(self, now: float) -> list[JobId]:
        due: list[JobId] = []
        while self._agenda and self._agenda[0][0] <= now:
            until, job = heappop(self._agenda)
            if self._next.get(job) == until:
                del self._next[job]
                due.append(job)
        return due

    def _look_at(self, job: JobId, now: float) -> float | None:
        match plan(self._queue.ad(job), now):
            case Move(to=to):
                self._record(job, Defer(to))  # it begins to wait again
            case ExitRecord() as ran:
                ended = JobCompleted(attempt=0, exit=ran)
                self._recorder.record([(job_stream(job), ended)])
            case Senseless(reason=reason):
                self._record(job, Hold(reason=reason, by="", code=HoldCode.InvalidCronSettings))
            case Wait(until=until) if until > now:
                return until
            case Wait():
                if not self._queue.waiting.deferred[job]:
                    self._queue.due(job)
                    self._urge()
                return now + _LONGEST_S  # perhaps it misses its time
        return None

    def _record(self, job: JobId, command: Command) -> None:
        events = decide(self._queue.jobs[job].job, command)
        self._recorder.record([(job_stream(job), event) for event in events])
