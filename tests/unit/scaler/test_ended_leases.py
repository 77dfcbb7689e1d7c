"""The leases that are over are read from the log once, and followed from then on."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kettle.eventsourcing.memory import MemoryLog
from kettle.eventsourcing.shard import Shard
from kettle_services.scaler import lease_views
from kettle_services.scaler.lease_views import LeaseLog
from kettle_services.scaler.record import SHARD
from kettle_wire.events import Event
from kettle_wire.events.lease import LeaseFailed, LeaseRequested
from kettle_wire.frames import Frame

from .planning_lab import offer

BEGAN = 1_790_000_000.0


def story(number: int, pool: str = "p") -> Sequence[list[tuple[str, Event]]]:
    """A lease that ends as soon as it was requested."""
    name = f"{pool}-{number}-1"
    asked = LeaseRequested(lease=name, pool=pool, offer=offer(), life=600.0, until=BEGAN + 600)
    return [[(f"lease/{name}", asked)], [(f"lease/{name}", LeaseFailed(words="no"))]]


class CountingLog(MemoryLog):
    """Counts the frames that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_so_far = 0

    async def read(self, *args: Any, **more: Any) -> AsyncIterator[Frame]:
        """See `Log.read`."""
        async for frame in super().read(*args, **more):
            self.read_so_far += 1
            yield frame


class Told:
    """A shard whose frames are told to a reader as they are committed."""

    def __init__(self, log: CountingLog, shard: Shard) -> None:
        self.log, self.shard, self.at = log, shard, 0.0
        self.reader = LeaseLog(log)

    async def record(self, story: Sequence[list[tuple[str, Event]]], *, tell: bool = True) -> None:
        for changes in story:
            self.at += 1.0
            await self.shard.record(changes, now_us=int((BEGAN + self.at) * 1e6))
            if tell:
                [frame] = [each async for each in MemoryLog.read(self.log, SHARD, after=self.shard.frame - 1)]
                self.reader.committed(frame)

    async def over(self, pool: str = "") -> list[str]:
        found, _ = await self.reader.over(pool, since=0.0, head=self.shard.frame)
        return [each.lease for each in found]


@asynccontextmanager
async def begun() -> AsyncGenerator[Told]:
    """A shard of our own."""
    log = CountingLog()
    async with Shard.own(log, SHARD, owner="me") as shard:
        committer = asyncio.create_task(shard.run())
        yield Told(log, shard)
        committer.cancel()
        await asyncio.gather(committer, return_exceptions=True)


async def test_what_is_over_is_read_once() -> None:
    """What ends later is told by its commit, and each pool has its own."""
    async with begun() as told:
        await told.record(story(1))
        assert ["p-1-1"] == await told.over()
        await told.record(story(2, "q"))
        assert (["p-1-1", "q-2-1"], ["q-2-1"]) == (await told.over(), await told.over("q"))
        assert 2 == told.log.read_so_far


async def test_what_was_not_told_is_read() -> None:
    """
    Frames that were committed while the first were read are missing, and nothing after them is taken for theirs.
    """
    async with begun() as told:
        await told.record(story(1))
        assert ["p-1-1"] == await told.over()
        await told.record(story(2), tell=False)
        await told.record(story(3))
        assert ["p-1-1", "p-2-1", "p-3-1"] == await told.over()


async def test_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer says from when on it is complete."""
    monkeypatch.setattr(lease_views, "MOST_ENDED", 2)
    async with begun() as told:
        for number in range(1, 5):
            await told.record(story(number))
        await told.over()
        found, since = await told.reader.over("", since=0.0, head=told.shard.frame)
    assert ["p-3-1", "p-4-1"] == [each.lease for each in found]
    assert BEGAN + 4.0 == since
