"""The owner of a shard: numbers, groups, releases after the commit, stops when it is fenced."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.eventsourcing import shard as module
from kettle.eventsourcing.log import Answered, FencedError, LogError
from kettle.eventsourcing.memory import MemoryLog
from kettle.eventsourcing.shard import Shard
from kettle_wire.event_expansion import size
from kettle_wire.events import Event, JobHeld, JobRemoved, JobsChanged, Procs, decode
from kettle_wire.events import encode as encode_event
from kettle_wire.frames import Frame, encode

REMOVED = JobRemoved(reason="x")


class GatedLog(MemoryLog):
    """Commits when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.appends = 0

    async def append(self, frame: Frame, answers: Sequence[Answered] = ()) -> None:
        self.appends += 1
        await self.gate.wait()
        await super().append(frame, answers)


@asynccontextmanager
async def running(log: MemoryLog, *, answers: int = 100) -> AsyncGenerator[Shard, None]:
    async with Shard.own(log, "s", owner="me", answers=answers) as shard:
        committer = asyncio.create_task(shard.run())
        try:
            yield shard
        finally:
            committer.cancel()


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_events_are_numbered_without_gaps() -> None:
    """Positions count in the shard, versions in each stream, and the future is the frame's number."""
    log = MemoryLog()
    async with running(log) as shard:
        first = await shard.record([("a", REMOVED), ("b", REMOVED), ("a", REMOVED)], now_us=7)
        second = await shard.record(
            [("a", JobHeld(code=1, reason="r"))], now_us=8, meta=lambda stream: stream.encode()
        )
        assert (1, 2, 3, 1) == (first, second, shard.version("a"), shard.version("b"))
    one, two = [frame async for frame in log.read("s")]
    assert [("a", 1), ("b", 1), ("a", 2)] == [(e.stream, e.version) for e in one.entries]
    assert (1, 1, 7, 2, 4, 8) == (one.number, one.position, one.at, two.number, two.position, two.at)
    assert (JobHeld(code=1, reason="r"), b"a", "job.held/1") == (
        decode(two.entries[0].data),
        two.entries[0].meta,
        two.entries[0].type,
    )


async def test_what_comes_during_a_commit_is_the_next_frame() -> None:
    """
    There is one commit at a time, and all waiting callers share the next one; nothing is answered before its commit.
    """
    log = GatedLog()
    async with running(log) as shard:
        log.gate.clear()
        futures = [shard.record([("a", REMOVED)], now_us=1)]
        await turns()
        futures += [shard.record([("a", REMOVED)], now_us=2) for _ in range(10)]
        await turns()
        assert (1, 11, 0) == (log.appends, shard.backlog, shard.frame)
        assert not any(future.done() for future in futures)
        log.gate.set()
        assert [1] + [2] * 10 == await asyncio.gather(*futures)
        assert (2, 0, 2) == (log.appends, shard.backlog, shard.frame)


async def test_a_record_is_never_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that has no room is closed first; what is larger than a batch has one of its own."""
    monkeypatch.setattr(module, "BATCH_EVENTS", 4)
    log = MemoryLog()
    async with running(log) as shard:
        futures = [shard.record([("a", REMOVED)] * n, now_us=1) for n in (3, 2, 2, 9, 1)]
        assert [1, 2, 2, 3, 4] == await asyncio.gather(*futures)
    assert [3, 4, 9, 1] == [len(frame.entries) async for frame in log.read("s")]


async def test_a_batch_is_bounded_in_what_it_is_to_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event of many jobs counts as the single ones that it stands for."""
    monkeypatch.setattr(module, "BATCH_SINGLES", 10)
    data = msgspec.Raw(encode_event(REMOVED))

    def of_jobs(count: int) -> tuple[str, JobsChanged]:
        return "jobs/1", JobsChanged(
            cluster=1, type="job.removed/1", data=data, jobs=[Procs(0, count - 1, 1), Procs(count, 1, 1)]
        )

    log = MemoryLog()
    async with running(log) as shard:
        records: list[list[tuple[str, Event]]] = [
            [of_jobs(6)],
            [of_jobs(4)],
            [of_jobs(30)],
            [("a", REMOVED)] * 8,
            [of_jobs(3)],
        ]
        futures = [shard.record(each, now_us=1) for each in records]
        assert [1, 1, 2, 3, 4] == await asyncio.gather(*futures)
    assert [10, 30, 8, 3] == [size(frame) async for frame in log.read("s")]


