"""Ads of jobs in the queue that are more than the bus carries in one answer."""

from collections.abc import Awaitable, Callable

import msgspec

from kettle.client.errors import CommandRefusedError
from kettle.client.jobs.status import id_of
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.queue import JobAds, QueryJobs, Select
from kettle_wire.jobs import JobId

Ask = Callable[[QueryJobs], Awaitable[JobAds]]


async def query_in_parts(ask: Ask, request: QueryJobs) -> JobAds:
    """What the schedd answers to a request of which it has said that the answer is too large for one."""
    found = await ask(msgspec.structs.replace(request, projection=["ClusterId", "ProcId"]))
    ads = await _in_parts(ask, request, [id_of(ad) for ad in found.jobs])
    return msgspec.structs.replace(found, jobs=ads)


async def _in_parts(ask: Ask, request: QueryJobs, ids: list[JobId]) -> list[Ad]:
    """Halves, until they fit."""
    middle = len(ids) // 2
    found: list[Ad] = []
    for part in (ids[:middle], ids[middle:]):
        if not part:
            continue  # an empty list of jobs would mean all of them
        select = Select(jobs=part, constraint=request.select.constraint)
        try:
            found += (await ask(msgspec.structs.replace(request, select=select, limit=0))).jobs
        except CommandRefusedError as error:
            if error.code != RefusalCode.TOO_LARGE or len(part) == 1:
                raise
            found += await _in_parts(ask, request, part)
    return found
