"""
The record of what pilots run for others: taken from their reports, ended with their jobs, and shown to whose pilots they are.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Sequence
from typing import Final

from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle.eventsourcing.log import Log
from kettle_services.ce.domain.payloads import (
    PAYLOAD,
    Pilot,
    TooManyError,
    ended,
    has_ended,
    history,
    reported,
)
from kettle_services.ce.record import Record
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.payloads import (
    ListPayloads,
    PayloadsListed,
    PayloadsReported,
    ReportedPayload,
    ReportPayloads,
)
from kettle_wire.commands.queue import QUERY_JOBS, QueryJobs, Select
from kettle_wire.events import decode
from kettle_wire.events.payload import PayloadBegun, PayloadEvent, PayloadOver, PilotOver
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId
from kettle_wire.payloads import PayloadReport

_log: Final = logging.getLogger(__name__)
_EVERY_S: Final = 60.0
"""Between two looks whether pilots still run."""
_AT_ONCE: Final = 500
"""Jobs of which is asked in one question."""
_WITHIN_S: Final = 10.0
_MOST_TOLD: Final = 2000
"""Payloads in one answer."""
_PILOT: Final = ["ClusterId", "ProcId", "Owner", "JobStatus", "EnteredCurrentStatus", "RouteName"]


class PayloadAudit:
    """Keeps it, for the jobs of one schedd that have a route."""

    def __init__(
        self, bus: Bus, log: Log, record: Record, schedd: str, administrators: Callable[[], Collection[str]]
    ) -> None:
        self._bus: Final = bus
        self._log: Final = log
        self._record: Final = record
        self._schedd: Final = schedd
        self._administrators: Final = administrators

    async def report(self, request: ReportPayloads, caller: Identity) -> Decision[PayloadsReported]:
        """What a pilot says, with the credential of whose job it is."""
        by = await self._owner(request.job)
        if not caller.is_person(by):
            raise RefusedError(RefusalCode.DENIED, f"job {request.job} belongs to {by}")
        changes = self._changes(request.job, by, request.report)
        name = str(request.job)
        return Decision(
            lambda position: PayloadsReported(position=position, running=self._running(name)), changes
        )

    async def take(self, job: JobId, report: PayloadReport) -> int:
        """
        What a pilot says that has shown its job's own token; how many it runs then.  Raises RefusedError, BusError.
        """
        changes = self._changes(job, await self._owner(job), report)
        if changes:
            await self._record.record(changes)
        return self._running(str(job))

    async def listed(self, request: ListPayloads, caller: Identity) -> PayloadsListed:
        """Those that run; of one job, all."""
        told = self._now() if request.job is None else await self._of(request.job)
        if caller.kind != "user" or caller.name not in self._administrators():
            mine = [each for each in told if caller.is_person(each.by)]
            if told and not mine and request.job is not None:
                raise RefusedError(RefusalCode.DENIED, f"job {request.job} belongs to {told[0].by}")
            told = mine
        if request.owner:
            told = [each for each in told if each.payload.owner == request.owner]
        return PayloadsListed(payloads=told[-_MOST_TOLD:], left_out=max(0, len(told) - _MOST_TOLD))

    def _now(self) -> list[ReportedPayload]:
        return sorted(
            (
                ReportedPayload(job=JobId.parse(job), by=pilot.by, payload=each.payload, began=each.began)
                for job, pilot in self._pilots.items()
                for each in pilot.running.values()
            ),
            key=lambda each: (each.began, each.job),
        )

    async def _of(self, job: JobId) -> list[ReportedPayload]:
        frames = await self._log.stream(self._record.shard.name, f"{PAYLOAD}{job}")
        events: list[tuple[float, PayloadEvent]] = []
        for frame, _ in frames:
            event = decode(frame.entries[0].data)
            assert isinstance(event, PayloadBegun | PayloadOver | PilotOver)
            events.append((frame.at / 1e6, event))
        return history(job, events)

    @property
    def _pilots(self) -> dict[str, Pilot]:
        return self._record.state.pilots.states

    def _running(self, job: str) -> int:
        pilot = self._pilots.get(job)
        return len(pilot.running) if pilot is not None else 0

    def _changes(self, job: JobId, by: str, report: PayloadReport) -> list[tuple[str, PayloadEvent]]:
        try:
            events = reported(self._pilots.get(str(job)), by, report)
        except TooManyError as error:
            raise RefusedError(RefusalCode.LIMIT, str(error)) from None
        return [(f"{PAYLOAD}{job}", event) for event in events]

    async def _owner(self, job: JobId) -> str:
        """Whose job a pilot is; its first report has the queue asked."""
        if (pilot := self._pilots.get(str(job))) is not None:
            return pilot.by
        ad = (await self._ads([job])).get(job)
        if ad is None:
            raise RefusedError(RefusalCode.NOT_FOUND, f"there is no job {job} in the queue of {self._schedd}")
        if not ad.get("RouteName"):
            raise RefusedError(
                RefusalCode.REFUSED,
                f"job {job} has no route: what jobs run for others is recorded of those that the entrypoint has routed",
            )
        if has_ended(ad, math.inf):
            raise RefusedError(RefusalCode.NOT_RUNNING, f"job {job} does not run")
        return str(ad.get("Owner", ""))

    async def _ads(self, jobs: Sequence[JobId]) -> dict[JobId, Ad]:
        request = QueryJobs(select=Select(jobs=list(jobs)), projection=_PILOT)
        answer = await self._bus.call(QUERY_JOBS, self._schedd, request, deadline=_WITHIN_S)
        return {JobId(int(str(ad["ClusterId"])), int(str(ad["ProcId"]))): ad for ad in answer.jobs}

    async def watch(self) -> None:
        """Record which pilots are over; never returns."""
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                await self.end_pilots()
            except BusError as error:
                _log.info("the schedd does not answer", extra={"cause": str(error)})

    async def end_pilots(self) -> None:
        """Look which pilots are over.  Raises BusError."""
        jobs = [JobId.parse(each) for each in self._pilots]
        for start in range(0, len(jobs), _AT_ONCE):
            some = jobs[start : start + _AT_ONCE]
            ads = await self._ads(some)
            over = [
                (f"{PAYLOAD}{job}", event)
                for job in some
                for event in ended(self._pilots[str(job)], ads.get(job))
            ]
            if over:
                await self._record.record(over)
