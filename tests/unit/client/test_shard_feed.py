"""A live feed of frames, and the certainty of noticing what is missing."""

from kettle.client.events.shard_feed import Feed
from kettle_wire import frames
from kettle_wire.frames import Entry, Frame

QUIET = 0.01


def recorded(number: int, entries: int = 1) -> Frame:
    return Frame("s", 1, number, number, 0, [Entry("job/1.0", number, "job.held/1", b"")] * entries)


def frame(number: int) -> bytes:
    return frames.encode(recorded(number))


async def test_frames_in_order_miss_nothing() -> None:
    """Each reader gets each frame, whatever the first number is."""
    feed = Feed()
    with feed.tail() as one, feed.tail() as other:
        for number in (7, 8):
            feed.deliver("", frame(number))
        for tail in (one, other):
            for number in (7, 8):
                found, missed = await tail.next(QUIET)
                assert found is not None
                assert (number, False) == (found.number, missed)


async def test_a_gap_is_noticed() -> None:
    """A number that is left out means that something was lost."""
    feed = Feed()
    with feed.tail() as tail:
        feed.deliver("", frame(7))
        feed.deliver("", b"no frame")
        feed.deliver("", frame(9))
        feed.deliver("", frame(10))
        assert [False, True, False] == [(await tail.next(QUIET))[1] for _ in range(3)]


async def test_silence_and_a_lost_connection_are_reasons_to_look() -> None:
    """Neither has a frame that could show a gap."""
    feed = Feed()
    with feed.tail() as tail:
        assert (None, True) == await tail.next(QUIET)
        feed.interrupted()
        assert (None, True) == await tail.next(60)


async def test_a_slow_reader_is_told() -> None:
    """The queue is bounded, in frames and in events; what did not fit in is reported."""
    for entries, count in ((1, 3000), (1000, 100)):
        feed = Feed()
        with feed.tail() as tail:
            for number in range(count):
                feed.deliver("", frames.encode(recorded(number, entries)))
            assert (await tail.next(QUIET))[1]


async def test_a_frame_without_its_entries_is_a_reason_to_look() -> None:
    """It was too large for the bus; the frames around it are in order."""
    feed = Feed()
    with feed.tail() as tail:
        feed.deliver("", frame(7))
        feed.deliver("", frames.encode(frames.hollow(recorded(8, 3))))
        feed.deliver("", frame(9))
        found = [await tail.next(QUIET) for _ in range(3)]
        assert [(7, False), (0, True), (9, False)] == [(f.number if f else 0, look) for f, look in found]
