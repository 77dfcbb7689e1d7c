"""The collector's record: which machines are there, and every coming and going."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.collector.domain.machines import fold
from kettle.eventsourcing.log import Log, Row, WorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.wire.events import MachineJoined, MachineLeft, decode
from kettle.wire.frames import Frame

SHARD: Final = "collector"
_STREAM: Final = "machine/"
_THERE: Final = msgspec.msgpack.encode(True)
_GONE: Final = msgspec.msgpack.encode(False)
_SAVE_EVERY: Final = 64


class Record:
    """
    The shard's events, and its working set of all machines that were ever there.

    A machine's row stays when it leaves: the versions of its stream go on when it comes back.
    """

    def __init__(self, shard: Shard, working_set: WorkingSet) -> None:
        self._shard = shard
        self._working_set = working_set
        self._saved = 0
        self._pending: dict[str, Row] = {}
        self._folded = 0
        self._save = asyncio.Event()
        shard.on_commit(self._committed)

    async def recall(self, log: Log) -> set[str]:
        """The machines that are there, as recorded so far."""
        self._saved, rows = await self._working_set.load(self._shard.name)
        joined = {row.stream.removeprefix(_STREAM) for row in rows if row.state == _THERE}
        versions = {row.stream: row.version for row in rows}
        self._folded = self._saved
        async for frame in log.read(self._shard.name, after=self._saved):
            self._committed(frame)
            for entry in frame.entries:
                fold(joined, decode(entry.data))
                versions[entry.stream] = entry.version
        self._shard.adopt(versions)
        return joined

    def write(self, events: Sequence[MachineJoined | MachineLeft]) -> None:
        """Record what was seen; `run` of the shard commits it, and fails the process if it cannot."""
        if events:
            changes = [(f"{_STREAM}{event.machine}", event) for event in events]
            self._shard.record(changes, now_us=time.time_ns() // 1000)

    async def keep_working_set(self) -> None:
        """Save the working set behind the record; for ever."""
        while True:
            await self._save.wait()
            self._save.clear()
            await self.save()

    async def save(self) -> None:
        """Save the working set as far as it is folded."""
        rows, self._pending = self._pending, {}
        was, self._saved = self._saved, self._folded
        if was != self._saved:
            await self._working_set.save(
                self._shard.name,
                epoch=self._shard.tenure.epoch,
                was=was,
                now=self._saved,
                put=list(rows.values()),
                drop=(),
            )

    def _committed(self, frame: Frame) -> None:
        for entry in frame.entries:
            there = isinstance(decode(entry.data), MachineJoined)
            self._pending[entry.stream] = Row(entry.stream, entry.version, _THERE if there else _GONE)
        self._folded = frame.number
        if self._folded - self._saved >= _SAVE_EVERY:
            self._save.set()
