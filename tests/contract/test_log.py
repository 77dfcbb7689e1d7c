"""What every adapter of the log promises."""

import uuid
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from kettle.eventsourcing.log import IMPORTED, Answered, FencedError, Log, LogError
from kettle.eventsourcing.memory import MemoryLog
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.locations import Place
from kettle_wire.events import JobHeld, JobReleased, JobsChanged, Procs
from kettle_wire.events import encode as encode_event
from kettle_wire.frames import Entry, Frame, encode


@pytest_asyncio.fixture(params=["memory", "postgres"])
async def log(request: pytest.FixtureRequest, real: Place) -> AsyncIterator[Log]:
    if request.param == "memory":
        yield MemoryLog()
        return
    async with PgLog.connect(real.addresses.database_url, patience=PATIENCE_S) as pg:
        yield pg


@pytest.fixture
def shard() -> str:
    return f"schedd.{uuid.uuid4().hex}"


def frame(shard: str, number: int, position: int, *streams: str, epoch: int = 1) -> Frame:
    entries = [
        Entry(stream, i + 1, "job.removed/1", bytes([number, i]), b"" if i else b"trace")
        for i, stream in enumerate(streams)
    ]
    return Frame(shard, epoch, number, position, 1_763_719_200_123_457 + number, entries)


async def test_what_is_appended_is_read_back_byte_for_byte(log: Log, shard: str) -> None:
    """A frame rebuilt from the log equals the one appended, to the microsecond and the byte."""
    frames = [
        frame(shard, 1, 1, "job/1.0", "job/1.1"),
        frame(shard, 2, 3, "ä/€"),
        frame(shard, 3, 4, "c", "d", "e"),
    ]
    await log.take(shard, owner="a")
    for one in frames:
        await log.append(one)
    assert [encode(f) for f in frames] == [encode(f) async for f in log.read(shard)]
    assert [2] == [f.number async for f in log.read(shard, after=1, until=2)]
    assert [] == [f.number async for f in log.read(shard, after=3)]


async def test_many_frames_are_read_in_order(log: Log, shard: str) -> None:
    """Frames come whole and in order, however reading is cut into pages."""
    await log.take(shard, owner="a")
    position = 1
    expected: list[bytes] = []
    for number in range(1, 30):
        one = frame(shard, number, position, *(f"s/{i}" for i in range(number * 37 % 190 + 1)))
        await log.append(one)
        expected.append(encode(one))
        position = one.head + 1
    assert expected == [encode(f) async for f in log.read(shard)]
    assert expected[10:20] == [encode(f) async for f in log.read(shard, after=10, until=20)]


async def test_taking_over_raises_the_epoch_and_keeps_the_head(log: Log, shard: str) -> None:
    """The next owner begins where the last one ended."""
    first = await log.take(shard, owner="a")
    await log.append(frame(shard, 1, 1, "x", "y"))
    second = await log.take(shard, owner="b")
    assert (1, 0, 0) == (first.epoch, first.head, first.frame)
    assert (2, 2, 1, "b") == (second.epoch, second.head, second.frame, second.owner)
    assert second == await log.tenure(shard)
    assert second in await log.shards()


async def test_no_service_goes_on_with_what_was_imported(log: Log, shard: str) -> None:
    """
    An archive of somebody may have a shard of the name of a service that this pool has not had yet: its people, tokens and jobs
    would be real ones. Nor does an import take a shard from its service.
    """
    await log.take(shard, owner=IMPORTED)
    await log.append(frame(shard, 1, 1, "x"))
    with pytest.raises(LogError, match="nobody goes on with it"):
        await log.take(shard, owner="a")
    again = await log.take(shard, owner=IMPORTED)
    assert (2, 1, IMPORTED) == (again.epoch, again.head, again.owner)
    other = f"{shard}-of-a-service"
    first = await log.take(other, owner="a")
    with pytest.raises(LogError, match="another pool"):
        await log.take(other, owner=IMPORTED)
    assert first == await log.tenure(other)


@pytest.mark.parametrize(
    ("number", "position", "epoch"),
    [(2, 2, 1), (1, 1, 2), (3, 2, 2), (2, 3, 2), (2, 1, 2), (2, 2, 3)],
    ids=[
        "stale epoch",
        "repeated",
        "frame too far",
        "position too far",
        "position too near",
        "epoch unknown",
    ],
)
async def test_a_stale_owner_writes_nothing(
    log: Log, shard: str, number: int, position: int, epoch: int
) -> None:
    """
    An owner with a wrong epoch, frame or head is fenced, and neither its events nor its answers are stored.
    """
    await log.take(shard, owner="a")
    await log.append(frame(shard, 1, 1, "x"))
    await log.take(shard, owner="b")
    before = await log.tenure(shard)
    with pytest.raises(FencedError):
        await log.append(
            frame(shard, number, position, "x", epoch=epoch), [Answered(id="c", frame=number, reply=b"r")]
        )
    assert before == await log.tenure(shard)
    assert [1] == [f.number async for f in log.read(shard)]
    assert [] == await log.answers(shard, newest=10)


