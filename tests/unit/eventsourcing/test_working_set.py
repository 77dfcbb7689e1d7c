"""The checkpointer: what it saves, and when."""

import asyncio

import pytest

from kettle.eventsourcing.log import FencedError, StoredEvent
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.working_set import Checkpointer
from kettle.testing.patience import PATIENCE_S


async def working_set() -> tuple[MemoryLog, MemoryWorkingSet]:
    log = MemoryLog()
    await log.take("s", owner="me")
    return log, MemoryWorkingSet(log)


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
    _, saved = await working_set()
    checkpointer = Checkpointer(saved, "s", epoch=1, frame=0, interval=0.05)
    running = asyncio.create_task(checkpointer.run())
    checkpointer.mark(1, {"a": (1, b"1")})
    await asyncio.sleep(0.01)
    checkpointer.mark(2, {"a": (2, b"2")})
    checkpointer.mark(3, {"a": (3, b"3")})
    await asyncio.sleep(0.01)
    assert (1, [StoredEvent("a", 1, b"1")]) == await saved.load("s")
    async with asyncio.timeout(PATIENCE_S):
        while (await saved.load("s"))[0] != 3:
            await asyncio.sleep(0.01)
    running.cancel()


async def test_a_stale_owner_s_checkpointer_stops() -> None:
    """FencedError ends it, so that the owner ends."""
    log, saved = await working_set()
    checkpointer = Checkpointer(saved, "s", epoch=1, frame=0)
    await log.take("s", owner="other")
    checkpointer.mark(1, {"a": (1, b"1")})
    with pytest.raises(FencedError):
        await asyncio.wait_for(checkpointer.run(), PATIENCE_S)
