"""An older schedd beside a newer log."""

import msgspec
import pytest

from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.queue.recorder import restore
from kettle_wire.events import UnknownEventError
from kettle_wire.frames import Entry, Frame

SHARD = "schedd.ap"
LATER = msgspec.msgpack.encode({"event": "job.moved/9", "to": "node7"})


async def test_events_of_a_newer_version_are_refused_without_damage() -> None:
    """
    The owner does not begin; it says which type and what to do, and log and working set are as they were.
    """
    log = MemoryLog()
    working_set = MemoryWorkingSet(log)
    tenure = await log.take(SHARD, owner="newer")
    entry = Entry(stream="job/1.0", version=1, type="job.moved/9", data=LATER)
    await log.append(Frame(shard=SHARD, epoch=tenure.epoch, number=1, position=1, at=1, entries=[entry]))
    before = [frame async for frame in log.read(SHARD)]

    async with Shard.own(log, SHARD, owner="older") as shard:
        with pytest.raises(
            UnknownEventError, match=r"job\.moved/9.*a newer one has recorded it.*Nothing was changed"
        ):
            await restore(log, working_set, shard, Queue("ap"), interval=1.0)

    assert before == [frame async for frame in log.read(SHARD)]
    assert (0, []) == await working_set.load(SHARD)
