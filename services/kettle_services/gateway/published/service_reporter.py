"""
What goes on at this gateway with services of jobs, on its way into the record of each job, which its access point keeps.

A report is sent again as it is until it is answered, so it is recorded once.  What is not reported yet when the process is killed is
lost; that is what has happened since the last report of the job.
"""

import asyncio
import logging
import secrets
from collections import deque
from contextlib import suppress
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError, RefusedError
from kettle_services.gateway.published.service_access import ServiceAccess, Unserved
from kettle_services.gateway.published.tunnels import JobKey, JobTunnel, Tunnels
from kettle_services.gateway.published.uses import Use, Uses
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.service_reports import REPORT_SERVICES, ReportServices
from kettle_wire.events.job import ServiceUse

EVERY_S: Final = 15.0
"""Between reports of one job about what goes on; that it has connected is reported at once."""
_AGAIN_S: Final = 2.0
_MOST_USES: Final = 200
_MOST_REFUSED: Final = 49
"""Of these so many may tell of refusals service by service: names of services are what strangers say."""
_OTHERS: Final = "(others)"
"""Stands for the rest of them: no service is called so."""
_MOST_WAITING: Final = 50
"""Reports of one job; with more of them the oldest is given up."""
_LAST_S: Final = 3.0
_LONGEST: Final = 500
_FOR_NOW: Final = frozenset(
    {RefusalCode.UNAVAILABLE, RefusalCode.BEHIND, RefusalCode.TOO_SLOW, RefusalCode.LIMIT}
)

_log: Final = logging.getLogger(__name__)

_Who = tuple[str, str, str]
"""Person, service, by what."""


class _Job:
    """What is to be said of one."""

    def __init__(self) -> None:
        self.attempt = 0
        self.uses: dict[_Who, ServiceUse] = {}
        self.waiting: deque[ReportServices] = deque()

    def add(
        self,
        who: _Who,
        *,
        connections: int = 0,
        sent: int = 0,
        received: int = 0,
        refused: int = 0,
        why: str = "",
    ) -> None:
        """More of what somebody did; `is_full` says whether there is room for more."""
        if refused and who not in self.uses and self._has_refused_many:
            who = who[0], _OTHERS, who[2]
        person, service, because = who
        known = self.uses.get(who)
        if known is None:
            known = ServiceUse(person=person, service=service, because=because)
        self.uses[who] = msgspec.structs.replace(
            known,
            connections=known.connections + connections,
            sent=known.sent + sent,
            received=known.received + received,
            refused=known.refused + refused,
            why=why or known.why,
        )

    @property
    def _has_refused_many(self) -> bool:
        return sum(each.refused > 0 for each in self.uses.values()) >= _MOST_REFUSED

    @property
    def is_full(self) -> bool:
        """Whether one report has no room for more."""
        return len(self.uses) >= _MOST_USES