async def test_a_batch_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a frame fits into a message of the bus."""
    monkeypatch.setattr(module, "BATCH_BYTES", 1_000)
    log = MemoryLog()
    async with running(log) as shard:
        await asyncio.gather(
            *(shard.record([("a", JobRemoved(reason="x" * 300))], now_us=1) for _ in range(9))
        )
    assert all(len(encode(frame)) <= 1_000 for frame in [f async for f in log.read("s")])


async def test_an_answer_is_given_again_and_not_before_it_is_committed() -> None:
    """
    A command that is repeated gets the first answer, also while that is being committed, also from the next owner.
    """
    log = GatedLog()
    async with running(log) as shard:
        assert shard.answer("c") is None
        assert shard.answer("") is None
        log.gate.clear()
        recorded = shard.record([("a", REMOVED)], now_us=1, command="c", reply=lambda frame: b"in %d" % frame)
        again = shard.answer("c")
        await turns()
        later = shard.answer("c")
        assert again is not None
        assert later is not None
        assert not again.done()
        log.gate.set()
        assert (1, b"in 1", b"in 1") == (await recorded, await again, await later)
        repeated = shard.answer("c")
        assert repeated is not None
        assert b"in 1" == await repeated
        with pytest.raises(ValueError, match="answered already"):
            shard.record([("a", REMOVED)], now_us=1, command="c")
    async with running(log) as successor:
        known = successor.answer("c")
        assert known is not None
        assert b"in 1" == await known


async def test_one_who_gives_up_does_not_take_the_answer_from_others() -> None:
    """Each waits for a future of its own."""
    log = GatedLog()
    async with running(log) as shard:
        log.gate.clear()
        recorded = shard.record([("a", REMOVED)], now_us=1, command="c", reply=lambda _frame: b"r")
        first, second = shard.answer("c"), shard.answer("c")
        await turns()
        assert first is not None
        assert second is not None
        recorded.cancel()
        first.cancel()
        log.gate.set()
        assert b"r" == await second


async def test_an_answer_without_events_is_stored() -> None:
    """It takes no frame: its number is that of the frame before."""
    log = MemoryLog()
    async with running(log) as shard:
        await shard.record([("a", REMOVED)], now_us=1)
        assert 1 == await shard.record([], now_us=2, command="c", reply=lambda frame: b"%d" % frame)
        assert 2 == await shard.record([("a", REMOVED)], now_us=3)
    assert [Answered(id="c", frame=1, reply=b"1")] == await log.answers("s", newest=5)


async def test_a_barrier_waits_for_what_was_recorded_before() -> None:
    """A refusal that rests on an uncommitted fact is not told before that is committed."""
    log = GatedLog()
    async with running(log) as shard:
        assert 0 == await shard.record([], now_us=1)
        log.gate.clear()
        shard.record([("a", REMOVED)], now_us=1)
        before = shard.record([], now_us=1)
        await turns()
        during = shard.record([], now_us=1)
        shard.record([("a", REMOVED)], now_us=1)
        after = shard.record([], now_us=1)
        await turns()
        assert not before.done()
        assert not during.done()
        log.gate.set()
        assert (1, 1, 2) == (await before, await during, await after)
        assert 2 == await shard.record([], now_us=1)


async def test_an_owner_that_was_overtaken_stops_and_so_do_its_callers() -> None:
    """Everybody who waits is told, and so is everybody who comes later."""
    log = GatedLog()
    async with Shard.own(log, "s", owner="old") as shard:
        committer = asyncio.create_task(shard.run())
        await log.take("s", owner="new")
        waiting = [shard.record([("a", REMOVED)], now_us=1, command="c")]
        answer = shard.answer("c")
        with pytest.raises(FencedError):
            await committer
        waiting.append(shard.record([("a", REMOVED)], now_us=1))
        waiting.append(shard.record([], now_us=1))
        assert answer is not None
        for future in waiting:
            with pytest.raises(FencedError):
                await future
        with pytest.raises(FencedError):
            await answer
    assert [] == [frame async for frame in log.read("s")]


async def test_what_was_in_hand_when_the_owner_stopped_is_unknown() -> None:
    """Cancellation is neither success nor failure."""
    log = GatedLog()
    log.gate.clear()
    async with running(log) as shard:
        future = shard.record([("a", REMOVED)], now_us=1)
        await turns()
    with pytest.raises(LogError, match="unknown"):
        await future


async def test_sinks_see_each_frame_in_order_before_the_callers() -> None:
    """So that a caller that reads after its commit finds its effect."""
    log = MemoryLog()
    seen: list[int] = []
    async with running(log) as shard:
        shard.on_commit(lambda frame: seen.append(frame.number))
        for expected in (1, 2, 3):
            assert expected == await shard.record([("a", REMOVED)], now_us=1)
            assert list(range(1, expected + 1)) == seen


async def test_versions_go_on_from_what_was_adopted() -> None:
    """A new owner counts on from the working set; a stream that is over is forgotten."""
    log = MemoryLog()
    async with running(log) as shard:
        shard.adopt({"a": 41, "b": 7})
        await shard.record([("a", REMOVED), ("b", REMOVED)], now_us=1)
        assert (42, 8) == (shard.version("a"), shard.version("b"))
        shard.retire("b")
        assert (42, 0) == (shard.version("a"), shard.version("b"))


HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("behind_us", "expected"),
    [(-5, 10 * HOUR_US + 5), (1, 10 * HOUR_US), (HOUR_US, 10 * HOUR_US), (2 * HOUR_US, 8 * HOUR_US)],
)
async def test_time_does_not_go_backwards_with_the_owner(behind_us: int, expected: int) -> None:
    """A new owner whose clock is behind dates its frames like the last one, unless that was hours ahead."""
    log = MemoryLog()
    async with running(log) as first:
        await first.record([("job/1.0", REMOVED)], now_us=10 * HOUR_US)
    async with running(log) as second:
        await second.record([("job/1.0", REMOVED)], now_us=10 * HOUR_US - behind_us)
    assert [10 * HOUR_US, expected] == [frame.at async for frame in log.read("s")]


async def test_only_so_many_answers_are_kept() -> None:
    """The oldest are forgotten in memory and in the log."""
    log = MemoryLog()
    async with running(log, answers=10) as shard:
        for i in range(50):
            await shard.record([], now_us=1, command=f"c{i}")
        assert shard.answer("c0") is None
        assert shard.answer("c49") is not None
        await turns()
    assert len(await log.answers("s", newest=100)) <= 21


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from("abc"), max_size=5), st.booleans(), st.booleans()),
        min_size=1,
        max_size=30,
    )
)
def test_whatever_is_recorded_the_log_is_contiguous(records: list[tuple[list[str], bool, bool]]) -> None:
    """
    Frames, positions and the versions of each stream have neither gap nor repetition, and every event is there once.
    """

    async def scenario() -> None:
        log = MemoryLog()
        async with running(log) as shard:
            futures: list[asyncio.Future[int]] = []
            for i, (streams, is_command, pause) in enumerate(records):
                command = f"c{i}" if is_command else ""
                futures.append(shard.record([(s, REMOVED) for s in streams], now_us=i, command=command))
                if pause:
                    await turns(1)
            await asyncio.gather(*futures)
        position, versions = 0, dict.fromkeys("abc", 0)
        frames = [frame async for frame in log.read("s")]
        assert list(range(1, len(frames) + 1)) == [frame.number for frame in frames]
        for frame in frames:
            assert position + 1 == frame.position
            position = frame.head
            for entry in frame.entries:
                versions[entry.stream] += 1
                assert versions[entry.stream] == entry.version
        assert sum(len(streams) for streams, _, _ in records) == position

    asyncio.run(scenario())
