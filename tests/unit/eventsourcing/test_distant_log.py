"""A log whose database is elsewhere: its owner reads it to us, over the bus."""

import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Served
from kettle.eventsourcing.distant_log import DistantLog
from kettle.eventsourcing.log import LogUnavailableError
from kettle_wire.commands.log import READ_FRAMES, Frames, ReadFrames
from kettle_wire.frames import Entry, Frame, encode
from kettle_wire.identity import Identity, daemon
from kettle_wire.subjects import Subjects

SHARD = "schedd.ap1"
FRAMES = [
    Frame(
        shard=SHARD,
        epoch=1,
        number=number,
        position=number,
        at=0,
        entries=[Entry("s", number, "t/1", b"\x80")],
    )
    for number in (1, 2, 3)
]


async def served(server: MemoryServer) -> None:
    """An owner who reads one frame at a time."""

    async def answer(request: ReadFrames, _caller: Identity) -> Frames:
        return Frames(frames=[encode(each) for each in FRAMES[request.after : request.after + 1]], head=3)

    owner = MemoryBus(server, subjects=Subjects("p"), identity=daemon("schedd", "ap1"))
    await owner.serve("log", SHARD, [Served(READ_FRAMES, answer)], version="1.0.0")


async def test_it_has_what_its_owner_has() -> None:
    """
    Its head, and all frames in order, however few come at once; of a shard whose owner is away it says nothing.
    """
    server = MemoryServer()
    await served(server)
    log = DistantLog(
        MemoryBus(server, subjects=Subjects("p"), identity=daemon("accounting")), [SHARD, "schedd.away"]
    )
    assert [(SHARD, 3)] == [(each.shard, each.frame) for each in await log.shards()]
    assert FRAMES == [frame async for frame in log.read(SHARD)]
    assert FRAMES[1:2] == [frame async for frame in log.read(SHARD, after=1, until=2)]
    with pytest.raises(LogUnavailableError, match=r"the owner of schedd\.away does not answer"):
        await log.tenure("schedd.away")
