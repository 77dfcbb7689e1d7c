import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from kettle.testing.patience import PATIENCE_S
from kettle.userlog import Appender, Checkpoint, Missing, UserLogError, UserLogProjector, Writer, follow
from kettle_wire import frames
from kettle_wire.events import ClusterSubmitted, JobRemoved, encode, tag_of
from kettle_wire.frames import Entry, Frame, Hollow, hollow


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    """The file is readable for everybody, no matter how strict the service's own umask is."""
    old = os.umask(0o077)
    try:
        Appender().append(tmp_path / "l", "a\n...\n")
    finally:
        os.umask(old)
    Appender(fsync=True).append(tmp_path / "l", "b\n...\n")
    assert "a\n...\nb\n...\n" == (tmp_path / "l").read_text()
    assert 0o644 == (tmp_path / "l").stat().st_mode & 0o777


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    """What the submitter decided about an existing file stays."""
    path = tmp_path / "l"
    path.touch(0o600)
    Appender().append(path, "a\n...\n")
    assert 0o600 == path.stat().st_mode & 0o777


@pytest.mark.parametrize("name", ["missing/l", "file/l", "pipe", ""])
def test_refused(tmp_path: Path, name: str) -> None:
    """No directory is made, and nothing but a regular file is written to; nobody waits for a pipe."""
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserLogError, match="cannot write the job event log"):
        Appender().append(tmp_path / name, "a\n...\n")
    assert not (tmp_path / "missing").exists()


def test_nowhere() -> None:
    """A log that goes nowhere is no error."""
    Appender().append(Path(os.devnull), "a\n...\n")


def test_writers_do_not_mix(tmp_path: Path) -> None:
    """Events of several writers stay whole."""
    path = tmp_path / "l"
    texts = [str(n) * 3000 + "\n...\n" for n in range(4)]

    def write(text: str) -> None:
        for _ in range(50):
            Appender().append(path, text)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    parts = path.read_text().split("\n...\n")
    assert ["", *sorted(str(n) * 3000 for n in range(4) for _ in range(50))] == sorted(parts)


def test_tail_begins_with_a_whole_event(tmp_path: Path) -> None:
    """A tail that is cut leaves the torn first event out; a missing file has none."""
    path = tmp_path / "l"
    assert "" == Appender().tail(path)
    path.write_text("aaaa\n...\nbbbb\n...\n")
    assert "bbbb\n...\n" == Appender().tail(path, limit=15)
    assert "aaaa\n...\nbbbb\n...\n" == Appender().tail(path)


def unexpected(error: UserLogError) -> None:
    raise AssertionError(str(error))


class Stored(msgspec.Struct):
    data: bytes


class OneDelivery:
    """Frames in one delivery, then silence."""

    def __init__(self, *contents: Frame | Hollow) -> None:
        self.messages = [Stored(frames.encode(frame)) for frame in contents]
        self.acked = asyncio.Event()

    async def ack(self) -> None:
        self.acked.set()

    async def forever(self) -> AsyncIterator["OneDelivery"]:
        yield self
        await asyncio.Event().wait()


def two_frames(log: Path) -> tuple[Frame, Frame]:
    submitted = ClusterSubmitted(
        cluster=1, owner="a", ad={"UserLog": str(log), "Iwd": "/"}, columns=[], rows=[[], []]
    )
    removed = JobRemoved(reason="r")
    return (
        Frame("s", 1, 1, 1, 10**6, [Entry("cluster/1", 1, tag_of(submitted), encode(submitted))]),
        Frame("s", 1, 2, 2, 10**6, [Entry("job/1.0", 1, tag_of(removed), encode(removed))]),
    )


async def nothing(after: int, until: int) -> AsyncGenerator[Frame, None]:
    """Nobody has anything that the bus left out."""
    raise AssertionError(f"frames {after + 1} to {until} were asked for")
    yield


async def follow_until_acked(
    delivery: OneDelivery, checkpoint: Checkpoint, writer: Writer, missing: Missing = nothing
) -> None:
    projector = UserLogProjector("ap", zone=UTC, snapshot=checkpoint.load())
    following = asyncio.ensure_future(follow(delivery.forever(), projector, writer, checkpoint, missing))
    async with asyncio.timeout(PATIENCE_S):
        await delivery.acked.wait()
    following.cancel()
    await asyncio.wait([following])


async def test_following_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """
    After a stop the checkpoint knows the jobs: the next frame's line is written, the earlier ones are not again.
    """
    log, checkpoint = tmp_path / "l", Checkpoint(tmp_path / "state")
    first, second = two_frames(log)
    for frame in (first, second):
        writer = Writer(Appender(), failed=unexpected)
        await follow_until_acked(OneDelivery(first, frame), checkpoint, writer)
    assert ["000", "000", "009"] == [event[:3] for event in log.read_text().split("...\n")[:-1]]


