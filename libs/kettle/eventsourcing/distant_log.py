"""Shards whose database is elsewhere: read by asking their owners, over the bus."""

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Final

from kettle.bus.ports import Bus, BusError
from kettle.eventsourcing.log import LogUnavailableError, Tenure
from kettle.eventsourcing.replay import missing_frames
from kettle_wire.commands.log import LARGEST_NUMBER, READ_FRAMES, ReadFrames
from kettle_wire.frames import Frame

_ANSWER_S: Final = 2.0

_log: Final = logging.getLogger(__name__)


class DistantLog:
    """The logs of some shards, each of which its owner reads to us."""

    def __init__(self, bus: Bus, shards: Sequence[str]) -> None:
        self._bus = bus
        self._shards = shards

    async def tenure(self, shard: str) -> Tenure:
        """See `ReadableLog`; LogUnavailableError if its owner does not answer."""
        try:
            answer = await self._bus.call(
                READ_FRAMES, shard, ReadFrames(after=LARGEST_NUMBER), deadline=_ANSWER_S
            )
        except BusError as error:
            raise LogUnavailableError(f"the owner of {shard} does not answer: {error}") from error
        return Tenure(shard=shard, epoch=0, owner="", head=0, frame=answer.head)

    async def shards(self) -> list[Tenure]:
        """See `ReadableLog`; those whose owner answers."""
        found: list[Tenure] = []
        for shard in self._shards:
            try:
                found.append(await self.tenure(shard))
            except LogUnavailableError as error:
                _log.info("%s", error)
        return found

    async def read(self, shard: str, *, after: int = 0, until: int | None = None) -> AsyncIterator[Frame]:
        """See `ReadableLog`; waits for the owner."""
        end = (await self.tenure(shard)).frame if until is None else until
        async for frame in missing_frames(self._bus, shard, after, end):
            yield frame
