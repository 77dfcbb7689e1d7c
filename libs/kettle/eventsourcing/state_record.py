"""
A shard together with the states of its streams.

What is decided is folded at once, and committed together with what others decide meanwhile; nobody is told before the commit.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from kettle.eventsourcing.command_pipeline import Recording
from kettle.eventsourcing.log import Log, WorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.eventsourcing.stream_states import StreamStates
from kettle.eventsourcing.working_set import Checkpointer
from kettle_wire.events import decode
from kettle_wire.frames import Frame

_States = TypeVar("_States", bound=StreamStates)


class StateRecord(Generic[_States]):
    """The state and how it is changed."""

    def __init__(self, shard: Shard, state: _States, checkpointer: Checkpointer) -> None:
        self.shard: Final = shard
        self.state: Final = state
        self._checkpointer = checkpointer
        self._folded: deque[bytes | None] = deque()
        """The row after each event that is not committed yet, in order."""
        self._listeners: list[Callable[[Frame], None]] = []
        shard.on_commit(self._committed)

    @classmethod
    async def recall(
        cls, log: Log, working_set: WorkingSet, shard: Shard, state: _States, *, interval: float
    ) -> "StateRecord[_States]":
        """
        The record as it is at the start: the working set, and the frames after it, which `state` takes in.
        """
        cursor, rows = await working_set.load(shard.name)
        versions = {row.stream: row.version for row in rows}
        for kept in rows:
            state.restore(kept.stream, kept.state)
        checkpointer = Checkpointer(
            working_set, shard.name, epoch=shard.tenure.epoch, frame=cursor, interval=interval
        )
        async for frame in log.read(shard.name, after=cursor):
            folded = fold_frame(state, frame)
            _mark(checkpointer, frame, folded)
            for entry, row in zip(frame.entries, folded, strict=True):
                if row is None:
                    versions.pop(entry.stream, None)
                else:
                    versions[entry.stream] = entry.version
        shard.adopt(versions)
        return cls(shard, state, checkpointer)

    async def checkpoint(self) -> None:
        """Keep the working set near the head; never returns."""
        await self._checkpointer.run()

    def on_commit(self, listener: Callable[[Frame], None]) -> None:
        """Have somebody told of each frame after its commit."""
        self._listeners.append(listener)

    def record(
        self, changes: Recording, *, command: str = "", reply: Callable[[int], bytes] | None = None
    ) -> asyncio.Future[int]:
        """Fold, record and commit, as `Shard.record` does: all of these changes are in one frame."""
        future = self.shard.record(changes, now_us=time.time_ns() // 1000, command=command, reply=reply)
        at = self.shard.open_at / 1e6
        for stream, event in changes:
            row = self.state.apply(stream, event, at)
            self._folded.append(row)
            if row is None:
                self.shard.retire(stream)
        return future

    def _committed(self, frame: Frame) -> None:
        _mark(self._checkpointer, frame, [self._folded.popleft() for _ in frame.entries])
        for listener in self._listeners:
            listener(frame)


def fold_frame(state: StreamStates, frame: Frame) -> list[bytes | None]:
    """Change the state as a recorded frame does; the row of each entry's stream after it."""
    return [state.apply(entry.stream, decode(entry.data), frame.at / 1e6) for entry in frame.entries]


def _mark(checkpointer: Checkpointer, frame: Frame, folded: Sequence[bytes | None]) -> None:
    rows: dict[str, tuple[int, bytes] | None] = {
        entry.stream: None if row is None else (entry.version, row)
        for entry, row in zip(frame.entries, folded, strict=True)
    }
    puts: Mapping[str, tuple[int, bytes]] = {stream: row for stream, row in rows.items() if row is not None}
    checkpointer.mark(frame.number, puts, [stream for stream, row in rows.items() if row is None])
