"""The negotiator's record: its shard, and what can be answered from it."""

import math
import time
from typing import Final

from kettle.eventsourcing.log import Log
from kettle.eventsourcing.shard import Shard
from kettle_services.negotiator.domain.concurrency_limits import SETTLES
from kettle_services.negotiator.domain.cycle import Outcome
from kettle_services.negotiator.domain.verdicts import Verdicts
from kettle_wire import events
from kettle_wire.events import CycleNegotiated, Match

_RECENT: Final = 2 * SETTLES
"""Seconds; longer than what a cycle gave takes to show, also if the clocks of two machines differ."""


class Record(Verdicts):
    """The results of recent cycles for each autocluster, which are in a shard."""

    def __init__(self, shard: Shard) -> None:
        super().__init__()
        self._shard = shard
        self.recent: list[tuple[int, list[Match]]] = []
        """
        Cycles before the start, as far back as it matters to somebody what they gave, with their matches.
        """

    async def recall(self, log: Log, frames: int) -> None:
        """
        Read the newest part of the record: `frames` at least, all that are recent however many there are, and back to a cycle,
        because cycles are numbered on.
        """
        since = time.time() - _RECENT
        cycles: list[CycleNegotiated] = []
        until, oldest = self._shard.tenure.frame, math.inf
        while until and (not cycles or oldest > since):
            after = max(0, until - frames)
            found: list[CycleNegotiated] = []
            async for frame in log.read(self._shard.name, after=after, until=until):
                oldest = min(oldest, frame.at / 1e6)
                decoded = (events.decode(entry.data) for entry in frame.entries)
                found += [event for event in decoded if isinstance(event, CycleNegotiated)]
            cycles[:0] = found
            until, frames = after, 2 * frames
        for event in cycles:
            self.fold(event)
        self.recent = [(event.cycle, event.matches) for event in cycles if event.started > since]

    async def write(self, outcome: Outcome, *, started: float, duration: float) -> None:
        """Record a cycle that gave something, or refused something new; returns after the commit."""
        event = self.decided(outcome, started=started, duration=duration)
        if event is None:
            return
        stream = f"cycle/{event.cycle}"
        await self._shard.record([(stream, event)], now_us=time.time_ns() // 1000)
        self._shard.retire(stream)
        self.fold(event)
