"""
What the scheduler's program tells its session, and does for it: the size of a cluster is decided by the service, and carried
out here without losing a result.
"""

import asyncio
import logging
import random
import time
from collections.abc import Mapping
from typing import Final

from distributed import Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.scheduler import WorkerState

from kettle.client.errors import ClientError
from kettle.dask.reports import Orders, Report, Superior, WorkerReport
from kettle.dask.scheduler.target import TargetSmoothing
from kettle.retry.backoff import Backoff

RETIRED: Final = "retired"
WAIT_S: Final = 5.0
_GRACE_S: Final = 10.0
_AFTER_FAILURE: Final = Backoff(first=0.2, longest=10.0)

log = logging.getLogger("distributed.kettle")


class SessionAgent(SchedulerPlugin):
    """Speaks with the session for as long as the scheduler lives."""

    name = "kettle-session"

    def __init__(self, superior: Superior, versions: Mapping[str, str]) -> None:
        self._superior = superior
        self._versions = versions
        self._target = TargetSmoothing(_GRACE_S)
        self._idle_since: dict[str, float] = {}
        self._retiring: dict[str, asyncio.Task[None]] = {}
        self._retired: set[str] = set()
        self._changed = asyncio.Event()

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """The service hears at once that it is there."""
        self._changed.set()

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: object) -> None:
        """And that it is gone."""
        self._changed.set()

    async def serve(self, scheduler: Scheduler) -> None:
        """Until the session is closed."""
        scheduler.add_plugin(self)
        failures = 0
        while True:
            try:
                orders = await self._exchange(scheduler)
            except ClientError as error:
                failures += 1
                log.warning("the session does not answer, and is asked again: %s", error)
                await asyncio.sleep(_AFTER_FAILURE.delay(failures - 1, random.random()))
                continue
            failures = 0
            if orders is None:
                continue
            if orders.closing:
                await scheduler.close(reason="the session is stopped")
                return
            self._retired.intersection_update(orders.retire)
            for name in orders.retire:
                if name not in self._retiring and name not in self._retired:
                    self._retiring[name] = asyncio.create_task(self._retire(scheduler, name))

    async def _exchange(self, scheduler: Scheduler) -> Orders | None:
        """The answer; None if something has happened meanwhile that the service has to know first."""
        self._changed.clear()
        asked = asyncio.create_task(self._superior.report(self._report(scheduler)))
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait((asked, changed), return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() else None
        finally:
            for each in (asked, changed):
                each.cancel()
            await asyncio.wait((asked, changed))

    def _report(self, scheduler: Scheduler) -> Report:
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
            wait=WAIT_S,
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
                self._changed.set()
        finally:
            del self._retiring[name]
