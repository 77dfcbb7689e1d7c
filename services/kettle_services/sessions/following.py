"""Follows the schedd of the sessions by its frames, while there is a session that is not over."""

import logging
from contextlib import aclosing
from typing import Final

from kettle.bus.ports import Bus
from kettle.eventsourcing.replay import followed_frames, head_frame
from kettle_services.sessions.domain.reading import Reader
from kettle_services.sessions.engine import Engine
from kettle_wire.frames import Frame
from kettle_wire.subjects import Subjects

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
        async with aclosing(followed_frames(self._bus, self._subjects, self._shard, after=after)) as frames:
            async for frame in frames:
                self.take(frame)
                if not self._engine.living:
                    self._frame = None
                    return

    def take(self, frame: Frame) -> None:
        """Record what a frame says of sessions, and what follows."""
        self._frame = frame.number
        for session, facts in self._reader.read(frame).items():
            self._engine.settle(session, facts)
