"""Whether what the interface needs is there."""

from collections.abc import Sequence

from aiohttp import web

from kettle.bus.ports import Bus, BusError
from kettle_services.gateway.prominence.application import OpenRoute, reply
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.job_tables import JobTables


class Health:
    """Looks, in PROMINENCE's words for its parts."""

    def __init__(self, bus: Bus, collector: str, tables: JobTables) -> None:
        self._bus = bus
        self._collector = collector
        self._tables = tables

    def routes(self) -> Sequence[OpenRoute]:
        """What is asked."""
        return (OpenRoute("GET", "/health", self.get),)

    async def get(self, _request: web.Request) -> web.StreamResponse:
        """Nothing, or what is wrong."""
        errors = [*await self._of_the_pool(), *([] if await self._tables.ready() else ["HTCONDOR_HISTORY"])]
        return reply({"errors": ",".join(errors)}, 409) if errors else web.Response(status=204)

    async def _of_the_pool(self) -> list[str]:
        try:
            schedulers = await all_ads(self._bus, self._collector, "Scheduler", fields=["MyType"])
        except BusError:
            return ["HTCONDOR_COLLECTOR"]
        return [] if schedulers else ["HTCONDOR_SCHEDD"]
