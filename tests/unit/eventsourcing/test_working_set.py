"""The checkpointer: what it saves, and when."""

import asyncio
from typing import Any

import pytest

from kettle.eventsourcing.log import FencedError, StoredEvent
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.working_set import Checkpointer
from kettle.testing.patience import PATIENCE_S


async def working_set() -> tuple[MemoryLog, MemoryWorkingSet]:
    log = MemoryLog()
    await log.take("s", owner="me")
    return log, MemoryWorkingSet(log)


class Noted(MemoryWorkingSet):
    """Remembers from which frame to which one each save went, and when."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__(log)
        self.saves: list[tuple[int, int]] = []
        self.at: list[float] = []
        self._changed = asyncio.Event()

    async def save(self, shard: str, *, was: int, now: int, **changes: Any) -> None:
        await super().save(shard, was=was, now=now, **changes)
        self.saves.append((was, now))
        self.at.append(asyncio.get_running_loop().time())
        self._changed.set()

    async def until(self, frame: int) -> None:
        while not self.saves or self.saves[-1][1] < frame:
            self._changed.clear()
            await self._changed.wait()


async def test_frames_are_merged_into_one_save() -> None:
    """The last state of each stream counts; one that ended is dropped, one that came back is not."""
    _, saved = await working_set()
    checkpointer = Checkpointer(saved, "s", epoch=1, frame=0)
    checkpointer.mark(1, {"a": (1, b"1"), "b": (1, b"1"), "c": (1, b"1")})
    checkpointer.mark(2, {"a": (2, b"2")}, ["b", "c"])
    checkpointer.mark(3, {"c": (3, b"3")})
    assert (0, []) == await saved.load("s")
    await checkpointer.flush()
    assert (3, [StoredEvent("a", 2, b"2"), StoredEvent("c", 3, b"3")]) == await saved.load("s")
    assert 3 == checkpointer.saved
    await checkpointer.flush()
    checkpointer.mark(4, {}, ["a"])
    await checkpointer.flush()
    assert (4, [StoredEvent("c", 3, b"3")]) == await saved.load("s")


async def test_it_saves_by_itself_but_not_all_the_time() -> None:
    """The first mark is saved at once, the next ones together after the interval."""
    log = MemoryLog()
    await log.take("s", owner="me")
    saved = Noted(log)
    checkpointer = Checkpointer(saved, "s", epoch=1, frame=0, interval=0.05)
    running = asyncio.create_task(checkpointer.run())
    async with asyncio.timeout(PATIENCE_S):
        checkpointer.mark(1, {"a": (1, b"1")})
        await saved.until(1)
        checkpointer.mark(2, {"a": (2, b"2")})
        checkpointer.mark(3, {"a": (3, b"3")})
        await saved.until(3)
    running.cancel()
    assert [(0, 1), (1, 3)] == saved.saves
    assert saved.at[1] - saved.at[0] > 0.049


async def test_a_stale_owner_s_checkpointer_stops() -> None:
    """FencedError ends it, so that the owner ends."""
    log, saved = await working_set()
    checkpointer = Checkpointer(saved, "s", epoch=1, frame=0)
    await log.take("s", owner="other")
    checkpointer.mark(1, {"a": (1, b"1")})
    with pytest.raises(FencedError):
        await asyncio.wait_for(checkpointer.run(), PATIENCE_S)
