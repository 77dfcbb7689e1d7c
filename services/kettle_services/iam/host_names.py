"""
Names that machines may join under: not those of hosts that are in the pool without having joined, for commands to a host and its
ads stand below its name.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from kettle.bus.ports import Bus, BusError
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_wire.commands.collector import QUERY_ADS, QueryAds
from kettle_wire.events.iam import Joins

_DEADLINE_S: Final = 5.0


class HostNames:
    """The names of the hosts whose ads a collector has, and of the queues that the pool's log has."""

    def __init__(self, bus: Bus, collector: str, *, has_shard: Callable[[str], Awaitable[bool]]) -> None:
        """
        `has_shard`: whether the pool's database has had an owner of this shard, which may be away for long.
        """
        self._bus = bus
        self._collector = collector
        self._has_shard = has_shard

    async def require_free(self, name: str, joins: Joins) -> None:
        """
        Raise Denied if a host of the pool has the name, or a queue that of an access point, or nobody can say.
        """
        if joins == "schedd" and await self._has_shard(f"schedd.{name}"):
            raise _taken(name, joins)
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
            raise _taken(name, joins)


def _taken(name: str, joins: Joins) -> Denied:
    return Denied(
        Code.JOIN_NAME_TAKEN,
        f"{name} is the name of a host{' or queue' if joins == 'schedd' else ''} of this pool: join under another name",
        status=409,
    )
