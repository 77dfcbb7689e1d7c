"""Whose a job is: from memory, or from its schedd."""

import logging
from collections.abc import Iterable
from typing import Final

from kettle.bus.ports import Bus, RefusedError
from kettle.bus.retryable import unheard
from kettle.retry.loop import retry
from kettle_services.gateway.domain.cloud_events import SCHEDD
from kettle_services.gateway.domain.owner_cache import Owners
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import QUERY_EVENTS, QUERY_JOBS, QueryEvents, QueryJobs, Select
from kettle_wire.events import ClusterSubmitted, decode
from kettle_wire.jobs import JobId

NOBODY: Final = ""
"""The owner of jobs of a cluster that its schedd does not know."""

_log: Final = logging.getLogger(__name__)


class Registry:
    """Answers for all shards of one gateway."""

    def __init__(self, bus: Bus, owners: Owners) -> None:
        self._bus = bus
        self._owners = owners

    def submitted(self, shard: str, clusters: Iterable[tuple[int, str]]) -> None:
        """Take note of submissions."""
        for cluster, owner in clusters:
            self._owners.put(shard, cluster, owner)

    async def owner(self, shard: str, cluster: int) -> str:
        """
        Whose a cluster is. Waits for the schedd as long as it takes: events of a job wait with it, others do not.
        """
        owner = self._owners.get(shard, cluster)
        if owner is None:
            owner = await self._asked(shard.removeprefix(SCHEDD), cluster)
            self._owners.put(shard, cluster, owner)
        return owner

    async def _asked(self, schedd: str, cluster: int) -> str:
        async def ask() -> str:
            return await self._in_queue(schedd, cluster) or await self._in_record(schedd, cluster)

        def failed(error: Exception, pause: float) -> None:
            del pause
            _log.warning("schedd %s does not say yet whose cluster %s is: %s", schedd, cluster, error)

        try:
            return await retry(ask, retryable=_passes, failed=failed)
        except RefusedError as error:
            if error.code != RefusalCode.NOT_FOUND:
                raise
            _log.warning("schedd %s does not know cluster %s", schedd, cluster)
            return NOBODY

    async def _in_queue(self, schedd: str, cluster: int) -> str:
        """While one of its jobs is in the queue: a small question with a small answer."""
        query = QueryJobs(select=Select(clusters=[cluster]), projection=["Owner"], limit=1)
        for ad in (await self._bus.call(QUERY_JOBS, schedd, query)).jobs:
            owner = ad.get("Owner")
            if isinstance(owner, str):
                return owner
        return ""

    async def _in_record(self, schedd: str, cluster: int) -> str:
        record = await self._bus.call(QUERY_EVENTS, schedd, QueryEvents(job=JobId(cluster, 0)))
        for recorded in record.events:
            event = decode(recorded.data)
            if isinstance(event, ClusterSubmitted):
                return event.owner
        return NOBODY


def _passes(error: Exception) -> bool:
    """Only these two refusals are answers; any other may be gone with the next state of the schedd."""
    if isinstance(error, RefusedError):
        return error.code not in {RefusalCode.NOT_FOUND, RefusalCode.NOT_PERMITTED}
    return unheard(error)
