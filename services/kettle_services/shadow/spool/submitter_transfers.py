"""
Taking the input files of jobs from their submitters before they run, and giving the results back after it.

Who may, the schedd says, which is asked on the caller's behalf; and it is the schedd that releases the jobs, when their
files are on our disk.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

from kettle.bus.ports import Bus, BusError, RefusedError, Rep, Req, Served
from kettle_services.shadow.settings import ShadowSettings
from kettle_services.shadow.spool.job_files import SpooledFiles, SpoolError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.attempt_reports import ShadowOrders, ShadowSync
from kettle_wire.commands.schedd import FIND_SPOOL, RELEASE_SPOOLED, FindSpool, ReleaseSpooled
from kettle_wire.commands.spooling import (
    FETCH_SPOOLED,
    LIST_SPOOLED,
    SPOOL_JOBS,
    SPOOL_JOBS_FROM_JOB,
    SPOOL_PARTS,
    FetchSpooled,
    JobsSpooled,
    ListSpooled,
    PartsSpooled,
    SpooledResults,
    SpoolJobs,
    SpoolParts,
)
from kettle_wire.commands.startd import Piece
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

T = TypeVar("T")

_THREADS: Final = 4
_TRUSTED_S: Final = 60.0
"""How long the schedd's word is believed that a person may have to do with a cluster."""
_TRUSTED: Final = 10_000
_PATIENCE_S: Final = 20.0
"""For an answer of the schedd: a hundred thousand jobs are not released at once."""
_AGAIN_MS: Final = 500
_ASKED: Final = 1000
"""Jobs, and clusters, about which the schedd is asked at once whether they are still in the queue."""


