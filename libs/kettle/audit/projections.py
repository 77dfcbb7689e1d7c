"""The tables of a projection, beside a fresh fold of the events into temporary ones."""

from collections.abc import Sequence
from typing import Final

import asyncpg
import msgspec

from kettle.audit.database import Tables
from kettle.audit.report import AuditReport
from kettle.audit.row_origins import Whereabouts
from kettle.audit.sampling import Sample
from kettle.eventsourcing.projection import Decoded
from kettle.projections import Refold, StoredProjection
from kettle_wire.events import Event
from kettle_wire.frames import Frame

EVENTS: Final = 10_000
"""About so many are folded at once."""
TOLD: Final = 1_000
"""
The most rows of one table that are looked up in the log; where more differ, the first one may be another.
"""


class ProjectionFold:
    """Fed the frames up to the cursor of the projection, it says which rows differ."""

    def __init__(
        self,
        tables: Tables,
        projection: StoredProjection,
        report: AuditReport,
        where: Whereabouts,
        *,
        shard: str,
        cursor: int,
        sample: Sample | None,
    ) -> None:
        self.names: Sequence[str] = (f"projection.{projection.name}",)
        self.one_by_one = True
        self.name = projection.name
        self._check = report.check(self.names[0])
        self._where = where
        self._shard = shard
        self.cursor = cursor
        """The last frame that the stored tables follow from."""
        self._sample = sample
        self._connection = tables.connection
        self._fold = Refold(tables.connection, projection, shard)
        self._frames: list[Decoded] = []
        self._events = 0
        self._refused = False

    async def begin(self) -> None:
        """Make the temporary tables."""
        await self._fold.begin()

    async def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """See `Follower.feed`: frames that the projection has not seen do not count."""
        if frame.number > self.cursor or self._refused:
            return
        if self._sample is not None:
            kept = [index for index, entry in enumerate(frame.entries) if self._sample.takes(entry.stream)]
            if not kept:
                return
            frame = msgspec.structs.replace(frame, entries=[frame.entries[index] for index in kept])
            events = [events[index] for index in kept]
        self._frames.append((frame, list(events)))
        self._events += len(events)
        if self._events >= EVENTS or len(self._frames) >= EVENTS:
            await self._flush()

    async def finish(self) -> None:
        """See `Follower.finish`."""
        await self._flush()
        if self._refused:
            return
        only = None if self._sample is None else self._sample.taken
        found = await self._fold.differences(limit=TOLD, only=only)
        placed = [(await self._where.position(one.key, until=self.cursor), str(one)) for one in found]
        for position, sentence in sorted(placed):
            self._check.found(self._shard, position, sentence)

    async def _flush(self) -> None:
        frames, self._frames, self._events = self._frames, [], 0
        self._check.examined += sum(len(events) for _, events in frames)
        if not frames:
            return
        try:
            async with self._connection.transaction():
                await self._fold.feed(frames)
        except (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError):
            raise  # that says nothing about the log
        except Exception as error:  # noqa: BLE001 - what a fold makes of a damaged log is what is looked for
            first = frames[0][0]
            self._check.found(
                self._shard,
                getattr(error, "position", first.position),
                f"an event of frames {first.number} to {frames[-1][0].number} cannot be folded: {error!r}",
            )
            self._refused = True


async def projection_folds(
    tables: Tables, report: AuditReport, where: Whereabouts, *, shard: str, frame: int, sample: Sample | None
) -> list[ProjectionFold]:
    """
    The folds of all projections that follow a shard and have tables here. `frame`: the last one of the shard.
    """
    folds: list[ProjectionFold] = []
    for projection in await tables.projections(shard):
        check = report.check(f"projection.{projection.name}")
        place = await tables.place(projection.name, shard)
        if place.version != projection.version:
            check.skipped.append(
                f"{shard}: its tables are of version {place.version}, this release has {projection.version}"
            )
            continue
        if place.error is not None:
            check.found(shard, 0, f"it stopped {place.error}")
        if place.frame > frame:
            check.found(shard, 0, f"it has applied frame {place.frame}, the log ends with frame {frame}")
        fold = ProjectionFold(
            tables, projection, report, where, shard=shard, cursor=place.frame, sample=sample
        )
        await fold.begin()
        folds.append(fold)
    return folds
