"""
What the queue says of a job whose services somebody wants: whose it is, with whom they are shared, and whether it runs.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.bus.ports import Bus
from kettle.published import services, sharing
from kettle.published.services import ServiceError
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus
from kettle_wire.commands.queue import QUERY_JOBS, QueryJobs, Select
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.session_attributes import ID as SESSION

_KEPT_S: Final = 1.0
"""So long an answer counts: what the owner takes back ends so soon."""
_MOST: Final = 10_000
_RUNS: Final = "NumShadowStarts"
_ATTRIBUTES: Final = (
    "Owner",
    "JobStatus",
    "HoldReason",
    SESSION,
    _RUNS,
    services.ATTRIBUTE,
    sharing.ATTRIBUTE,
)


MayBe = Callable[[str], bool]
"""Whether an access point may be the one that is meant."""


def anywhere(_schedd: str) -> bool:
    """Any access point may be."""
    return True


class QueuedJob(msgspec.Struct, frozen=True):
    """A job in a queue."""

    job: JobId
    schedd: str
    owner: str
    status: JobStatus
    shared_with: sharing.Sharing
    described: tuple[services.Service, ...]
    """What its description publishes."""
    hold_reason: str = ""
    session: str = ""
    """The interactive session that it is of."""
    runs: int = 0
    """How often it was given to a machine."""

    def why_not_reached(self) -> str:
        """Why it has no tunnel, as a sentence."""
        match self.status:
            case JobStatus.IDLE:
                return f"job {self.job} does not run yet: it waits for a machine (kettle why {self.job})"
            case JobStatus.HELD:
                because = f": {self.hold_reason}" if self.hold_reason else ""
                return f"job {self.job} is on hold{because}"
            case JobStatus.RUNNING | JobStatus.SUSPENDED | JobStatus.TRANSFERRING_OUTPUT:
                return f"job {self.job} runs, and its machine has not connected to this gateway yet, or not again"
            case _:
                return f"job {self.job} has ended"


class JobLookup:
    """Asks its access point, which decides; an answer counts for a moment."""

    def __init__(self, bus: Bus, collector: str, tables: JobTables) -> None:
        """
        `tables` tell which access point has a job of a number, or had it; `collector`: the name of who knows all of them.
        """
        self._bus: Final = bus
        self._collector: Final = collector
        self._tables: Final = tables
        self._known: OrderedDict[tuple[str, JobId], tuple[float, asyncio.Task[QueuedJob | None]]] = (
            OrderedDict()
        )

    async def access_point(self, job: JobId, schedd: str, may_be: MayBe = anywhere) -> str:
        """
        Which has the job, or had it, of those that it may be at; raises RequestRefused: none, or several.
        """
        async with self._tables.read() as reading:
            found = list(filter(may_be, await reading.schedds_of(job, schedd)))
        if not found:  # it may have come just now
            there = filter(may_be, await self._access_points(schedd))
            found = [each for each in there if await self._queued(job, each)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise RequestRefused(
                404, ProblemCode.NOT_FOUND, f"there is no job {job}, neither in a queue nor in the history"
            )
        names = ", ".join(f"{job}@{each}" for each in found)
        raise RequestRefused(
            409, ProblemCode.AMBIGUOUS, f"several access points have a job {job}: name one of {names}"
        )

    async def _access_points(self, schedd: str) -> list[str]:
        ads = await all_ads(self._bus, self._collector, "Scheduler", fields=["MyType"])
        names = {str(ad.get("Name", "")) for ad in ads}
        return sorted(names & {schedd} if schedd else names)

    async def job(self, job: JobId, schedd: str, *, fresh: bool = False) -> QueuedJob:
        """
        A job in the queue of an access point; `fresh`: as it is now, and not a moment ago.

        Raises RequestRefused: it has left the queue (410); RefusedError, BusError: nobody can tell at the moment.
        """
        if fresh:
            self._known.pop((schedd, job), None)
        found = await self._queued(job, schedd)
        if found is None:
            raise RequestRefused(
                410, ProblemCode.NOT_FOUND, f"job {job} has ended, and publishes nothing any more"
            )
        return found

    async def _queued(self, job: JobId, schedd: str) -> QueuedJob | None:
        key = schedd, job
        until, answer = self._known.get(key, (0.0, None))
        if answer is None or (answer.done() and (time.monotonic() >= until or _failed(answer))):
            answer = asyncio.create_task(self._asked(job, schedd), name="whose job")
            self._known[key] = time.monotonic() + _KEPT_S, answer
            self._known.move_to_end(key)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return await asyncio.shield(answer)

    async def _asked(self, job: JobId, schedd: str) -> QueuedJob | None:
        query = QueryJobs(select=Select(jobs=[job]), projection=list(_ATTRIBUTES), limit=1)
        ads = (await self._bus.call(QUERY_JOBS, schedd, query)).jobs
        return _of_ad(job, schedd, ads[0]) if ads else None


def _failed(answer: asyncio.Task[QueuedJob | None]) -> bool:
    return answer.cancelled() or answer.exception() is not None


def _of_ad(job: JobId, schedd: str, ad: Ad) -> QueuedJob:
    return QueuedJob(
        job=job,
        schedd=schedd,
        owner=str(ad["Owner"]),
        status=JobStatus(int(str(ad["JobStatus"]))),
        shared_with=_sharing(ad.get(sharing.ATTRIBUTE)),
        described=_services(ad.get(services.ATTRIBUTE)),
        hold_reason=str(ad.get("HoldReason", "")),
        session=str(ad.get(SESSION, "")),
        runs=int(str(ad.get(_RUNS, 0))),
    )


def _sharing(value: object) -> sharing.Sharing:
    """With whom; with nobody if an edit has left something else there."""
    try:
        return sharing.parse_sharing(value) if isinstance(value, str) else sharing.Sharing()
    except ServiceError:
        return sharing.Sharing()


def _services(value: object) -> tuple[services.Service, ...]:
    try:
        return services.parse_services(value) if isinstance(value, str) else ()
    except ServiceError:
        return ()