class Spooling:
    """Answers people; one request for each cluster at a time."""

    def __init__(self, bus: Bus, settings: ShadowSettings, files: SpooledFiles) -> None:
        self._bus = bus
        self._settings = settings
        self._files = files
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="spooling")
        self._trusted: OrderedDict[tuple[int, str], float] = OrderedDict()
        self._turns: dict[int, tuple[asyncio.Lock, int]] = {}
        """With how many want it."""
        self._asked_about: tuple[JobId, int] = JobId(0, 0), 0

    def served(self) -> list[Served[Any, Any]]:
        """The requests of people, and of jobs that have a token."""
        return [
            *self._of_all(),
            Served(SPOOL_JOBS, self.jobs),
            Served(SPOOL_JOBS_FROM_JOB, self.jobs_from_job),
        ]

    def served_to_jobs(self) -> list[Served[Any, Any]]:
        """The requests of jobs that ask by way of their shadow."""
        return [*self._of_all(), Served(SPOOL_JOBS, self.jobs_from_job)]

    def _of_all(self) -> list[Served[Any, Any]]:
        return [
            Served(SPOOL_PARTS, self.parts),
            Served(LIST_SPOOLED, self.results),
            Served(FETCH_SPOOLED, self.piece),
        ]

    async def parts(self, request: SpoolParts, caller: Identity) -> PartsSpooled:
        """A submitter sends parts of input files."""
        await self._authorise(request.cluster, caller)
        async with self._turn(request.cluster):
            have = await self._on_disk(partial(self._files.keep, request.cluster, request.parts))
        return PartsSpooled(have=have)

    async def jobs(self, request: SpoolJobs, caller: Identity) -> JobsSpooled:
        """A submitter says that all was sent."""
        asked = FindSpool(cluster=request.cluster, person=caller.name, waiting=True, by_token=caller.bearer)
        return await self._settle(asked, request)

    async def jobs_from_job(self, request: SpoolJobs, caller: Identity) -> JobsSpooled:
        """A running job says so."""
        asked = FindSpool(cluster=request.cluster, person=caller.name, waiting=True, by_job=True)
        return await self._settle(asked, request)

    async def _settle(self, asked: FindSpool, request: SpoolJobs) -> JobsSpooled:
        cluster = request.cluster
        async with self._turn(cluster):
            found = await self._call(FIND_SPOOL, asked)
            settle = partial(self._files.settle, cluster, request.manifest, found.waiting)
            missing, ready, size = await self._on_disk(settle)
            if ready:
                await self._call(RELEASE_SPOOLED, ReleaseSpooled(cluster=cluster, jobs=ready, size=size))
        return JobsSpooled(missing=missing)

    async def results(self, request: ListSpooled, caller: Identity) -> SpooledResults:
        """A submitter wants to know what a job left."""
        await self._authorise(request.job.cluster, caller)
        return await self._on_disk(partial(self._files.results, request.job, request.after))

    async def piece(self, request: FetchSpooled, caller: Identity) -> Piece:
        """A submitter fetches it."""
        await self._authorise(request.job.cluster, caller)
        read = partial(
            self._files.piece, request.job, request.name, request.offset, request.length, log=request.log
        )
        return Piece(await self._on_disk(read))

    def close(self) -> None:
        """Answer nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    # -- the full exchange -------------------------------------------------------------------------------------------

    async def kept(self) -> tuple[list[JobId], list[int]]:
        """Jobs and clusters of which something is there: some of them now, the next ones next time."""
        jobs, clusters = await asyncio.to_thread(lambda: (self._files.jobs(), self._files.clusters()))
        last_job, last_cluster = self._asked_about
        jobs, clusters = _some(jobs, last_job), _some(clusters, last_cluster)
        self._asked_about = jobs[-1] if jobs else last_job, clusters[-1] if clusters else last_cluster
        return jobs, clusters

    async def forget(self, request: ShadowSync, orders: ShadowOrders) -> None:
        """Remove what the schedd does not know any more, of what it was asked about."""
        asked = set(request.spooled), set(request.spools)
        jobs = [job for job in orders.spooled if job in asked[0]]
        clusters = [cluster for cluster in orders.spools if cluster in asked[1]]
        if jobs:
            await asyncio.to_thread(self._files.drop, jobs, ())
        for cluster in clusters:
            async with self._turn(cluster):
                self._trusted = OrderedDict(
                    (key, until) for key, until in self._trusted.items() if key[0] != cluster
                )
                await asyncio.to_thread(self._files.drop, (), [cluster])

    # -- who may -----------------------------------------------------------------------------------------------------

    async def _authorise(self, cluster: int, caller: Identity) -> None:
        now = asyncio.get_running_loop().time()
        key = cluster, caller.name
        if self._trusted.get(key, 0.0) > now:
            return
        await self._call(FIND_SPOOL, FindSpool(cluster=cluster, person=caller.name))
        self._trusted.pop(key, None)
        self._trusted[key] = now + _TRUSTED_S
        while len(self._trusted) > _TRUSTED:
            self._trusted.popitem(last=False)

    async def _call(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        """Raises RefusedError: the schedd refuses it, or does not answer."""
        deadline = max(_PATIENCE_S, self._settings.call_deadline)
        try:
            return await self._bus.call(endpoint, self._settings.schedd, request, deadline=deadline)
        except RefusedError:
            raise
        except BusError as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"the schedd does not answer: {error}", retry_after_ms=_AGAIN_MS
            ) from error

    @asynccontextmanager
    async def _turn(self, cluster: int) -> AsyncGenerator[None]:
        lock, wanted = self._turns.get(cluster, (asyncio.Lock(), 0))
        self._turns[cluster] = lock, wanted + 1
        try:
            async with lock:
                yield
        finally:
            lock, wanted = self._turns.pop(cluster)
            if wanted > 1:
                self._turns[cluster] = lock, wanted - 1

    async def _on_disk(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except SpoolError as error:
            raise RefusedError(error.code, str(error)) from error
        except FileNotFoundError as error:
            raise RefusedError(
                RefusalCode.NOT_FOUND, "there is no such file in the spool (any more)"
            ) from error
        except OSError as error:
            raise RefusedError(
                RefusalCode.SPOOL, f"the spool of the access point: {error.strerror}"
            ) from error


def _some(found: list[Any], after: Any) -> list[Any]:
    if len(found) <= _ASKED:
        return found
    first = next((place for place, each in enumerate(found) if each > after), 0)
    return [*found[first:], *found[:first]][:_ASKED]
