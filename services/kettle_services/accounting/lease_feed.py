"""
Feeds an accounting store with what leased machines have cost: a record of each one that is gone, from the log of the scaler.

How far that is stands beside the positions of the queues: records that were accepted and not yet noted are sent again, with the same id.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from kettle.eventsourcing.log import Log, LogUnavailableError
from kettle.projections.accounting_documents import Record
from kettle.projections.lease_documents import lease_record
from kettle_services.accounting.adstash import Feed
from kettle_wire.events import decode
from kettle_wire.events.lease import LeaseGone
from kettle_wire.frames import Frame

_SHARD: Final = "scaler"
_GONE: Final = LeaseGone.__struct_config__.tag
_FRAMES: Final = 500
"""So many are looked through before what was found is sent and noted."""
_log: Final = logging.getLogger(__name__)


class LeaseFeed:
    """To one store."""

    def __init__(self, log: Log, feed: Feed, index: str, *, poll: float) -> None:
        """`poll`: seconds between two looks at the log."""
        self._log = log
        self._feed = feed
        self._index = index
        self._poll = poll

    async def run(self) -> None:
        """Send records as machines go; never returns."""
        while True:
            try:
                while await self._deliver():
                    pass
            except LogUnavailableError as error:
                _log.warning("the accounting store waits for the database", extra={"cause": str(error)})
            await asyncio.sleep(self._poll)

    async def _deliver(self) -> bool:
        """Send what is in the next frames; whether there were so many that there may be more."""
        taken = await self._feed.taken(_SHARD, self._index)
        frames = [frame async for frame in self._log.read(_SHARD, after=taken, until=taken + _FRAMES)]
        if not frames:
            return False
        records = [await self._record(stream) for stream in _ended(frames)]
        if records:
            await self._feed.send(self._index, records)
        await self._feed.note(_SHARD, self._index, frames[-1].number)
        return len(frames) == _FRAMES

    async def _record(self, stream: str) -> Record:
        told = [
            (frame.at // 1_000_000, decode(entry.data))
            for frame, _ in await self._log.stream(_SHARD, stream)
            for entry in frame.entries
        ]
        return lease_record(told)


def _ended(frames: Iterable[Frame]) -> Iterable[str]:
    return (entry.stream for frame in frames for entry in frame.entries if entry.type == _GONE)
