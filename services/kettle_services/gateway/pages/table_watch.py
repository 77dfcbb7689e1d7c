"""
Tells live parts of pages that the tables of jobs have something new for them.

One loop looks at how far the tables are, for all who watch, and only while somebody does.  Events say whose jobs and which ones have
changed, and in which frame: who shows one of them is told when the tables have that frame.  Where nothing can be known by events, because
they are not read at the moment or come later than they should, everybody is told of everything.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from kettle_services.gateway.pages.live_subject import ChangedThings
from kettle_services.gateway.pages.watched_part import WatchedPart
from kettle_services.gateway.rest.event_hub import EventHub, Happening
from kettle_services.gateway.rest.job_rows import SCHEDD
from kettle_services.gateway.rest.job_tables import JobTables, frames_tag
from kettle_services.gateway.rest.refusals import RequestRefused

LOOK_S: Final = 0.1
QUIET_S: Final = 1.0
"""Between looks while nothing is known to have happened."""
LATE_S: Final = 2.0
"""Events that are not here so long after the tables have them are not waited for."""
MOST: Final = 5_000
"""Of more changes than these between two looks it is not kept what they were about."""

_log: Final = logging.getLogger(__name__)


class TableWatch:
    """The loop, and all who are told."""

    def __init__(
        self, tables: JobTables, hub: EventHub | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`hub`: reads the events; None: nobody does."""
        self._tables = tables
        self._hub = hub
        self._clock = clock
        self._parts: set[WatchedPart] = set()
        self._wanted = asyncio.Event()
        """Somebody watches."""
        self._some = asyncio.Event()
        """Events have come since the last look."""
        self._changed = asyncio.Condition()
        self._waiting = 0
        self._frames: Mapping[str, int] = {}
        self._come: dict[tuple[str, str, int | None, int | None], Happening] = {}
        """The last event of each thing that the tables may not have yet."""
        self._many: dict[str, int] = {}
        """By queue the last frame of events of which it was not kept what they are about."""
        self._known: dict[str, int] = {}
        """By queue the last frame of which events have come."""
        self._late: dict[str, float] = {}
        """By queue the time since when the tables have a frame of which no event has come."""
        self._read_in: tuple[int, int] | None = None
        if hub is not None:
            hub.hear(self.heard)

    # -- who watches --------------------------------------------------------------------------------------------------

    def enter(self, part: WatchedPart) -> None:
        """Tell this one from now on."""
        self._parts.add(part)
        self._wanted.set()

    def leave(self, part: WatchedPart) -> None:
        """Tell it no more."""
        self._parts.discard(part)
        self._rest()

    async def behind(self, frames: Mapping[str, int]) -> Mapping[str, int]:
        """Wait until the tables are at another place than these frames, whatever has happened; the place."""
        self._waiting += 1
        self._wanted.set()
        self._some.set()
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._frames) and self._frames != frames)
                return self._frames
        finally:
            self._waiting -= 1
            self._rest()

    async def place(self) -> str:
        """A name for where the tables are now; empty while nobody can say it."""
        try:
            async with self._tables.read() as reading:
                return frames_tag(await reading.frames())
        except RequestRefused:
            return ""

    def _rest(self) -> None:
        if not self._waiting and not self._parts:
            self._wanted.clear()

    # -- what is known ------------------------------------------------------------------------------------------------

    def heard(self, happenings: Sequence[Happening]) -> None:
        """These events have come."""
        for each in happenings:
            if not each.schedd:
                continue  # it is no queue's
            queue = SCHEDD + each.schedd
            self._known[queue] = max(each.frame, self._known.get(queue, 0))
            self._come[queue, each.owner, each.cluster, each.proc] = each
        if len(self._come) > MOST:
            for (queue, *_), each in self._come.items():
                self._many[queue] = max(each.frame, self._many.get(queue, 0))
            self._come.clear()
        self._some.set()

    async def run(self) -> None:
        """Look again and again, while somebody watches; never returns."""
        while True:
            await self._wanted.wait()
            self._some.clear()
            try:
                async with self._tables.read() as reading:
                    frames = await reading.frames()
            except RequestRefused as refusal:
                _log.info("nobody is told of changes at the moment: %s", refusal)
            else:
                await self.look(frames)
            await asyncio.sleep(LOOK_S)
            if self.is_quiet:
                await self._until_something()

    @property
    def is_quiet(self) -> bool:
        """
        Whether nothing is known to have happened that the tables do not have, and nobody waits for whatever happens.
        """
        return not (self._waiting or self._come or self._many or self._late)

    async def _until_something(self) -> None:
        try:
            async with asyncio.timeout(QUIET_S):
                await self._some.wait()
        except TimeoutError:
            pass

    async def look(self, frames: Mapping[str, int]) -> None:
        """The tables are at these frames: tell whom that concerns."""
        moved = frames != self._frames
        if moved:
            async with self._changed:
                self._frames = frames
                self._changed.notify_all()
        come = self._taken(frames)
        if self._is_unsure(frames) or self._is_many(frames):
            self._tell(self._parts)
            return
        changed = ChangedThings.of(come)
        now = self._clock()
        self._tell(
            [
                part
                for part in self._parts
                if (come and part.subject.shows(changed))
                or (moved and now >= part.told_at + part.subject.again_s)
            ]
        )

    def _tell(self, parts: Collection[WatchedPart]) -> None:
        for part in list(parts):
            part.tell()

    def _taken(self, frames: Mapping[str, int]) -> list[Happening]:
        """The events that the tables have now."""
        taken = [(thing, each) for thing, each in self._come.items() if each.frame <= frames.get(thing[0], 0)]
        for thing, _ in taken:
            del self._come[thing]
        return [each for _, each in taken]

    def _is_many(self, frames: Mapping[str, int]) -> bool:
        """Whether the tables have events now of which it is not known what they are about."""
        here = [queue for queue, frame in self._many.items() if frame <= frames.get(queue, 0)]
        for queue in here:
            del self._many[queue]
        return bool(here)

    def _is_unsure(self, frames: Mapping[str, int]) -> bool:
        """Whether there may be something new of which no event tells."""
        hub, now = self._hub, self._clock()
        read_in = None if hub is None or hub.trouble or not hub.began else (hub.era, hub.passed_over)
        before, self._read_in = self._read_in, read_in
        if read_in is None or read_in != before:
            behind = any(frame != self._known.get(queue) for queue, frame in frames.items())
            self._known.update(frames)
            self._late.clear()
            return behind
        unsure = False
        for queue, frame in frames.items():
            if frame <= self._known.get(queue, 0):
                self._late.pop(queue, None)
            elif now >= self._late.setdefault(queue, now) + LATE_S:
                _log.info("frame %d of %s is in the tables, and no event of it has come", frame, queue)
                del self._late[queue]
                self._known[queue] = frame
                unsure = True
        return unsure
