"""
A worker in a job, whose id is its name, from its start to its end.

A worker whose scheduler is gone joins the next one; it ends when it was retired, when no scheduler comes in time, or at the
end of its life.
"""

# distributed has no types:
# pyright: reportUnknownMemberType=false

import asyncio
from enum import IntEnum
from typing import Any, Final

from distributed import Worker

from kettle.dask.comm import listen_as
from kettle.dask.membership import Membership
from kettle.dask.placement import Placement
from kettle.dask.programs import complain
from kettle.dask.security import security_of
from kettle.dask.versions import mismatch, own_versions

PROGRAM: Final = "kettle.dask.worker"
WORKER: Final = "worker"
"""The name of its service."""
DEATH_TIMEOUT_S: Final = 120.0
_LOST: Final = frozenset(
    {"worker-handle-scheduler-connection-broken", "worker-heartbeat-missing", "scheduler-close"}
)
"""Reasons of Dask for which a worker closes that may join another scheduler; who ends a session ends its jobs."""


class Ended(IntEnum):
    """Why the program ended, as its job's exit code."""

    DISMISSED = 0
    """It was retired, or its life is over."""
    UNUSABLE = 1
    ALONE = 3
    """No scheduler came in time."""
    UNEQUAL = 4
    """The scheduler's versions are others."""


class JobWorker(Worker):
    """A worker that knows why it was closed."""

    closed_for = ""

    async def close(self, *args: Any, **options: Any) -> Any:
        """Remember the first reason."""
        self.closed_for = self.closed_for or options.get("reason", "")
        return await super().close(*args, **options)


class WorkerProgram:
    """One worker after the other, until the job is no longer needed."""

    def __init__(
        self,
        membership: Membership,
        placement: Placement,
        *,
        lifetime_s: float = 0.0,
        death_timeout_s: float = DEATH_TIMEOUT_S,
    ) -> None:
        """`lifetime_s`: after so long it moves its data to others and ends; 0: never."""
        self._membership = membership
        self._placement = placement
        self._lifetime_s = lifetime_s
        self._death_timeout_s = death_timeout_s

    async def run(self, end: asyncio.Event) -> Ended:
        """Until it ends, by itself or by `end`."""
        listen_as(self._placement, WORKER)
        contact = ""
        while not end.is_set():
            try:
                async with asyncio.timeout(self._death_timeout_s):
                    contact, theirs = await self._membership.scheduler(after=contact)
            except TimeoutError:
                complain(PROGRAM, f"there was no scheduler in {self._death_timeout_s:g} s")
                return Ended.ALONE
            if said := mismatch(own_versions(), theirs, we="this worker's image", they="the scheduler's"):
                complain(PROGRAM, said)
                return Ended.UNEQUAL
            if not await self._serve(contact, end):
                break
        return Ended.DISMISSED

    async def _serve(self, contact: str, end: asyncio.Event) -> bool:
        """Work for this scheduler; whether another one may have us afterwards."""
        worker = self._worker(contact)
        try:
            await worker
        except TimeoutError:
            return True  # it has gone before we came
        published = asyncio.create_task(self._membership.publish(WORKER, worker.port, "tcp"))
        ended = asyncio.create_task(end.wait())
        finished = asyncio.create_task(worker.finished())
        try:
            await asyncio.wait((ended, finished), return_when=asyncio.FIRST_COMPLETED)
            if not finished.done():
                # Its data move to others, as far as there is time.
                try:
                    await worker.close_gracefully(reason="the job of the worker is ended")
                except OSError:  # the scheduler has ended before it: nobody wants its data
                    await worker.close(reason="the job of the worker is ended")
        finally:
            for each in (published, ended, finished):
                each.cancel()
        return worker.closed_for in _LOST

    def _worker(self, contact: str) -> JobWorker:
        place = self._placement
        return JobWorker(
            contact,
            name=place.job,
            protocol="kettle",
            host=place.binds,
            nthreads=place.cores,
            memory_limit=place.memory_bytes or "auto",
            security=security_of(self._membership.credentials, self._membership.open_stream),
            lifetime=self._lifetime_s or None,
            lifetime_restart=False,
            death_timeout=self._death_timeout_s,
            dashboard=False,
            dashboard_address="127.0.0.1:0",
        )
