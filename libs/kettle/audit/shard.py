"""The audit of one shard: one walk over its events, on which all checks go along."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Final, TypeAlias

from kettle.audit.bus_frames import OnBus
from kettle.audit.database import Snapshot
from kettle.audit.event_checks import Walk
from kettle.audit.follower import Follower
from kettle.audit.report import AuditReport, ShardAudit
from kettle.bus.ports import Bus
from kettle.eventsourcing.log import IMPORTED, Tenure
from kettle_wire.event_expansion import events_of, expanded
from kettle_wire.events import Event
from kettle_wire.frames import Frame
from kettle_wire.subjects import Subjects

Told: TypeAlias = Callable[[str, int, int], None]
"""`(shard, frames read, frames there are)`."""

SOUND: Final = ("positions", "frames", "versions", "events", "times", "attempts", "claims", "head")
"""Where one of these has a problem, a fold of the events proves nothing about what is stored."""
_OFTEN: Final = 256
"""Frames between two words about progress."""


class ShardWalk:
    """The walk over one shard after a frame."""

    def __init__(
        self,
        db: Snapshot,
        report: AuditReport,
        tenure: Tenure,
        *,
        after: int,
        followers: Sequence[Follower] = (),
        told: Told | None = None,
    ) -> None:
        self._db = db
        self._report = report
        self._tenure = tenure
        self._after = after
        self._followers = list(followers)
        self._told = told
        self._bus: OnBus | None = None
        self._frames = 0

    async def run(self, bus: Bus | None, subjects: Subjects | None) -> None:
        """Walk, compare, and add what was found to the report."""
        tenure = self._tenure
        before = self._report.problems(SOUND)
        walk = Walk(tenure.shard, self._report, after=self._after)
        events = 0
        async with AsyncExitStack() as stack:
            if bus is not None and subjects is not None and tenure.owner != IMPORTED:
                self._bus = OnBus(tenure.shard, self._report)
                await self._bus.open(bus, subjects, stack, after=self._after, head=tenure.frame)
            rows = await stack.enter_async_context(aclosing(self._db.events(tenure.shard, after=self._after)))
            async for row in rows:
                if complete := walk.feed(row):
                    await self._feed(*complete)
                events += 1
            if complete := walk.finish():
                await self._feed(*complete)
            if self._bus is not None:
                await self._bus.finish()
        self._head(walk, events)
        if self._report.problems(SOUND) > before:
            self._skip("what the log says of it is damaged")
        for follower in self._followers:
            await follower.finish()
        self._report.shards.append(
            ShardAudit(
                shard=tenure.shard,
                frames=self._frames,
                events=events,
                after=self._after,
                on_bus=self._bus.compared if self._bus else 0,
            )
        )

    async def _feed(self, frame: Frame, events: list[Event]) -> None:
        self._frames += 1
        if self._told is not None and self._frames % _OFTEN == 0:
            self._told(self._tenure.shard, self._frames, self._tenure.frame - self._after)
        if self._bus is not None:
            await self._bus.feed(frame)
        if len(events) != len(frame.entries):
            self._skip("not all of its events can be read")
        if not self._followers:
            return
        whole = expanded(frame)
        singles = events if whole is frame else events_of(whole)
        for follower in self._followers:
            if follower.one_by_one:
                await follower.feed(whole, singles)
            else:
                await follower.feed(frame, events)

    def _skip(self, why: str) -> None:
        for follower in self._followers:
            for name in follower.names:
                self._report.check(name).skipped.append(f"{self._tenure.shard}: {why}")
        self._followers = []

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
