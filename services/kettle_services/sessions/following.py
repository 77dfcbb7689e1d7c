"""Follows the schedd of the sessions by its frames, while there is a session that is not over."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from kettle.bus.ports import Bus
from kettle.eventsourcing.replay import head_frame, missing_frames
from kettle_services.sessions.domain.reading import Reader
from kettle_services.sessions.engine import Engine
from kettle_wire import frames
from kettle_wire.frames import Frame, Hollow
from kettle_wire.subjects import Subjects

FRAMES: Final = 64
_log: Final = logging.getLogger(__name__)


class Following:
    """
    Reads the schedd's frames while it is needed, and none otherwise: most pools have no sessions most of the time.
    """

    def __init__(self, bus: Bus, subjects: Subjects, schedd: str, engine: Engine) -> None:
        self._bus = bus
        self._subjects = subjects
        self._shard = f"schedd.{schedd}"
        self._engine = engine
        self._reader = Reader(engine.sessions)
        self._frame: int | None = min((each.frame for each in engine.living.values()), default=None)
        """The last frame that was read; None: none is."""

    async def place(self) -> int:
        """
        From which frame on a session that begins now is followed: everything of it comes later, and is read.
        """
        head = await head_frame(self._bus, self._shard)
        return head if self._frame is None else min(head, self._frame)

    def session_of(self, cluster: int) -> str:
        """The session of a cluster that is not over; empty: it is of none."""
        return self._reader.cluster_of(cluster)

    async def follow(self) -> None:
        """Follow whenever there is something to follow; never returns."""
        while True:
            self._engine.begun.clear()
            living = self._engine.living
            if living:
                if self._frame is None:
                    self._frame = min(each.frame for each in living.values())
                await self._follow_while_needed(self._frame)
            await self._engine.begun.wait()

    async def _follow_while_needed(self, after: int) -> None:
        _log.info("follows %s from frame %s on", self._shard, after)
        reading = self._bus.consume(
            self._subjects.event_stream(self._shard),
            "",
            subject=self._subjects.events(self._shard),
            batch=FRAMES,
            after=after,
            ephemeral=True,
        )
        async with aclosing(reading) as batches:
            async for batch in batches:
                for message in batch.messages:
                    async for frame in self._frames(frames.decode(message.data)):
                        self.take(frame)
                if not self._engine.living:
                    self._frame = None
                    return

    async def _frames(self, arrived: Frame | Hollow) -> AsyncGenerator[Frame]:
        """
        The frames up to one that arrived, without a gap; what the bus does not have comes from the schedd.
        """
        read = self._frame
        if read is None or arrived.number <= read:
            return
        if isinstance(arrived, Frame) and arrived.number == read + 1:
            yield arrived
            return
        async for frame in missing_frames(self._bus, self._shard, read, arrived.number):
            yield frame

    def take(self, frame: Frame) -> None:
        """Record what a frame says of sessions, and what follows."""
        self._frame = frame.number
        for session, facts in self._reader.read(frame).items():
            self._engine.settle(session, facts)
