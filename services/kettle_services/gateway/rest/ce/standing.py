"""
How an entrypoint stands. Jobs are counted for everybody who asks within some seconds, from what of their ads is nobody's secret.
"""

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from kettle.bus.ports import Bus
from kettle.jobs.private_attributes import for_others
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.ce import counting
from kettle_services.gateway.rest.ce.counting import COUNTED, TABLE, Counts
from kettle_services.gateway.rest.ce.following import ROUTED
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import QUERY_JOBS, QueryJobs, Select
from kettle_wire.rest.entrypoint_status import GetStanding, ListAttributes, ScheddStanding, Standing
from kettle_wire.rest.problem import ProblemCode

EVERY_S: Final = 10.0
_PAGE: Final = 2 << 20
_MOST: Final = 10_000
"""Jobs in one answer with their ads."""
_SCHEDD: Final = "/query/schedd"

View = Callable[[Counts], Any]


class JobCounting:
    """Counts the jobs of access points, each not more often than it is worth."""

    def __init__(self, bus: Bus, *, every: float = EVERY_S) -> None:
        self._bus: Final = bus
        self._every: Final = every
        self._known: dict[str, Counts] = {}
        self._locks: Final = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def of(self, schedd: str) -> Counts:
        """The counts of an access point that there is; raises BusError."""
        async with self._locks[schedd]:
            known, now = self._known.get(schedd), time.time()
            if known is None or not 0 <= now - known.at < self._every:
                known = self._known[schedd] = Counts.of(await self._ads(schedd), now)
            return known

    async def _ads(self, schedd: str) -> list[Ad]:
        request = QueryJobs(select=Select(constraint=ROUTED), projection=list(COUNTED), page=_PAGE)
        found: list[Ad] = []
        while True:
            page = await self._bus.call(QUERY_JOBS, schedd, request)
            found += page.jobs
            if page.more is None:
                return found
            request = msgspec.structs.replace(request, after=page.more)


class StandingOfEntrypoints:
    """Answers with it."""

    def __init__(
        self,
        bus: Bus,
        collector: str,
        people: PersonConnections,
        access_points: AccessPoints,
    ) -> None:
        """`collector`: its name."""
        self._bus: Final = bus
        self._collector: Final = collector
        self._people: Final = people
        self._access_points: Final = access_points
        self._counting: Final = JobCounting(bus)

    async def standing(self, asked: Asked) -> Answer:
        """In our own form."""
        counts = await self._counting.of(await self._schedd(asked))
        ads = await self._schedds()
        reply = Standing(
            counted=datetime.fromtimestamp(counts.at, UTC),
            totals=counts.totals,
            vos=counts.vos,
            pilots=counts.pilots,
            schedds={name: ScheddStanding(status=counting.status_of(ad)) for name, ad in ads.items()},
        )
        return _tagged(asked, reply)

    def counted(self, view: View) -> Callable[[Asked], Awaitable[Answer]]:
        """Answers with the counts as CEView has them."""

        async def answer(asked: Asked) -> Answer:
            return _tagged(asked, view(await self._counting.of(await self._schedd(asked))))

        return answer

    async def schedds(self, asked: Asked) -> Answer:
        """The ads of all access points."""
        ads = await self._schedds()
        return _tagged(asked, {name: counting.view_ad(ad) for name, ad in ads.items()})

    async def schedd(self, asked: Asked) -> Answer:
        """The ad of one."""
        return _tagged(asked, counting.view_ad(await self._ad(asked)))

    async def statuses(self, asked: Asked) -> Answer:
        """How all access points are."""
        ads = await self._schedds()
        return _tagged(asked, {name: {"status": counting.status_of(ad)} for name, ad in ads.items()})

    async def status(self, asked: Asked) -> Answer:
        """How one is."""
        return _tagged(asked, {"status": counting.status_of(await self._ad(asked))})

    async def table(self, asked: Asked) -> Answer:
        """Which of their attributes are worth a column."""
        return _tagged(asked, TABLE)

    async def jobs(self, asked: Asked) -> Answer:
        """The ads of jobs in the queue, as far as they are everybody's to know."""
        parameters: ListAttributes = asked.parameters
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            ads = await there.jobs(
                Select(constraint=parameters.constraint), projection=parameters.projection, limit=_MOST + 1
            )
        if len(ads) > _MOST:
            raise refused_field(
                "/query/constraint",
                f"there are more than {_MOST:,} such jobs: ask for fewer with a constraint",
                code=ProblemCode.TOO_SLOW,
                status=422,
            )
        return _tagged(asked, [counting.view_ad(for_others(ad)) for ad in ads])

    async def _schedd(self, asked: Asked) -> str:
        """The name of the access point that is meant; raises RequestRefused."""
        parameters: GetStanding = asked.parameters
        async with self._people.of(asked.person) as client:
            return (await self._access_points.at(client, parameters.schedd, _SCHEDD)).pool.schedd

    async def _schedds(self) -> Mapping[str, Ad]:
        ads = await all_ads(self._bus, self._collector, "Scheduler")
        return {str(ad.get("Name", "")): for_others(ad) for ad in ads}

    async def _ad(self, asked: Asked) -> Ad:
        name = await self._schedd(asked)
        ad = (await self._schedds()).get(name)
        if ad is None:
            raise RequestRefused(
                404, ProblemCode.NOT_FOUND, f"the collector has no ad of the access point {name} now"
            )
        return ad


def _tagged(asked: Asked, reply: Any) -> Answer:
    """An answer that is not sent to who has it; raises NotModified."""
    etag = f'"{hashlib.blake2b(msgspec.json.encode(reply), digest_size=12).hexdigest()}"'
    asked.require_changed(etag)
    return Answer(reply, etag)
