"""
The ads of this schedd: one for each submitter with its demand, and one for the schedd.

New demand is published at once; less demand can wait, because the negotiator's matches are advice anyway.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError
from kettle.runtime.daemon_ad import daemon_facts
from kettle.runtime.duty_cycle import DutyCycle
from kettle_services.schedd.claims.requester import ClaimRequester
from kettle_services.schedd.domain.negotiation.concurrency_limits import added
from kettle_services.schedd.domain.negotiation.flocking import flocked
from kettle_services.schedd.domain.queue.at_home import totals
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.negotiation.resource_requests import ResourceRequests
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    FactoryMaterialized,
    JobEdited,
    JobHeld,
    JobReleased,
    JobsChanged,
    JobVacated,
)
from kettle_wire.subjects import Subjects, ad_key, submitters_key

_SLOW: Final = 0.5
"""Seconds until an ad that shows less work is sent."""

_log: Final = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


_URGENT: Final = frozenset(
    {
        ClusterSubmitted,
        ClustersSubmitted,
        FactoryMaterialized,
        JobReleased,
        JobVacated,
        JobHeld,
        JobEdited,
        JobsChanged,
    }
)
"""After these there is work that was not shown before, or less than was shown."""


class ScheddAdvertiser:
    """Publishes the ads of one schedd."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        queue: Queue,
        requester: ClaimRequester,
        settings: ScheddSettings,
        more: Callable[[], Ad] = dict,
        *,
        joined: bool = False,
    ) -> None:
        """
        `more`: what else the schedd says of itself in its ad; `joined`: its access point has joined by a token, and may
        write below its own name only.
        """
        self._joined = joined
        self._more = more
        self._facts: Final = daemon_facts("schedd", queue.schedd, settings.nats_url)
        self._demand = ResourceRequests(queue, requester)
        self._flocked: Counter[str] = Counter()
        """Jobs of each submitter that run in other pools, as of the last publication."""
        self._bus = bus
        self._subjects = subjects
        self._queue = queue
        self._requester = requester
        self._settings = settings
        self._urgent = asyncio.Event()
        self._stale = asyncio.Event()
        self._published: dict[str, bytes] = {}
        self._refreshed = float("-inf")
        self._started = int(time.time())
        self._duty = DutyCycle()
        self._numbers: Counter[str] = Counter()
        """Updates of each ad so far; they go on when an ad comes back."""
        bus.on_return(self._repeat)

    def on_event(self, event: Event) -> None:
        """Something was recorded."""
        self._stale.set()
        if type(event) in _URGENT:
            self._urgent.set()

    def wake(self) -> None:
        """There is work that was not shown before."""
        self._stale.set()
        self._urgent.set()

    def _repeat(self) -> None:
        """The bus came back, perhaps without what was on it: ads are kept in its memory only."""
        self._refreshed = float("-inf")
        self._stale.set()
        self._urgent.set()

    async def publish_ads(self) -> None:
        """Publish what has changed, and everything again each interval; never returns."""
        while True:
            now = time.monotonic()
            everything = now - self._refreshed >= self._settings.ad_interval
            if everything:
                self._refreshed = now
            self._urgent.clear()
            self._stale.clear()
            try:
                await self._publish(everything=everything)
            except BusError as error:  # an ad is repeated anyway
                _log.warning("ads not published", extra={"cause": str(error)})
            await asyncio.sleep(self._settings.ad_floor)
            await self._something_new(self._refreshed + self._settings.ad_interval - now)

    async def _something_new(self, limit: float) -> None:
        try:
            async with asyncio.timeout(max(limit, 0.0)):
                await self._stale.wait()
                async with asyncio.timeout(_SLOW):
                    await self._urgent.wait()
        except TimeoutError:
            pass  # the slow news, or the time for a full repeat, has come

    async def _publish(self, *, everything: bool) -> None:
        self._flocked = flocked(self._queue)
        for submitter in list(self._queue.tally.by_submitter):
            key = self._key(submitter)
            ad = self.submitter_ad(submitter)
            if ad is None:
                self._queue.tally.forget(submitter)
                self._demand.forget(submitter)
                self._published.pop(key, None)
                await self._bus.delete(self._subjects.ads, key)
            else:
                await self._put(key, ad, everything=everything)
        await self._put(ad_key("Scheduler", self._queue.schedd), self.scheduler_ad(), everything=everything)

    def _key(self, submitter: str) -> str:
        own = self._queue.schedd
        return submitters_key(own, submitter) if self._joined else ad_key("Submitter", f"{submitter}@{own}")

    async def _put(self, key: str, ad: Ad | SubmitterAd, *, everything: bool) -> None:
        value = _encode(ad)
        if everything or self._published.get(key) != value:
            self._published[key] = value
            self._numbers[key] += 1
            try:
                await self._bus.put(self._subjects.ads, key, _encode(self._numbered(key, ad)))
            except BusError as error:  # too large, for example: the others are published nevertheless
                _log.warning("ad not published", extra={"key": key, "cause": str(error)})

    def _numbered(self, key: str, ad: Ad | SubmitterAd) -> Ad | SubmitterAd:
        number = self._numbers[key]
        if isinstance(ad, SubmitterAd):
            return msgspec.structs.replace(ad, started=self._started, sequence=number)
        return ad | {"DaemonStartTime": self._started, "UpdateSequenceNumber": number} | self._duty.facts()

    def submitter_ad(self, submitter: str) -> SubmitterAd | None:
        """The demand of a submitter; None if it has no jobs here."""
        tally = self._queue.tally.by_submitter[submitter]
        if not any(tally.values()):
            return None
        flocked = self._flocked[submitter]
        elsewhere = self._queue.attendance.of(submitter) + flocked
        return SubmitterAd(
            name=submitter,
            schedd=self._queue.schedd,
            idle=tally.get("idle", 0),
            running=max(tally.get("running", 0) - elsewhere, 0),
            flocked=flocked,
            flocks=bool(self._settings.flock_to),
            held=tally.get("held", 0),
            requests=self._demand.requests(submitter),
            machine=str(self._facts["Machine"]),
            limits=added(
                self._queue.claim_use.limits.of(submitter), self._requester.asked.limits.of(submitter)
            ),
            cycle=self._requester.cycles.get(submitter, 0),
            claims=max(self._requester.count(submitter) - elsewhere, 0),
        )

    def scheduler_ad(self) -> Ad:
        """The schedd's own ad."""
        total = {
            s: sum(t.get(s, 0) for t in self._queue.tally.by_submitter.values())
            for s in ("idle", "running", "held", "removed")
        }
        return {
            "MyType": "Scheduler",
            "Name": self._queue.schedd,
            "NumUsers": len(self._queue.tally.by_submitter),
            "TotalIdleJobs": total["idle"],
            "TotalRunningJobs": total["running"],
            "TotalFlockedJobs": self._flocked.total(),
            "TotalHeldJobs": total["held"],
            "TotalRemovedJobs": total["removed"],
            "NumClaims": len(self._queue.claims),
            **totals(self._queue),
            **(entrypoint_facts(self._queue, self._settings.vos) if self._settings.entrypoint else {}),
            **self._facts,
            **self._more(),
        }

    async def withdraw(self) -> None:
        """Take all ads back: the schedd stops."""
        for key in self._published:
            await self._bus.delete(self._subjects.ads, key)


def entrypoint_facts(queue: Queue, vos: Iterable[str]) -> Ad:
    """What the ad of an entrypoint's schedd says besides, for a registry of entrypoints."""
    return {
        "ComputeEntrypoint": True,
        "EntrypointVOs": ",".join(sorted(vos)),
        "TotalRoutedJobs": sum(tally.jobs for tally in queue.routing.routes.values()),
        "TotalUnroutedJobs": len(queue.routing.awaiting),
    }
