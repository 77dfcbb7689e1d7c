"""How much an end of a tunnel keeps of what the other end makes it keep, whatever that does."""

import asyncio
import tracemalloc

from kettle.published.flow import BUDGET
from kettle.published.frames import FIRST_WINDOW, FrameKind, frame, window
from kettle.published.multiplexer import Multiplexer
from kettle.published.tunnel import Tunnel


def test_no_more_is_taken_for_a_connection_that_takes_none() -> None:
    """Who has granted much and reads nothing makes us keep what all streams may keep, and no more."""
    mux = Multiplexer(opens=True)
    streams = [mux.open("web") for _ in range(3)]
    for stream in streams:
        list(mux.receive(window(stream, 1 << 30)))
        while room := mux.room(stream):
            mux.write(stream, bytes(min(room, 1 << 16)))
    kept = sum(map(mux.waiting, streams))
    assert BUDGET < kept <= BUDGET + len(streams) * FIRST_WINDOW
    mux.take(kept)
    assert BUDGET < mux.room(streams[0])


def test_small_pieces_count_as_well() -> None:
    """Of pieces of a byte there are not so many as bytes could be kept."""
    mux = Multiplexer(opens=True)
    stream = mux.open("web")
    while mux.room(stream):
        mux.write(stream, b"x")
    assert mux.waiting(stream) < FIRST_WINDOW // 8
    mux.take(FIRST_WINDOW)
    assert mux.room(stream)


class _Connection(asyncio.Transport):
    """Takes everything."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def writelines(self, list_of_data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return False


async def test_frames_of_a_byte_take_little_more_than_their_bytes() -> None:
    """Of a stream that nobody reads."""
    tunnel = Tunnel(opens=True)
    tunnel.connection_made(_Connection())
    opening = asyncio.create_task(tunnel.create_connection(asyncio.Protocol, "web"))
    await asyncio.sleep(0)
    tunnel.data_received(frame(FrameKind.OPENED, 1))
    stream, _ = await opening
    stream.pause_reading()
    data = frame(FrameKind.DATA, 1, b"x") * FIRST_WINDOW
    tracemalloc.start()
    try:
        tunnel.data_received(data)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert FIRST_WINDOW <= kept < 4 * FIRST_WINDOW
    tunnel.connection_lost(None)