async def test_nobody_appends_to_a_shard_that_nobody_took(log: Log, shard: str) -> None:
    """A shard exists once it has an owner."""
    with pytest.raises(FencedError):
        await log.append(frame(shard, 1, 1, "x"))
    assert await log.tenure(shard) is None
    assert [] == [f async for f in log.read(shard)]
    assert [] == await log.answers(shard, newest=1)


async def test_answers_are_stored_with_the_events(log: Log, shard: str) -> None:
    """The newest answers are there for the next owner, oldest first; the first answer to an id stays."""
    await log.take(shard, owner="a")
    for n in range(1, 6):
        await log.append(frame(shard, n, n, "x"), [Answered(id=f"c{n}", frame=n, reply=bytes([n]))])
    await log.append(frame(shard, 6, 6, "x"), [Answered(id="c5", frame=6, reply=b"another")])
    expected = [Answered(id=f"c{n}", frame=n, reply=bytes([n])) for n in (3, 4, 5)]
    assert expected == await log.answers(shard, newest=3)
    await log.forget_answers(shard, keep=2)
    assert expected[1:] == await log.answers(shard, newest=10)


async def test_a_frame_without_entries_stores_only_answers(log: Log, shard: str) -> None:
    """A command that changed nothing has an answer and takes no frame number, under the same guard."""
    await log.take(shard, owner="a")
    await log.append(frame(shard, 1, 1, "x"))
    await log.append(frame(shard, 2, 2), [Answered(id="c", frame=1, reply=b"r")])
    assert [Answered(id="c", frame=1, reply=b"r")] == await log.answers(shard, newest=9)
    await log.append(frame(shard, 2, 2, "y"))
    with pytest.raises(FencedError):
        await log.append(frame(shard, 2, 2), [Answered(id="d", frame=1, reply=b"r")])
    assert [1, 2] == [f.number async for f in log.read(shard)]


async def test_a_stream_is_read_alone(log: Log, shard: str) -> None:
    """All events of one stream, each with its frame and position."""
    await log.take(shard, owner="a")
    await log.append(frame(shard, 1, 1, "a", "b"))
    await log.append(frame(shard, 2, 3, "b", "c"))
    got = [
        (f.number, position, f.entries[0].stream, f.entries[0].data)
        for f, position in await log.stream(shard, "b")
    ]
    assert {(1, 2, "b", b"\x01\x01"), (2, 3, "b", b"\x02\x00")} == set(got)
    assert [] == await log.stream(shard, "z")


async def test_a_stream_has_what_was_recorded_of_many_jobs(log: Log, shard: str) -> None:
    """
    A job's events come from its own stream and from that of its cluster's jobs, in the order of their versions.
    """
    held, released = encode_event(JobHeld(code=1, reason="r")), encode_event(JobReleased())
    together = [
        encode_event(
            JobsChanged(cluster=1, type="job.held/1", data=msgspec.Raw(held), jobs=[Procs(0, 3, 1)])
        ),
        encode_event(
            JobsChanged(
                cluster=1,
                type="job.released/1",
                data=msgspec.Raw(released),
                jobs=[Procs(0, 1, 2), Procs(2, 1, 3)],
            )
        ),
    ]
    entries = [
        Entry("jobs/1", 1, "jobs.changed/1", together[0]),
        Entry("job/1.2", 2, "job.held/1", held),
        Entry("jobs/1", 2, "jobs.changed/1", together[1]),
    ]
    await log.take(shard, owner="a")
    for number, entry in enumerate(entries, start=1):
        await log.append(Frame(shard, 1, number, number, 1, [entry]))
    found: dict[str, list[tuple[int, int, str, bytes]]] = {}
    for stream in ("job/1.0", "job/1.1", "job/1.2", "job/1.3", "job/2.0", "jobs/1"):
        found[stream] = [
            (position, entry.version, entry.type, entry.data)
            for single, position in await log.stream(shard, stream)
            for entry in single.entries
        ]
    assert {
        "job/1.0": [(1, 1, "job.held/1", held), (3, 2, "job.released/1", released)],
        "job/1.1": [(1, 1, "job.held/1", held)],
        "job/1.2": [
            (1, 1, "job.held/1", held),
            (2, 2, "job.held/1", held),
            (3, 3, "job.released/1", released),
        ],
        "job/1.3": [],
        "job/2.0": [],
        "jobs/1": [(1, 1, "jobs.changed/1", together[0]), (3, 2, "jobs.changed/1", together[1])],
    } == found


async def test_shards_do_not_touch_each_other(log: Log, shard: str) -> None:
    """Each shard has its own numbers, events and answers."""
    other = shard + "-other"
    await log.take(shard, owner="a")
    await log.take(other, owner="a")
    await log.append(frame(shard, 1, 1, "x"), [Answered(id="c", frame=1, reply=b"1")])
    await log.append(frame(other, 1, 1, "x"), [Answered(id="c", frame=1, reply=b"2")])
    assert b"1" == (await log.answers(shard, newest=1))[0].reply
    assert b"2" == (await log.answers(other, newest=1))[0].reply
    assert [1] == [f.number async for f in log.read(other)]
