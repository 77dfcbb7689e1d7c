"""Follows the frames of one shard and hands on what they say, without a gap and from where it was left."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from kettle.bus.batching import BatchingDelay
from kettle.bus.ports import Bus
from kettle.eventsourcing.replay import missing_frames
from kettle_services.gateway.domain.batch import Mark, Piece, pieces
from kettle_services.gateway.domain.cloud_events import DecodedEvent, Publisher, owners_in, read
from kettle_services.gateway.job_owners import NOBODY, Registry
from kettle_wire import frames
from kettle_wire.frames import Frame, Hollow
from kettle_wire.subjects import Subjects

FRAMES: Final = 64
"""Frames that are fetched at once; they have up to some megabytes each."""
GATHER_S: Final = 0.05
"""
How long an event may wait for others that are stored with it: the stream takes a batch for the price of one.
"""

_log: Final = logging.getLogger(__name__)

HandOn = Callable[[Piece], Awaitable[None]]
"""Takes pieces in order, and waits when there are too many."""


class Follower:
    """One shard. `mark` is how far it has been published; None: begin with what the bus has."""

    def __init__(
        self, bus: Bus, subjects: Subjects, shard: str, registry: Registry, publisher: Publisher
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._shard = shard
        self._registry = registry
        self._publisher = publisher

    async def follow(self, mark: Mark | None, hand_on: HandOn) -> None:
        """Follow without end. Raises RefusedError if we may not read this shard."""
        source, subject = self._subjects.event_stream(self._shard), self._subjects.events(self._shard)
        # The frame of the mark itself comes again: some of its events may not be published yet. The server keeps no
        # position for us: the mark is the only one, and two gateways would take a durable consumer from each other.
        after = max(0, mark.frame - 1) if mark else 0
        reading = self._bus.consume(
            source,
            "",
            subject=subject,
            batch=FRAMES,
            after=after,
            ephemeral=True,
            gather=BatchingDelay(GATHER_S),
        )
        async with aclosing(reading) as batches:
            async for batch in batches:
                for message in batch.messages:
                    arrived = frames.decode(message.data)
                    mark = self._valid(mark, arrived)
                    async for frame in self._frames(arrived, mark):
                        mark = await self._tell(frame, mark, hand_on)

    def _valid(self, mark: Mark | None, frame: Frame | Hollow) -> Mark | None:
        """
        The mark, unless its event is not in the log any more: a later epoch records only behind what is there.
        """
        if mark is None or frame.epoch <= mark.epoch or frame.position > mark.position:
            return mark
        _log.warning(
            "the log of %s was restored from an older copy: what it records from frame %s on is told, although "
            "events with the same ids were told before",
            self._shard,
            frame.number,
        )
        return None

    async def _frames(self, arrived: Frame | Hollow, mark: Mark | None) -> AsyncGenerator[Frame, None]:
        """
        The frames to be published up to one that arrived; frames that the bus does not have come from the owner.
        """
        if mark is not None and arrived.head <= mark.position:
            return
        gap = mark is not None and arrived.position > mark.position + 1
        if gap:
            _log.warning("the bus left a gap in %s before frame %s", self._shard, arrived.number)
        if isinstance(arrived, Frame) and not gap:
            yield arrived
            return
        after = arrived.number - 1 if mark is None else mark.frame - 1
        async for frame in missing_frames(self._bus, self._shard, after, arrived.number):
            yield frame

    async def _tell(self, frame: Frame, mark: Mark | None, hand_on: HandOn) -> Mark | None:
        mark = self._valid(mark, frame)
        told = read(frame, after=mark.position if mark else 0)
        if not told:
            return mark
        self._registry.submitted(self._shard, owners_in(told))
        posts = [(one.position, self._publisher.post(frame, one, await self._owner(one))) for one in told]
        for piece in pieces(self._shard, frame.epoch, frame.number, posts, at=frame.at):
            await hand_on(piece)
        return Mark(frame.number, frame.head, frame.epoch)

    async def _owner(self, told: DecodedEvent) -> str:
        return NOBODY if told.cluster is None else await self._registry.owner(self._shard, told.cluster)
