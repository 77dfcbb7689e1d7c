"""
What the scheduler's program tells its session, and does for it: the size of a cluster is decided by the service, and carried
out here without losing a result.
"""

# distributed has no types:
# pyright: reportUnknownMemberType=false

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final

from distributed import Scheduler
from distributed.scheduler import WorkerState

from kettle.client.errors import ClientError
from kettle.dask.reports import Orders, Report, Superior, WorkerReport
from kettle.dask.scheduler.target import TargetSmoothing
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_wire.commands.sessions import LONGEST_AGENT_WAIT_S

RETIRED: Final = "retired"
WAIT_S: Final = LONGEST_AGENT_WAIT_S
"""So long the service may keep an answer."""
LOOK_S: Final = 1.0
"""So old is what the service knows of the load."""
_BREATH_S: Final = 0.1
_GRACE_S: Final = 10.0
_AFTER_FAILURE: Final = Backoff(first=0.2, longest=10.0)

log = logging.getLogger("distributed.kettle")


class SessionAgent:
    """Speaks with the session for as long as the scheduler lives."""

    def __init__(self, superior: Superior, versions: Mapping[str, str]) -> None:
        self._superior = superior
        self._versions = versions
        self._target = TargetSmoothing(_GRACE_S)
        self._idle_since: dict[str, float] = {}
        self._retiring: dict[str, asyncio.Task[None]] = {}
        self._retired: set[str] = set()
        self._listening: asyncio.Task[Orders] | None = None
        """A report that is answered when there is something to do."""
        self._said: object = None
        """What mattered in the last report."""

    async def serve(self, scheduler: Scheduler) -> None:
        """Until the session is closed."""
        waits = Waits(_AFTER_FAILURE)
        try:
            while True:
                try:
                    orders = await self._heard(scheduler)
                except ClientError as error:
                    log.warning("the session does not answer, and is asked again: %s", error)
                    await waits.wait()
                    continue
                waits.reset()
                if orders.closing:
                    await scheduler.close(reason="the session is stopped")
                    return
                self._retired.intersection_update(orders.retire)
                for name in orders.retire:
                    if name not in self._retiring and name not in self._retired:
                        self._retiring[name] = asyncio.create_task(self._retire(scheduler, name))
                if self._retiring:
                    await asyncio.sleep(_BREATH_S)  # as long as they are not gone the service answers at once
        finally:
            if self._listening is not None:
                self._listening.cancel()

    async def _heard(self, scheduler: Scheduler) -> Orders:
        """
        What the session says next. It has something to do or is told of something new, or nothing is said for a long time: an idle
        cluster is quiet.
        """
        while True:
            if self._listening is None:
                report = self._report(scheduler, wait=WAIT_S)
                self._said = self._matters(report)
                self._listening = asyncio.create_task(self._asked(report))
            listening = self._listening
            await asyncio.wait((listening,), timeout=LOOK_S)
            if listening.done():
                self._listening = None
                return await listening
            report = self._report(scheduler, wait=0.0)
            if (said := self._matters(report)) != self._said:
                self._said = said
                return await self._asked(report)

    def _matters(self, report: Report) -> object:
        """What the session may decide by, as it is now; times go on by themselves."""
        workers = {(each.name, each.state, each.name in self._idle_since) for each in report.workers}
        return workers, report.target, bool(report.idle_s), report.contact

    async def _asked(self, report: Report) -> Orders:
        return await self._superior.report(report)

    def _report(self, scheduler: Scheduler, *, wait: float) -> Report:
        now = time.monotonic()
        since = scheduler.check_idle()
        workers = [self._worker(each, now) for each in scheduler.workers.values()]
        present = {each.name for each in workers}
        for name in self._idle_since.keys() - present:
            del self._idle_since[name]
        gone = [
            WorkerReport(name=name, state=RETIRED, idle_s=0.0, memory=0)
            for name in sorted(self._retired - present)
        ]
        return Report(
            workers=workers + gone,
            target=self._target.smoothed(scheduler.adaptive_target(), now),
            idle_s=max(0.0, time.time() - since) if since else 0.0,
            contact=scheduler.address,
            versions=self._versions,
            wait=wait,
        )

    def _worker(self, worker: WorkerState, now: float) -> WorkerReport:
        name = str(worker.name)
        if worker.processing:
            self._idle_since.pop(name, None)
            idle_s = 0.0
        else:
            idle_s = now - self._idle_since.setdefault(name, now)
        state = "retiring" if name in self._retiring else "running"
        return WorkerReport(name=name, state=state, idle_s=idle_s, memory=worker.metrics.get("memory", 0))

    async def _retire(self, scheduler: Scheduler, name: str) -> None:
        """Its results move to the others; who has none to give them to stays, and is asked again."""
        try:
            gone = await scheduler.retire_workers(names=[name], close_workers=True)
            if gone or all(str(each.name) != name for each in scheduler.workers.values()):
                self._retired.add(name)
        finally:
            del self._retiring[name]
