"""
One walk over each shard, on which all checks go along.
"""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Final, TypeAlias

import asyncpg

from kettle.audit.database import Snapshot, snapshot
from kettle.audit.on_bus import OnBus
from kettle.audit.past import PastFold
from kettle.audit.report import AuditReport, ShardAudit
from kettle.audit.walk import Walk
from kettle.audit.working_set import Fold, WorkingSetFold
from kettle.bus.ports import Bus
from kettle.eventsourcing.log import Tenure
from kettle.wire.events import Event
from kettle.wire.frames import Frame
from kettle.wire.subjects import Subjects

RECENT_FRAMES: Final = 1_000
"""How far back an audit goes that is not full."""

Folds: TypeAlias = Mapping[str, Callable[[str], Fold]]
"""By kind of shard (its name up to the first dot): makes the fold of the working set of one shard."""

_SOUND: Final = ("positions", "frames", "versions", "events", "attempts")
"""Checks without problems in a shard are what its folds rely on."""
_PROJECTION: Final = "accounting"
_HISTORY: Final = "accounting.history_1"


class AuditError(Exception):
    """
    The audit could not be made.
    """


class _Companions:
    """
    What goes along on the walk over one shard.
    """

    def __init__(self, report: AuditReport) -> None:
        self._sound = [report.check(name) for name in _SOUND]
        self._before = self._problems()
        self.bus: OnBus | None = None
        self.working_set: WorkingSetFold | None = None
        self.past: PastFold | None = None

    async def feed(self, frame: Frame, events: list[Event]) -> None:
        if self.bus is not None:
            await self.bus.feed(frame)
        if len(events) != len(frame.entries):
            self.working_set = self.past = (
                None  # nobody can fold what nobody can read: the check `events` says so
            )
        if self.working_set is not None:
            self.working_set.feed(frame, events)
        if self.past is not None:
            await self.past.feed(frame, events)

    def _problems(self) -> int:
        return sum(check.problems for check in self._sound)


async def check(
    dsn: str,
    bus: Bus | None = None,
    *,
    subjects: Subjects | None = None,
    full: bool = True,
    folds: Folds | None = None,
) -> AuditReport:
    """
    Audit the log in the database `dsn`, and the bus if there is one (then `subjects` says which pool's).

    `full`: from the first frame on, with the fresh folds of working set, history and usage. Otherwise the newest
    frames of each shard, without the folds.

    Raises:
        AuditError: the database cannot be read, or holds no log.
    """
    report = AuditReport.empty()
    try:
        async with snapshot(dsn) as db:
            for tenure in await db.shards():
                walking = _Walking(
                    db, report, tenure, after=0 if full else max(0, tenure.frame - RECENT_FRAMES)
                )
                if full:
                    await walking.fold(folds or {})
                await walking.run(bus, subjects)
        if bus is not None and subjects is not None:
            await _not_ahead(dsn, bus, subjects, report)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise AuditError(f"the log cannot be read: {error}") from error
    return report


class _Walking:
    """
    The audit of one shard.
    """

    def __init__(self, db: Snapshot, report: AuditReport, tenure: Tenure, *, after: int) -> None:
        self._db = db
        self._report = report
        self._tenure = tenure
        self._after = after
        self._with = _Companions(report)

    async def fold(self, folds: Folds) -> None:
        """
        Take fresh folds along, as far as the stored ones have come.
        """
        shard = self._tenure.shard
        kind = shard.partition(".")[0]
        cursor = await self._db.cursor("working_set", shard)
        if kind in folds and cursor is not None:
            self._with.working_set = WorkingSetFold(shard, folds[kind](shard), cursor=cursor)
        cursor = await self._db.cursor(_PROJECTION, shard)
        if kind == "schedd" and cursor is not None and await self._db.has(_HISTORY):
            self._with.past = PastFold(self._db.connection, shard, self._report, cursor=cursor)

    async def run(self, bus: Bus | None, subjects: Subjects | None) -> None:
        """
        Walk.
        """
        tenure, going = self._tenure, self._with
        walk = Walk(tenure.shard, self._report, after=self._after)
        frames = events = 0
        async with AsyncExitStack() as stack:
            if bus is not None and subjects is not None:
                going.bus = OnBus(tenure.shard, self._report)
                await going.bus.open(bus, subjects, stack, after=self._after, head=tenure.frame)
            rows = await stack.enter_async_context(aclosing(self._db.events(tenure.shard, after=self._after)))
            async for row in rows:
                if complete := walk.feed(row):
                    await going.feed(*complete)
                    frames += 1
                events += 1
            if complete := walk.finish():
                await going.feed(*complete)
                frames += 1
            if going.bus is not None:
                await going.bus.finish()
        self._head(walk, events)
        if going.working_set is not None:
            going.working_set.compare(await self._db.working_set(tenure.shard), self._report)
        if going.past is not None:
            await going.past.finish()
        self._report.shards.append(
            ShardAudit(
                shard=tenure.shard,
                frames=frames,
                events=events,
                after=self._after,
                on_bus=going.bus.compared if going.bus else 0,
            )
        )

    def _head(self, walk: Walk, events: int) -> None:
        check, tenure = self._report.check("head"), self._tenure
        check.examined += 1
        position = walk.position if events else 0
        if (tenure.frame, tenure.head) != (walk.frame, position):
            check.found(
                tenure.shard,
                position,
                f"the shard is at frame {tenure.frame}, position {tenure.head}; its last event is in frame "
                f"{walk.frame} at position {position}",
            )
        if walk.epoch > tenure.epoch:
            check.found(
                tenure.shard,
                position,
                f"the last event is of epoch {walk.epoch}, the shard of {tenure.epoch}",
            )


async def _not_ahead(dsn: str, bus: Bus, subjects: Subjects, report: AuditReport) -> None:
    """
    The bus is asked before the database: what is committed in between cannot make the bus look ahead.
    """
    async with snapshot(dsn) as db:
        names = [tenure.shard for tenure in await db.shards()]
    last = {shard: await bus.last_sequence(subjects.event_stream(shard)) or 0 for shard in names}
    async with snapshot(dsn) as db:
        for tenure in await db.shards():
            if last.get(tenure.shard, 0) > tenure.frame:
                report.check("bus").found(
                    tenure.shard,
                    tenure.frame + 1,
                    f"the bus has frame {last[tenure.shard]}, the database ends with frame {tenure.frame}",
                )