class Counting(Appender):
    """Remembers what was appended at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.appended: list[str] = []

    def append(self, path: Path, text: str, *, owner: str = "") -> None:
        self.appended.append(text)
        super().append(path, text, owner=owner)


async def test_what_comes_together_is_written_together(tmp_path: Path) -> None:
    """A file is opened, locked and written once for all frames of a delivery, in their order."""
    log, appender = tmp_path / "l", Counting()
    delivery = OneDelivery(*two_frames(log))
    await follow_until_acked(delivery, Checkpoint(tmp_path / "c"), Writer(appender, failed=unexpected))
    assert [log.read_text()] == appender.appended
    assert ["000", "000", "009"] == [event[:3] for event in log.read_text().split("...\n")[:-1]]


async def test_what_waits_for_a_missing_frame_is_written_at_a_stop(tmp_path: Path) -> None:
    """The checkpoint of a stop knows of no frame whose lines are not in the files."""
    log, checkpoint = tmp_path / "l", Checkpoint(tmp_path / "c")
    first, second = two_frames(log)
    asked = asyncio.Event()

    async def missing(after: int, until: int) -> AsyncGenerator[Frame, None]:
        asked.set()
        await asyncio.Event().wait()
        yield second

    projector = UserLogProjector("ap", zone=UTC)
    deliveries = OneDelivery(first, hollow(second)).forever()
    writer = Writer(Appender(), failed=unexpected)
    following = asyncio.ensure_future(follow(deliveries, projector, writer, checkpoint, missing))
    async with asyncio.timeout(PATIENCE_S):
        await asked.wait()
    following.cancel()
    await asyncio.wait([following])
    assert 1 == UserLogProjector("ap", snapshot=checkpoint.load()).frame
    assert ["000", "000"] == [event[:3] for event in log.read_text().split("...\n")[:-1]]


async def test_a_lost_checkpoint_writes_nothing_twice(tmp_path: Path) -> None:
    """Frames that come again after a crash are compared with what the files say."""
    log = tmp_path / "l"
    first, second = two_frames(log)
    await follow_until_acked(
        OneDelivery(first), Checkpoint(tmp_path / "a"), Writer(Appender(), failed=unexpected)
    )
    await follow_until_acked(
        OneDelivery(first, second),
        Checkpoint(tmp_path / "b"),
        Writer(Appender(), redelivered=2, failed=unexpected),
    )
    assert ["000", "000", "009"] == [event[:3] for event in log.read_text().split("...\n")[:-1]]


async def test_a_bad_file_stops_nobody(tmp_path: Path) -> None:
    """A file that cannot be written is reported, and the frame is acknowledged."""
    first, _ = two_frames(tmp_path / "no" / "l")
    failures: list[UserLogError] = []
    delivery = OneDelivery(first)
    await follow_until_acked(delivery, Checkpoint(tmp_path / "c"), Writer(Appender(), failed=failures.append))
    assert [tmp_path / "no" / "l"] == [failure.path for failure in failures]


async def test_what_the_bus_left_out_is_asked_for(tmp_path: Path) -> None:
    """
    Frames that it no longer has, and those that it has without their entries, are written in their order.
    """
    log = tmp_path / "l"
    first, second = two_frames(log)
    asked: list[tuple[int, int]] = []

    async def missing(after: int, until: int) -> AsyncGenerator[Frame, None]:
        asked.append((after, until))
        for frame in (first, second)[after:until]:
            yield frame

    for number, delivery in enumerate([OneDelivery(second), OneDelivery(hollow(first), hollow(second))]):
        checkpoint, writer = Checkpoint(tmp_path / str(number)), Writer(Appender(), failed=unexpected)
        await follow_until_acked(delivery, checkpoint, writer, missing)
        assert ["000", "000", "009"] == [event[:3] for event in log.read_text().split("...\n")[:-1]]
        log.unlink()
    assert [(0, 1), (0, 1), (1, 2)] == asked


class Slow(UserLogProjector):
    """One whose state takes 1 s to encode, by a clock that nothing else moves."""

    now = 0.0
    taken = 0

    def snapshot(self) -> bytes:
        Slow.now += 1.0
        Slow.taken += 1
        return super().snapshot()


async def test_a_large_state_is_saved_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving has a fiftieth of the time at most, however many deliveries there are."""
    module = import_module("kettle.userlog.shard_follower")
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: Slow.now))
    monkeypatch.setattr(module, "_SAVE_EVERY", 2)
    delivery, seen = OneDelivery(), list[int]()

    async def deliveries() -> AsyncIterator[OneDelivery]:
        for number in range(200):
            if number == 100:
                seen.append(Slow.taken)
                Slow.now += 50.0
            yield delivery
        seen.append(Slow.taken)

    await follow(
        deliveries(),
        Slow("ap", zone=UTC),
        Writer(Appender(), failed=unexpected),
        Checkpoint(tmp_path / "state"),
        nothing,
    )
    assert [1, 2] == seen
