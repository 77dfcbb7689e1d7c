"""Keeps a shard's working set near its head, so that a new owner reads live state instead of history."""

import asyncio
from collections.abc import Iterable, Mapping

from kettle.eventsourcing.log import StoredEvent, WorkingSet
from kettle.faults import fault_point


class Checkpointer:
    """
    Collects what frames changed and saves it in one go, at most every `interval` seconds.

    It is fed after commits alone: the working set never knows what the log does not.
    """

    def __init__(
        self, working_set: WorkingSet, shard: str, *, epoch: int, frame: int, interval: float = 1.0
    ) -> None:
        self._working_set = working_set
        self._shard = shard
        self._epoch = epoch
        self._interval = interval
        self._marked = frame
        self._rows: dict[str, StoredEvent | None] = {}
        self._work = asyncio.Event()
        self.saved = frame
        """The frame up to which the working set is saved."""

    def mark(self, frame: int, puts: Mapping[str, tuple[int, bytes]], drops: Iterable[str] = ()) -> None:
        """
        Note what the frame made of its streams: version and state of the live ones, and the names of those that ended.
        """
        self._rows.update((stream, None) for stream in drops)
        self._rows.update(
            (stream, StoredEvent(stream, version, state)) for stream, (version, state) in puts.items()
        )
        self._marked = frame
        self._work.set()

    async def run(self) -> None:
        """Save without end; FencedError ends it, and must end the owner."""
        while True:
            await self._work.wait()
            await self.flush()
            await asyncio.sleep(self._interval)

    async def flush(self) -> None:
        """Save everything marked so far."""
        self._work.clear()
        if self._marked == self.saved:
            return
        rows, self._rows, now = self._rows, {}, self._marked
        fault_point("working_set.before")
        await self._working_set.save(
            self._shard,
            epoch=self._epoch,
            was=self.saved,
            now=now,
            put=[row for row in rows.values() if row is not None],
            drop=[stream for stream, row in rows.items() if row is None],
        )
        fault_point("working_set.saved")
        self.saved = now
