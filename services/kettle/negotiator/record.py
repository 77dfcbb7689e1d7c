"""The negotiator's record: its shard, and what can be answered from it."""

import time
from collections import OrderedDict
from typing import Final

from kettle.eventsourcing.log import Log
from kettle.eventsourcing.shard import Shard
from kettle.negotiator.domain.cycle import Outcome, fresh
from kettle.wire import events
from kettle.wire.commands.negotiator import Verdict, Why
from kettle.wire.events import CycleNegotiated, Match, Rejection
from kettle.wire.identity import Identity

Key = tuple[str, str, int]
_REMEMBERED: Final = 10_000


class Record:
    """What recent cycles said of each autocluster."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.cycle = 0
        self.rejected: dict[Key, Rejection] = {}
        self._verdicts: OrderedDict[Key, Verdict] = OrderedDict()

    async def recall(self, log: Log, frames: int) -> None:
        """Read the newest part of the record."""
        tenure = self._shard.tenure
        async for frame in log.read(self._shard.name, after=max(0, tenure.frame - frames)):
            for entry in frame.entries:
                event = events.decode(entry.data)
                if isinstance(event, CycleNegotiated):
                    self._fold(event)

    async def write(self, outcome: Outcome, *, started: float, duration: float) -> None:
        """Record a cycle that gave something, or refused something new; returns after the commit."""
        refused = fresh(outcome.rejections, self.rejected)
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
        )
        self._fold(event)
        stream = f"cycle/{event.cycle}"
        await self._shard.record([(stream, event)], now_us=time.time_ns() // 1000)
        self._shard.retire(stream)

    def _fold(self, event: CycleNegotiated) -> None:
        self.cycle = event.cycle
        matches: dict[Key, list[Match]] = {}
        for match in event.matches:
            matches.setdefault((match.submitter, match.schedd, match.autocluster), []).append(match)
        for key, found in matches.items():
            self.rejected.pop(key, None)
            self._remember(key, Verdict(cycle=event.cycle, at=event.started, matches=found))
        for rejection in event.rejections:
            key = (rejection.submitter, rejection.schedd, rejection.autocluster)
            self.rejected[key] = rejection
            found = matches.get(key, [])
            self._remember(
                key, Verdict(cycle=event.cycle, at=event.started, rejection=rejection, matches=found)
            )

    def _remember(self, key: Key, verdict: Verdict) -> None:
        self._verdicts[key] = verdict
        self._verdicts.move_to_end(key)
        while len(self._verdicts) > _REMEMBERED:
            old, _ = self._verdicts.popitem(last=False)
            self.rejected.pop(old, None)

    async def why(self, request: Why, caller: Identity) -> Verdict:
        """What the last negotiation said of an autocluster."""
        del caller  # everybody may ask
        key = (request.submitter, request.schedd, request.autocluster)
        return self._verdicts.get(key, Verdict(cycle=None, at=0.0))
