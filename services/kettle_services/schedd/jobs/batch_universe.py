"""
Jobs of the grid universe: claims for them are asked of our compute entrypoint, which answers for batch systems as a startd does for
its machine.

From there on they are jobs like all others: the same claims, leases, shadows, policies and records.
"""

import asyncio
import time
from functools import partial
from typing import Final

from kettle_services.schedd.claims.requester import ClaimRequester
from kettle_services.schedd.domain.queue.at_home import in_order
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.commands.ce import batch_startd
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.events import ClaimEnded, Event
from kettle_wire.grid import batch_system
from kettle_wire.jobs import JobId

_FLOOR_S: Final = 0.05
"""Between two looks, however much happens to the queue meanwhile."""
_MOST: Final = 200
"""Jobs for which claims are asked in one look."""


class BatchUniverse:
    """
    Asks for them as soon as they may run, and of a batch system that refuses some only after a while again.
    """

    def __init__(self, queue: Queue, requester: ClaimRequester, settings: ScheddSettings) -> None:
        self._queue = queue
        self._requester = requester
        self._startd = batch_startd(settings.name)
        self._interval = settings.local_jobs_interval
        self._wake = asyncio.Event()
        self._refusals: dict[tuple[str, int], tuple[str, float]] = {}
        """(submitter, autocluster) -> why, and until when it is not asked again."""

    def on_event(self, event: Event) -> None:
        """Something was recorded."""
        if self._refusals and isinstance(event, ClaimEnded):  # there may be room soon
            soon = time.monotonic() + _FLOOR_S
            self._refusals = {key: (why, min(until, soon)) for key, (why, until) in self._refusals.items()}
        if self._queue.demand.in_batch:
            self._wake.set()

    def wake(self) -> None:
        """A job may run again that had to wait."""
        self._wake.set()

    async def start_jobs(self) -> None:
        """Ask whenever something has happened, and when a refusal is old; never returns."""
        while True:
            self._wake.clear()
            self._ask()
            await asyncio.sleep(_FLOOR_S)
            now = time.monotonic()
            soonest = min((until for _, until in self._refusals.values()), default=None)
            try:
                async with asyncio.timeout(None if soonest is None else max(0.0, soonest - now)):
                    await self._wake.wait()
            except TimeoutError:
                pass  # a refusal is old

    def _ask(self) -> None:
        now, left = time.monotonic(), _MOST
        self._refusals = {key: said for key, said in self._refusals.items() if said[1] > now}
        for job, submitter, autocluster, count in in_order(
            self._queue.demand.in_batch, self._requester.asked.jobs, _MOST
        ):
            if (submitter, autocluster) in self._refusals:
                continue
            asked = min(count, left)
            match = MatchedSlot(
                submitter=submitter,
                autocluster=autocluster,
                count=asked,
                slot=batch_system(self._queue.ad(job).get("GridResource")),
                startd=self._startd,
                capability="",
            )
            self._requester.request_matched(match, partial(self._refused, (submitter, autocluster)))
            left -= asked
            if not left:
                self._wake.set()  # there may be more
                return

    def _refused(self, key: tuple[str, int], reason: str) -> None:
        self._refusals[key] = reason, time.monotonic() + self._interval
        self._wake.set()

    def explain(self, job: JobId) -> str:
        """Why a job that could run does not, as a sentence; empty if it is about to."""
        refusal = self._refusals.get((self._queue.submitter(job), self._queue.autocluster(job)))
        if refusal is None:
            return ""
        return f"the batch system {batch_system(self._queue.ad(job).get('GridResource'))} does not take it: {refusal[0]}"
