"""
The frames of one shard as they are committed, with the certainty that a missed one is noticed.

The live feed is core NATS: a frame that comes while the connection is down is lost.  Frames are numbered without gaps,
so the next one shows the gap; and if none comes for a while, the reader is notified to query by itself.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import msgspec

from kettle_wire import frames
from kettle_wire.frames import Frame, Hollow

_WAITING: Final = 2048
"""Frames that wait for one reader."""
_WAITING_EVENTS: Final = 50_000
"""Events in them."""


class Tail:
    """One reader's view of a feed."""

    def __init__(self) -> None:
        self._frames: asyncio.Queue[Frame | Hollow | None] = asyncio.Queue(_WAITING)
        self._events = 0
        self._last: int | None = None
        self._dropped = False

    def put(self, frame: Frame | Hollow | None) -> None:
        """
        Add a frame, or None where some may have been lost; a reader that is too slow is notified to query again.
        """
        events = len(frame.entries) if frame is not None else 0
        if self._frames.full() or self._events + events > _WAITING_EVENTS:
            self._dropped = True
            return
        self._events += events
        self._frames.put_nowait(frame)

    async def next(self, quiet: float) -> tuple[Frame | None, bool]:
        """
        The next frame, and whether the reader must look for itself what it has missed.

        No frame within `quiet` seconds is such a case too, and so is one that came without its entries.
        """
        try:
            async with asyncio.timeout(quiet):
                frame = await self._frames.get()
        except TimeoutError:
            frame = None
        if frame is None:
            return None, True
        self._events -= len(frame.entries)
        missed = self._dropped or (self._last is not None and frame.number > self._last + 1)
        self._last = frame.number
        if self._frames.empty():
            self._dropped = False
        if isinstance(frame, Hollow):
            return None, True
        return frame, missed


class Feed:
    """The listener of one shard, for any number of readers."""

    def __init__(self) -> None:
        self._tails: set[Tail] = set()

    def deliver(self, _subject: str, data: bytes) -> None:
        """What the bus calls for each message."""
        if not self._tails:
            return
        try:
            frame = frames.decode(data)
        except msgspec.MsgspecError:
            return  # not a frame: the gap in the numbers will show that something is missing
        for tail in self._tails:
            tail.put(frame)

    def interrupted(self) -> None:
        """What the bus calls when the connection is back after a loss."""
        for tail in self._tails:
            tail.put(None)

    @contextmanager
    def tail(self) -> Generator[Tail, None, None]:
        """A reader, from now on."""
        tail = Tail()
        self._tails.add(tail)
        try:
            yield tail
        finally:
            self._tails.discard(tail)
