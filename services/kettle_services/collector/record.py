"""
The collector's record: which machines are there, every coming and going, and which registered daemons are silent.
"""

import time
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.eventsourcing.log import Log, WorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.eventsourcing.working_set import Checkpointer
from kettle_services.collector.domain.machine_presence import THERE, absence, fold, row_of
from kettle_wire.ads.types import Ad
from kettle_wire.events import MachineJoined, MachineLeft, decode
from kettle_wire.events.machine import CollectorEvent
from kettle_wire.frames import Frame

SHARD: Final = "collector"
_STREAM: Final = "machine/"
_REGISTERED: Final = "registered/"


class Record:
    """
    The shard's events, and its working set of all machines that were ever there.

    A machine's row stays when it leaves, and that of a daemon: the versions of its stream go on when it comes back.
    """

    def __init__(self, shard: Shard, checkpointer: Checkpointer) -> None:
        self._shard = shard
        self._checkpointer = checkpointer
        shard.on_commit(self._committed)

    def write(self, events: Sequence[CollectorEvent]) -> None:
        """Record what was seen; `run` of the shard commits it, and fails the process if it cannot."""
        if events:
            changes = [(_stream(event), event) for event in events]
            self._shard.record(changes, now_us=time.time_ns() // 1000)

    def _committed(self, frame: Frame) -> None:
        self._checkpointer.mark(frame.number, _rows(frame))


class Recalled(msgspec.Struct, frozen=True):
    """
    The state from the log: which machines are present, by machine the slots of absent ones, and the ads of silent daemons by their keys.
    """

    joined: set[str]
    absent: dict[str, list[Ad]]
    silent: dict[str, Ad]


def _stream(event: CollectorEvent) -> str:
    return (
        f"{_STREAM}{event.machine}"
        if isinstance(event, MachineJoined | MachineLeft)
        else f"{_REGISTERED}{event.key}"
    )


async def recall(log: Log, working_set: WorkingSet, shard: Shard) -> tuple[Checkpointer, Recalled]:
    """What keeps the working set, and the machines, both as recorded so far."""
    cursor, rows = await working_set.load(shard.name)
    states = {row.stream: row.state for row in rows}
    joined = {
        row.stream.removeprefix(_STREAM)
        for row in rows
        if row.state == THERE and row.stream.startswith(_STREAM)
    }
    checkpointer = Checkpointer(working_set, shard.name, epoch=shard.tenure.epoch, frame=cursor)
    versions = {row.stream: row.version for row in rows}
    async for frame in log.read(shard.name, after=cursor):
        for entry in frame.entries:
            fold(joined, decode(entry.data))
            versions[entry.stream] = entry.version
        changed = _rows(frame)
        states |= {stream: state for stream, (_, state) in changed.items()}
        checkpointer.mark(frame.number, changed)
    shard.adopt(versions)
    kept = {stream: ads for stream, state in states.items() if (ads := absence(state))}
    absent = {
        stream.removeprefix(_STREAM): slots for stream, slots in kept.items() if stream.startswith(_STREAM)
    }
    silent = {
        stream.removeprefix(_REGISTERED): ad
        for stream, [ad, *_] in kept.items()
        if stream.startswith(_REGISTERED)
    }
    return checkpointer, Recalled(joined, absent, silent)


def _rows(frame: Frame) -> dict[str, tuple[int, bytes]]:
    return {entry.stream: (entry.version, row_of(decode(entry.data))) for entry in frame.entries}
