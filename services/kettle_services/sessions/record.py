"""
The record of a service of interactive sessions: its shard, what is folded from it, and the events of those that are followed.
"""

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Final

import msgspec

from kettle.eventsourcing.log import Log
from kettle.eventsourcing.state_record import StateRecord
from kettle_services.sessions.domain.state import STREAM, SessionsState
from kettle_wire.commands.sessions import RecordedSessionEvent
from kettle_wire.frames import Frame

Record = StateRecord[SessionsState]
_KEPT: Final = 200
"""Sessions whose events are in memory, because somebody has followed them."""
LONGEST: Final = 2_000
"""Events in one answer."""


def shard_of(name: str) -> str:
    """The shard of the service beside a schedd."""
    return f"sessions.{name}"


class Histories:
    """The committed events of sessions, for those who follow them."""

    def __init__(self, log: Log, record: Record) -> None:
        self._log = log
        self._record = record
        self._kept: OrderedDict[str, dict[int, RecordedSessionEvent]] = OrderedDict()
        """By session and by the number of the event, which counts from 1."""
        self._more = asyncio.Event()
        record.on_commit(self._committed)

    async def after(self, session: str, count: int, *, within: float) -> list[RecordedSessionEvent]:
        """The events behind so many; waits for some, but no longer than `within` seconds."""
        known = await self._known(session)
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while count + 1 not in known:
                    await self._more.wait()
        found: list[RecordedSessionEvent] = []
        while count + 1 in known and len(found) < LONGEST:
            count += 1
            found.append(known[count])
        return found

    async def _known(self, session: str) -> dict[int, RecordedSessionEvent]:
        if (known := self._kept.get(session)) is None:
            known = self._kept[session] = {}  # what is committed meanwhile is not missed
            stream = f"{STREAM}{session}"
            for frame, _ in await self._log.stream(self._record.shard.name, stream):
                for entry in frame.entries:
                    known[entry.version] = RecordedSessionEvent(frame.at, msgspec.Raw(entry.data))
        if session in self._kept:
            self._kept.move_to_end(session)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return known

    def _committed(self, frame: Frame) -> None:
        for entry in frame.entries:
            known = self._kept.get(entry.stream.removeprefix(STREAM))
            if known is not None:
                known[entry.version] = RecordedSessionEvent(frame.at, msgspec.Raw(entry.data))
        more, self._more = self._more, asyncio.Event()
        more.set()
