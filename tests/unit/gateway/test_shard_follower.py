"""What is told of a shard whose log is not what it was when its mark was set."""

from collections.abc import AsyncGenerator
from typing import cast

from kettle.bus.ports import Batch, Bus, Message
from kettle_services.gateway.domain.batch import Mark, Piece
from kettle_services.gateway.domain.cloud_events import Publisher
from kettle_services.gateway.domain.owner_cache import Owners
from kettle_services.gateway.job_owners import Registry
from kettle_services.gateway.shard_follower import Follower
from kettle_wire.events import MachineJoined, encode, tag_of
from kettle_wire.frames import Entry, Frame
from kettle_wire.frames import encode as encode_frame
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")


class Arrived:
    """A batch of messages."""

    def __init__(self, *frames: Frame) -> None:
        subject = SUBJECTS.events("collector")
        self.messages = [Message(subject, frame.number, encode_frame(frame)) for frame in frames]

    async def ack(self) -> None:
        pass


class OneBatch:
    """A bus that has these frames and ends."""

    def __init__(self, *frames: Frame) -> None:
        self._frames = frames

    async def consume(self, *_what: object, **_how: object) -> AsyncGenerator[Batch, None]:
        yield Arrived(*self._frames)


def frame(number: int, *, epoch: int) -> Frame:
    event = MachineJoined(machine="node1", cpus=4, memory=8)
    entry = Entry("machine/node1", number, tag_of(event), encode(event), b"")
    return Frame("collector", epoch, number, number, number, [entry])


async def told(mark: Mark, *frames: Frame) -> list[int]:
    """The numbers of the frames that are told after a mark."""
    bus = cast("Bus", OneBatch(*frames))
    registry, publisher = Registry(bus, Owners(9)), Publisher(SUBJECTS, limit=10_000)
    found: list[int] = []

    async def hand_on(piece: Piece) -> None:
        found.append(piece.mark.frame)

    await Follower(bus, SUBJECTS, "collector", registry, publisher).follow(mark, hand_on)
    return found


async def test_what_a_restored_log_records_anew_is_told() -> None:
    """Frames 3 to 5 were told, and lost with the database: the new ones of these numbers are other events."""
    anew = [frame(2, epoch=1), frame(3, epoch=2), frame(4, epoch=2), frame(5, epoch=3), frame(6, epoch=3)]
    assert [3, 4, 5, 6] == await told(Mark(5, 5, 1), *anew)


async def test_what_was_told_is_told_once_whoever_owns_the_shard() -> None:
    """A change of the owner alone makes nothing come again."""
    again = [frame(4, epoch=1), frame(5, epoch=2), frame(6, epoch=3)]
    assert [6] == await told(Mark(5, 5, 2), *again)
