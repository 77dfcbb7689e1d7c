"""One session of the fan-out: from where the stream ends until the first doubt."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError
from kettle.faults import fault_point
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_services.gateway.domain.batch import Batch, Mark, Piece, note_of
from kettle_services.gateway.domain.cloud_events import Publisher, is_published
from kettle_services.gateway.job_owners import Registry
from kettle_services.gateway.metrics import Metrics
from kettle_services.gateway.pending_messages import PendingMessages
from kettle_services.gateway.shard_follower import Follower
from kettle_wire.subjects import Subjects

IN_FLIGHT: Final = 4
"""Batches that are sent and not yet confirmed."""
SELDOM: Final = 5
"""The longest time between looks for new shards, in times of that between the first ones."""
STORED_S: Final = 10.0
"""Deadline of a batch; after as long the server, too, gives up one that was begun and not ended."""

_log: Final = logging.getLogger(__name__)


class Parts(msgspec.Struct, frozen=True):
    """What all sessions of one gateway share."""

    bus: Bus
    subjects: Subjects
    registry: Registry
    publisher: Publisher
    tally: Metrics
    discovery: float
    """Seconds between looks for new shards."""


class Session:
    """Begins after sequence `last` of the stream, in which each shard has been published up to its mark."""

    def __init__(self, parts: Parts, last: int, marks: Mapping[str, Mark]) -> None:
        self._parts = parts
        self._bus = parts.bus
        self._last = last
        self._sent = dict(marks)
        self._handed = dict(marks)
        """
        How far each shard has been handed on by its follower, which begins there again after trouble of its own.
        """
        self._outbox = PendingMessages()
        self._in_flight: asyncio.Queue[tuple[Awaitable[int], Batch]] = asyncio.Queue(IN_FLIGHT)

    async def run(self, began: Callable[[], None]) -> None:
        """Until something fails; `began` is called when the shards are known that are there."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._discover(tasks, began), name="discover")
            tasks.create_task(self._send(tasks), name="send")
            tasks.create_task(self._settle(), name="settle")

    async def _discover(self, tasks: asyncio.TaskGroup, began: Callable[[], None]) -> None:
        subjects = self._parts.subjects
        known: set[str] = set()
        pause = self._parts.discovery
        while True:
            found = await self._bus.stored_subjects(subjects.events_all)
            new = set(filter(is_published, map(subjects.shard_of, found))) - known
            for shard in sorted(new):
                known.add(shard)
                tasks.create_task(self._follow(shard), name=f"follow-{shard}")
            began()
            # Services of a pool come together: while no more of them come, one looks less often.
            pause = self._parts.discovery if new else min(2 * pause, SELDOM * self._parts.discovery)
            await asyncio.sleep(pause)

    async def _follow(self, shard: str) -> None:
        """
        Follow one shard without end. Its failures, such as a missing permission or an owner without the needed frames,
        do not affect other shards.
        """
        parts = self._parts
        follower = Follower(self._bus, parts.subjects, shard, parts.registry, parts.publisher)
        waits = Waits(Backoff(first=1.0, longest=30.0))
        while True:
            try:
                await follower.follow(self._handed.get(shard), partial(self._hand_on, shard))
            except BusError as error:
                _log.error("the events of %s are not published now: %s", shard, error)
            await waits.wait()

    async def _hand_on(self, shard: str, piece: Piece) -> None:
        await self._outbox.put(piece)
        self._handed[shard] = piece.mark

    async def _send(self, tasks: asyncio.TaskGroup) -> None:
        """
        Batch after batch, several under way; the server takes them in the order in which they are sent, or not.
        """
        while True:
            batch = await self._outbox.take()
            self._sent |= batch.marks
            sending = self._bus.append_together(
                batch.posts, expect_last=self._last, note=note_of(self._sent), deadline=STORED_S
            )
            self._last += len(batch.posts)
            await self._in_flight.put((tasks.create_task(sending, name="store"), batch))

    async def _settle(self) -> None:
        """Count what is stored, in order."""
        while True:
            stored, batch = await self._in_flight.get()
            fault_point("gateway.sent")
            await stored
            fault_point("gateway.stored")
            self._parts.tally.add(batch)
