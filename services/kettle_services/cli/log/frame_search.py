"""
Which frame of a shard a moment falls into.

The owner of a shard lets no frame be earlier than the one before it, so the order of frames is the order of time, and a
moment is found by looking at few of them: no index on times is kept for it.
"""

from collections.abc import Generator
from typing import TypeAlias

from kettle.eventsourcing.log import ReadableLog

Search: TypeAlias = Generator[int, int, int]
"""Asks for the time of a frame by its number, is sent it, and returns the number of a frame."""


def last_until(first: int, last: int, at: int) -> Search:
    """
    The last frame of `first` to `last` that is not later than `at`; `first - 1` if all of them are. Pure.
    """
    low, high = first - 1, last
    while low < high:
        middle = (low + high + 1) // 2
        if (yield middle) <= at:
            low = middle
        else:
            high = middle - 1
    return low


async def frame_at(log: ReadableLog, shard: str, last: int, at: int) -> int:
    """The last frame of a shard, of those up to `last`, that is not later than `at`; 0: there is none."""
    search = last_until(1, last, at)
    try:
        asked = next(search)
        while True:
            asked = search.send(await time_of(log, shard, asked))
    except StopIteration as found:
        return int(found.value)


async def time_of(log: ReadableLog, shard: str, frame: int) -> int:
    """When a frame was closed, microseconds since the epoch; 0 for one that is not there."""
    async for found in log.read(shard, after=frame - 1, until=frame):
        return found.at
    return 0
