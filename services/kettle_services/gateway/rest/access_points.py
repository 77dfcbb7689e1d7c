"""The access points that requests name."""

from kettle.bus.ports import Bus
from kettle.client import Client
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.refusals import refused_field
from kettle_wire.rest.problem import ProblemCode


class AccessPoints:
    """Knows them by the ads that they send to the collector."""

    def __init__(self, bus: Bus, collector: str) -> None:
        """`collector`: its name."""
        self._bus = bus
        self._collector = collector

    async def at(self, client: Client, name: str, pointer: str) -> Client:
        """
        A client for the queue of one; empty: the pool's own, which is not looked for.

        Raises RequestRefused: there is none of this name. `pointer`: where the name stands.
        """
        if not name or name == client.pool.schedd:
            return client
        ads = await all_ads(self._bus, self._collector, "Scheduler", fields=["MyType"])
        known = {str(ad.get("Name", "")) for ad in ads}
        if name not in known:
            raise refused_field(
                pointer,
                f"there is no access point {name}{did_you_mean(name, known)}",
                code=ProblemCode.NOT_FOUND,
                status=404,
            )
        return client.at(name)
