"""The negotiator's record: its shard, and what can be answered from it."""

import math
import time
from collections import OrderedDict
from typing import Final

from kettle.eventsourcing.log import Log
from kettle.eventsourcing.shard import Shard
from kettle_services.negotiator.domain.concurrency_limits import SETTLES
from kettle_services.negotiator.domain.cycle import Outcome, fresh
from kettle_wire import events
from kettle_wire.commands.negotiator import RecordedVerdict
from kettle_wire.events import CycleNegotiated, Match, Rejection

Key = tuple[str, str, int]
_REMEMBERED: Final = 10_000
_TOLD: Final = 500
"""So many rejections a cycle records at most; who is left out is news again in the next one."""
_RECENT: Final = 2 * SETTLES
"""Seconds; longer than what a cycle gave takes to show, also if the clocks of two machines differ."""


class Record:
    """The results of recent cycles for each autocluster."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.cycle = 0
        self.recent: list[tuple[int, list[Match]]] = []
        """
        Cycles before the start, as far back as it matters to somebody what they gave, with their matches.
        """
        self.rejected: dict[Key, Rejection] = {}
        self._verdicts: OrderedDict[Key, RecordedVerdict] = OrderedDict()

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
            self._fold(event)
        self.recent = [(event.cycle, event.matches) for event in cycles if event.started > since]

    async def write(self, outcome: Outcome, *, started: float, duration: float) -> None:
        """Record a cycle that gave something, or refused something new; returns after the commit."""
        news = fresh(outcome.rejections, self.rejected)
        refused, more = news[:_TOLD], len(news[_TOLD:])
        if not outcome.matches and not refused:
            return
        event = CycleNegotiated(
            cycle=self.cycle + 1,
            started=started,
            duration=duration,
            slots=outcome.slots,
            idle=outcome.idle,
            matches=outcome.matches,
            rejections=refused,
            more=more,
        )
        stream = f"cycle/{event.cycle}"
        await self._shard.record([(stream, event)], now_us=time.time_ns() // 1000)
        self._shard.retire(stream)
        self._fold(event)

    def _fold(self, event: CycleNegotiated) -> None:
        self.cycle = event.cycle
        matches: dict[Key, list[Match]] = {}
        for match in event.matches:
            matches.setdefault((match.submitter, match.schedd, match.autocluster), []).append(match)
        for key, found in matches.items():
            self.rejected.pop(key, None)
            self._remember(key, RecordedVerdict(cycle=event.cycle, at=event.started, matches=found))
        for rejection in event.rejections:
            key = (rejection.submitter, rejection.schedd, rejection.autocluster)
            self.rejected[key] = rejection
            found = matches.get(key, [])
            self._remember(
                key, RecordedVerdict(cycle=event.cycle, at=event.started, rejection=rejection, matches=found)
            )

    def _remember(self, key: Key, verdict: RecordedVerdict) -> None:
        self._verdicts[key] = verdict
        self._verdicts.move_to_end(key)
        while len(self._verdicts) > _REMEMBERED:
            old, _ = self._verdicts.popitem(last=False)
            self.rejected.pop(old, None)

    def said(self, key: Key) -> RecordedVerdict:
        """The result of the last negotiation for an autocluster."""
        return self._verdicts.get(key, RecordedVerdict(cycle=None, at=0.0))
