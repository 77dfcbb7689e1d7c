"""
A live feed of frames, and the certainty of noticing what is missing.
"""

from kettle.client.feed import Feed
from kettle.wire import frames
from kettle.wire.frames import Frame

QUIET = 0.01


def frame(number: int) -> bytes:
    return frames.encode(Frame("s", 1, number, number, 0, []))


async def test_frames_in_order_miss_nothing() -> None:
    """
    Each reader gets each frame, whatever the first number is.
    """
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
    """
    A number that is left out means that something was lost.
    """
    feed = Feed()
    with feed.tail() as tail:
        feed.deliver("", frame(7))
        feed.deliver("", b"no frame")
        feed.deliver("", frame(9))
        feed.deliver("", frame(10))
        assert [False, True, False] == [(await tail.next(QUIET))[1] for _ in range(3)]


async def test_silence_and_a_lost_connection_are_reasons_to_look() -> None:
    """
    Neither has a frame that could show a gap.
    """
    feed = Feed()
    with feed.tail() as tail:
        assert (None, True) == await tail.next(QUIET)
        feed.interrupted()
        assert (None, True) == await tail.next(60)


async def test_a_slow_reader_is_told() -> None:
    """
    The queue is bounded; what did not fit in is reported, once.
    """
    feed = Feed()
    with feed.tail() as tail:
        for number in range(3000):
            feed.deliver("", frame(number))
        assert (await tail.next(QUIET))[1]