class ServiceReporter:
    """Collects it, and sends it."""

    def __init__(self, bus: Bus) -> None:
        self._bus: Final = bus
        self._jobs: dict[JobKey, _Job] = {}
        self._wake: Final = asyncio.Event()
        self._open: Uses | None = None

    def listen(self, tunnels: Tunnels, uses: Uses, access: ServiceAccess) -> None:
        """Have it told of what happens."""
        tunnels.opened, tunnels.closed = self._opened, self._closed
        uses.ended = self._count
        access.refused = self._refused
        self._open = uses

    def _of(self, key: JobKey, attempt: int) -> _Job:
        job = self._jobs.setdefault(key, _Job())
        job.attempt = max(job.attempt, attempt)
        return job

    def _opened(self, tunnel: JobTunnel) -> None:
        services = [str(each) for each in tunnel.tunnel.announcement.services]
        self._put(tunnel.key, tunnel.ticket.attempt, tunnel="up", services=services)

    def _closed(self, tunnel: JobTunnel, reason: str) -> None:
        for use in self._open or ():
            if use.job == tunnel.key:
                self._count(use, goes_on=True)
        self._put(tunnel.key, tunnel.ticket.attempt, tunnel="down", reason=reason[:_LONGEST])

    def _refused(self, unserved: Unserved) -> None:
        key = unserved.job.schedd, unserved.job.job
        who = unserved.person, unserved.service, unserved.because
        self._of(key, 0).add(who, refused=1, why=unserved.why[:_LONGEST])
        self._require_room(key, 0)

    def _count(self, use: Use, *, goes_on: bool = False) -> None:
        """What a connection has done since it was counted last."""
        sent, received = use.bytes
        before = use.reported or (0, 0)
        new = use.reported is None
        more_sent, more_received = sent - before[0], received - before[1]
        if goes_on and not (new or more_sent or more_received):
            return
        use.reported = sent, received
        self._of(use.job, use.attempt).add(
            (use.person, use.service, use.because),
            connections=int(new),
            sent=more_sent,
            received=more_received,
        )
        self._require_room(use.job, use.attempt)

    def _require_room(self, key: JobKey, attempt: int) -> None:
        """Report what there is, if there is no room for more."""
        if self._of(key, attempt).is_full:
            self._put(key, attempt)

    def _put(self, key: JobKey, attempt: int, **said: object) -> None:
        """A report of a job, with all that is known of its uses."""
        job = self._of(key, attempt)
        request = ReportServices(
            id=f"services.{secrets.token_hex(12)}", job=key[1], attempt=attempt, uses=list(job.uses.values())
        )
        job.uses = {}
        job.waiting.append(msgspec.structs.replace(request, **said))
        if len(job.waiting) > _MOST_WAITING:
            job.waiting.popleft()
            _log.error("a report of the services of job %s is given up: nobody takes it", key[1])
        self._wake.set()

    async def run(self) -> None:
        """Report without end."""
        loop = asyncio.get_running_loop()
        due = loop.time() + EVERY_S
        while True:
            late = any(each.waiting for each in self._jobs.values())
            pause = _AGAIN_S if late else max(0.0, due - loop.time())
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            self._wake.clear()
            if loop.time() >= due:
                due = loop.time() + EVERY_S
                self._collect()
            await self._send()

    def _collect(self) -> None:
        for use in self._open or ():
            self._count(use, goes_on=True)
        for key, job in list(self._jobs.items()):
            if job.uses:
                self._put(key, job.attempt)

    async def _send(self) -> None:
        """Send what waits, to all access points at once: one that does not answer delays its own alone."""
        places: dict[str, list[JobKey]] = {}
        for key in self._jobs:
            places.setdefault(key[0], []).append(key)
        await asyncio.gather(*map(self._send_to_one, places.values()))

    async def _send_to_one(self, keys: list[JobKey]) -> None:
        for key in keys:
            if (job := self._jobs.get(key)) is None:
                continue
            try:
                await self._send_of(key, job)
            except BusError as error:
                _log.warning("what happened to services is not recorded yet at %s: %s", key[0], error)
                return
            if not (job.waiting or job.uses):
                self._jobs.pop(key, None)

    async def _send_of(self, key: JobKey, job: _Job) -> None:
        """The reports of one job, until one is refused for now; raises BusError: there is no answer."""
        while job.waiting:
            report = job.waiting[0]
            if not await self._sent(key, report):
                return
            if job.waiting and job.waiting[0] is report:  # it was not given up meanwhile
                job.waiting.popleft()

    async def _sent(self, key: JobKey, report: ReportServices) -> bool:
        """Whether it is settled; raises BusError: there is no answer."""
        try:
            await self._bus.call(REPORT_SERVICES, key[0], report)
        except RefusedError as refusal:
            if refusal.code in _FOR_NOW:
                return False
            _log.info("what happened to the services of job %s is not recorded: %s", report.job, refusal)
        return True

    async def finish(self) -> None:
        """Send what there is, once, before the process ends."""
        self._collect()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                await self._send()
