"""
Jobs of the local and the scheduler universe: claims for them are asked of the startd of our own machine, without a match.

From there on they are jobs like all others: the same claims, leases, shadows, starters, policies and records.
"""

import asyncio
import logging
import time
from collections import Counter
from functools import partial
from typing import Final

from kettle.runtime.local_startd import LocalStartd, find
from kettle_services.schedd.claims.requester import ClaimRequester
from kettle_services.schedd.domain.jobs.universes import AT_HOME
from kettle_services.schedd.domain.queue.at_home import in_order, totals
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.queue.time_slice import TimeSlice
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.codes import Universe
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.events import ClaimEnded, Event
from kettle_wire.jobs import JobId

_log: Final = logging.getLogger(__name__)
_FLOOR_S: Final = 0.05
"""Between two looks, however much happens to the queue meanwhile."""
_REST: Final = 10.0
"""How many times as long as a look the pause after it lasts, where expressions take long."""
_MOST: Final = 100
"""Jobs that are started in one look."""


class LocalUniverse:
    """Starts those jobs, as many as START_LOCAL_UNIVERSE and START_SCHEDULER_UNIVERSE allow."""

    def __init__(self, queue: Queue, requester: ClaimRequester, settings: ScheddSettings) -> None:
        self._queue = queue
        self._requester = requester
        self._settings = settings
        self._starting = settings.starting
        self._wake = asyncio.Event()
        self._lacking = False
        self._refusals: dict[tuple[str, int], tuple[str, float]] = {}
        """What our startd refused: (submitter, autocluster) -> why, and until when it is not asked again."""

    def on_event(self, event: Event) -> None:
        """Something was recorded."""
        if self._refusals and isinstance(event, ClaimEnded):  # our startd may have room soon
            soon = time.monotonic() + _FLOOR_S
            self._refusals = {key: (why, min(until, soon)) for key, (why, until) in self._refusals.items()}
        if self._queue.demand.at_home:
            self._wake.set()

    def wake(self) -> None:
        """A job may run again that had to wait."""
        self._wake.set()

    async def start_jobs(self) -> None:
        """Start jobs that may start, whenever something has happened, and periodically; never returns."""
        while True:
            self._wake.clear()
            began = time.monotonic()
            await self.start_allowed()
            interval = self._settings.local_jobs_interval
            await asyncio.sleep(max(_FLOOR_S, min(_REST * (time.monotonic() - began), interval)))
            soonest = min((until for _, until in self._refusals.values()), default=float("inf"))
            try:
                async with asyncio.timeout(max(0.0, min(interval, soonest - time.monotonic()))):
                    await self._wake.wait()
            except TimeoutError:
                pass  # the expressions may depend on the time, and our startd may have come back

    async def start_allowed(self) -> None:
        """Ask for claims for the jobs that may start now, the first ones if there are very many."""
        if not self._queue.demand.at_home:
            return
        startd = find(self._settings.home_path)
        if (startd is None) != self._lacking:
            self._lacking = startd is None
            if self._lacking:
                _log.warning("jobs of the local and scheduler universe wait: no startd shares our home")
        if startd is None:
            return
        now = time.monotonic()
        self._refusals = {key: said for key, said in self._refusals.items() if said[1] > now}
        ad, left, turn = self._under_way(), _MOST, TimeSlice()
        running = self._scheduler_jobs()
        for job, autocluster, count in self._in_order():
            await turn.yield_if_over()
            if job not in self._queue.jobs:
                continue  # something happened to it meanwhile
            room = self._room(job, running)
            asked = self._allowed(job, min(count, left, room), ad)
            if asked:
                running[self._queue.owner(job)] += asked
                match = self._match(startd, job, autocluster, asked)
                self._requester.request_matched(match, partial(self._refused, (match.submitter, autocluster)))
            left -= asked
            if not left:
                self._wake.set()  # there may be more
                return

    def _allowed(self, job: JobId, most: int, ad: Ad) -> int:
        """How many jobs like this one may start, `most` at most; they are counted in `ad` as if they did."""
        universe, picture, now = self._queue.universe(job), self._queue.ad(job), time.time()
        running = f"Total{AT_HOME[universe]}JobsRunning"
        for asked in range(most):
            if not self._starting.allows(universe, ad, picture, now):
                return asked
            ad[running] = int(str(ad[running])) + 1
        return most

    def _room(self, job: JobId, running: Counter[str]) -> int:
        """How many jobs like this one may start beside those of its owner that run."""
        most = self._settings.max_scheduler_jobs_per_owner
        if not most or self._queue.universe(job) != Universe.SCHEDULER:
            return _MOST
        return max(0, most - running[self._queue.owner(job)])

    def _scheduler_jobs(self) -> Counter[str]:
        """By owner the jobs of the scheduler universe that run, or for which claims are being asked."""
        queue, running = self._queue, Counter[str]()
        for (submitter, universe), count in queue.attendance.jobs.items():
            if universe == Universe.SCHEDULER:
                running[queue.tally.owners.get(submitter, submitter)] += count
        for submitter, autoclusters in queue.demand.at_home.items():
            for autocluster in autoclusters:
                asked, job = (
                    self._requester.asked.jobs[submitter, autocluster],
                    queue.demand.next_job(submitter, autocluster),
                )
                if asked and job is not None and queue.universe(job) == Universe.SCHEDULER:
                    running[queue.owner(job)] += asked
        return running

    def _refused(self, key: tuple[str, int], reason: str) -> None:
        self._refusals[key] = reason, time.monotonic() + self._settings.local_jobs_interval

    def explain(self, job: JobId) -> str:
        """Why a job that could run does not, as a sentence; empty if it is about to."""
        if find(self._settings.home_path) is None:
            return "it runs on the machine of its schedd, and no startd there takes local jobs"
        refusal = self._refusals.get((self._queue.submitter(job), self._queue.autocluster(job)))
        if refusal is not None:
            return f"it runs on the machine of its schedd, whose startd refuses it: {refusal[0]}"
        universe, owner = self._queue.universe(job), self._queue.owner(job)
        if not self._room(job, self._scheduler_jobs()):
            return (
                f"as many jobs of {owner} run on the machine of their schedd, DAGs among them, as may: "
                f"{self._settings.max_scheduler_jobs_per_owner} (max_scheduler_jobs_per_owner)"
            )
        if self._may_start(job, universe, totals(self._queue)):
            return ""
        return (
            f"START_{AT_HOME[universe].upper()}_UNIVERSE of the schedd does not allow one more such job now"
        )

    def _may_start(self, job: JobId, universe: int, ad: Ad) -> bool:
        return self._starting.allows(universe, ad, self._queue.ad(job), time.time())

    def _in_order(self) -> list[tuple[JobId, int, int]]:
        """
        The first of several jobs alike, their autocluster, and how many nobody asks a claim for yet, by priority.
        """
        return [
            (job, autocluster, count)
            for job, submitter, autocluster, count in in_order(
                self._queue.demand.at_home, self._requester.asked.jobs, _MOST
            )
            if (submitter, autocluster) not in self._refusals
        ]

    def _under_way(self) -> Ad:
        """The numbers of running jobs with those for which claims are being asked."""
        ad = dict(totals(self._queue))
        for submitter, autoclusters in self._queue.demand.at_home.items():
            for autocluster in autoclusters:
                asked = self._requester.asked.jobs[submitter, autocluster]
                job = self._queue.demand.next_job(submitter, autocluster)
                if asked and job is not None:
                    name = f"Total{AT_HOME[self._queue.universe(job)]}JobsRunning"
                    ad[name] = int(str(ad[name])) + asked
        return ad

    def _match(self, startd: LocalStartd, job: JobId, autocluster: int, count: int) -> MatchedSlot:
        return MatchedSlot(
            submitter=self._queue.submitter(job),
            autocluster=autocluster,
            count=count,
            slot=startd.slot,
            startd=startd.startd,
            capability=startd.capability,
        )
