"""
Names that machines may join under: not those of hosts that are in the pool without having joined, for commands to a host and its
ads stand below its name.
"""

from typing import Final

from kettle.bus.ports import Bus, BusError
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_wire.commands.collector import QUERY_ADS, QueryAds
from kettle_wire.events.iam import Joins

_DEADLINE_S: Final = 5.0


class HostNames:
    """The names of the hosts whose ads a collector has."""

    def __init__(self, bus: Bus, collector: str) -> None:
        self._bus = bus
        self._collector = collector

    async def require_free(self, name: str, joins: Joins) -> None:
        """
        Raise Denied if a host of the pool has the name, or a queue that of an access point, or nobody can say.
        """
        from kettle.classad.printing import quoted_string  # iam evaluates no expressions otherwise

        own = quoted_string(name)
        kinds = ["DaemonMaster", "StartDaemon", *(["Scheduler"] if joins == "schedd" else [])]
        of_kind = " || ".join(f'MyType == "{kind}"' for kind in kinds)
        query = QueryAds(
            constraint=f"Machine == {own} || Name == {own} && ({of_kind})",
            projection=["Name"],
            limit=1,
        )
        try:
            found = await self._bus.call(QUERY_ADS, self._collector, query, deadline=_DEADLINE_S)
        except BusError as error:
            raise Denied(
                Code.JOIN_CLOSED,
                f"no collector says whether a host of the pool is named {name} ({error}): join again with the same token later",
                status=503,
            ) from error
        if found.ads:
            raise Denied(
                Code.JOIN_NAME_TAKEN,
                f"{name} is the name of a host{' or queue' if joins == 'schedd' else ''} of this pool: join under another name",
                status=409,
            )
