"""Frames of the negotiator in, rows out."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from kettle.eventsourcing.projection import Decoded, Tx
from kettle.projections.stored_projection import Sweeper, instant, storable
from kettle.storage.queries import load
from kettle_wire.events import CycleNegotiated, Rejection

HERE: Final = Path(__file__).parent
KEPT: Final = timedelta(days=30)
"""How long cycles are kept, by the time of the newest frame."""
_QUERIES: Final = load(HERE / "queries.sql")


class Negotiation:
    """See `StoredProjection`. Version 1."""

    def __init__(self) -> None:
        self.name: Final = "negotiation"
        self.version: Final = 1
        self.kinds: Final = ("negotiator",)
        self.directory: Final = HERE
        self._sweeper = Sweeper(KEPT)

    async def apply(self, tx: Tx, frames: Sequence[Decoded]) -> None:
        """See `Projection.apply`."""
        shard = frames[0][0].shard
        cycles = [
            (instant(frame.at), event)
            for frame, decoded in frames
            for event in decoded
            if isinstance(event, CycleNegotiated)
        ]
        for query, rows in (
            ("cycle", [_cycle(at, event) for at, event in cycles]),
            ("match", [row for _, event in cycles for row in _matches(event)]),
            ("reject", [row for _, event in cycles for row in _rejections(event)]),
        ):
            if rows:
                await tx.execute(_QUERIES[query], shard, *map(list, zip(*rows, strict=True)))
        if (day := self._sweeper.due(frames)) is not None:
            await tx.execute(_QUERIES["forget"], shard, day)


def _cycle(at: object, event: CycleNegotiated) -> tuple[object, ...]:
    matched = sum(match.count for match in event.matches)
    rejected = sum(rejection.count for rejection in event.rejections)
    return event.cycle, at, event.started, event.duration, event.slots, event.idle, matched, rejected


def _matches(event: CycleNegotiated) -> Iterable[tuple[object, ...]]:
    for number, m in enumerate(event.matches):
        submitter, schedd, slot, startd = map(storable, (m.submitter, m.schedd, m.slot, m.startd))
        yield event.cycle, number, submitter, schedd, m.autocluster, slot, startd, m.count


def _rejections(event: CycleNegotiated) -> Iterable[tuple[object, ...]]:
    for number, r in enumerate(event.rejections):
        submitter, schedd, reason = map(storable, (r.submitter, r.schedd, r.reason))
        yield event.cycle, number, submitter, schedd, r.autocluster, r.count, reason, r.slots, _clauses(r)


def _clauses(rejection: Rejection) -> str:
    told = [{**msgspec.structs.asdict(c), "text": storable(c.text)} for c in rejection.clauses]
    return msgspec.json.encode(told).decode()
