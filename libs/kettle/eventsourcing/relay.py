"""
Puts the frames of a shard on the bus, where stream sequence equals frame number.

What was just committed is published from memory; what the bus lost is published again from the log. Every publication
names the sequence that it expects, so a frame is never published twice, even with several publishers. A frame that is
too large for one message is published hollow: readers get its entries from the log, or from the owner (`replay`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import Final

from kettle.bus.ports import (
    Bus,
    BusUnavailableError,
    NoResponderError,
    RefusedError,
    ReplyTimeoutError,
    StreamSpec,
    WrongSequenceError,
)
from kettle.eventsourcing.log import Log, LogError
from kettle.eventsourcing.shard import Shard
from kettle.faults import fault_point
from kettle.retry.loop import Waits
from kettle_wire.frames import Frame, encode, hollow
from kettle_wire.subjects import Subjects

IN_FLIGHT: Final = 64
"""Frames published and not yet confirmed, or read from the log at once."""
IN_FLIGHT_BYTES: Final = 16 * 1024 * 1024
"""The approximate number of bytes; a single frame may have more."""
HELD_FRAMES: Final = 1_024
HELD_EVENTS: Final = 50_000
"""Beyond either, committed frames are not held in memory but read again from the log."""
REFILL_FRAMES: Final = 10_000
"""How many frames go back onto a stream that was lost; a reader that needs older ones asks the log."""
LOOK_S: Final = 30.0
"""A stream on which nothing happens is looked at so often; one on which something happens says itself what is wrong with it."""
STREAM_BYTES: Final = 1 << 30

_log = logging.getLogger(__name__)


class BusAheadError(LogError):
    """The bus has frames that the log has not: the log was restored from an old copy, and truth was lost."""


class _Outbox:
    """The frames that were committed and not yet taken."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()
        self._events = 0
        self.filled = asyncio.Event()
        self.doubtful = False
        """The bus may have lost the stream."""

    def put(self, frame: Frame) -> None:
        if len(self._frames) >= HELD_FRAMES or self._events >= HELD_EVENTS:
            self._clear()
        self._frames.append(frame)
        self._events += len(frame.entries)
        self.filled.set()

    def look_again(self) -> None:
        self.doubtful = True
        self.filled.set()

    def after(self, number: int) -> list[Frame]:
        """
        The frames that follow on `number`, without a gap; none if the first of them is not held (any more).
        """
        frames = [frame for frame in self._frames if frame.number > number]
        self._clear()
        self.filled.clear()
        return frames if frames and frames[0].number == number + 1 else []

    def _clear(self) -> None:
        self._frames.clear()
        self._events = 0


async def relay(bus: Bus, log: Log, shard: Shard, subjects: Subjects, *, refill: int = REFILL_FRAMES) -> None:
    """
    Publish frames without end. Raises BusAheadError if the bus has frames that the log does not have, and FencedError
    if they show that another process owns the shard now.
    """
    outbox = _Outbox()
    shard.on_commit(outbox.put)
    bus.on_return(outbox.look_again)
    waits = Waits()
    while True:
        try:
            last = await _stream(bus, shard, subjects, refill)
            while frames := await _due(log, shard, outbox, last):
                last = await _send(bus, subjects.events(shard.name), frames, last)
                waits.reset()
            continue
        except (BusUnavailableError, ReplyTimeoutError) as error:
            _log.warning("frames of %s wait for the bus: %s", shard.name, error)
        except (WrongSequenceError, NoResponderError) as error:
            _log.warning("the stream of %s is not what it was: %s", shard.name, error)
        except RefusedError as error:
            raise LogError(
                f"the bus does not take a frame of {shard.name}: {error}. "
                f"Raise max_msg_size of the stream {subjects.event_stream(shard.name)}, or delete the stream."
            ) from error
        await waits.wait()


async def _stream(bus: Bus, shard: Shard, subjects: Subjects, refill: int) -> int:
    """The last frame on the bus, after making the stream if it is not there."""
    spec = StreamSpec(
        name=subjects.event_stream(shard.name),
        subjects=[subjects.events(shard.name)],
        max_bytes=STREAM_BYTES,
        first_sequence=max(1, shard.frame - refill + 1),
        remake=False,
    )
    last = await bus.ensure_stream(spec)
    if last > shard.frame:
        await shard.look()  # the new owner of the shard has published frames that we do not know
        raise _ahead(spec.name, last, shard)
    return last


async def not_ahead(bus: Bus, shard: Shard, subjects: Subjects) -> None:
    """
    Look whether the bus knows more than the log, before anything is recorded that would contradict it.

    Raises BusAheadError.
    """
    stream = subjects.event_stream(shard.name)
    last = await bus.last_sequence(stream) or 0
    if last > shard.frame:
        raise _ahead(stream, last, shard)


def _ahead(stream: str, last: int, shard: Shard) -> BusAheadError:
    return BusAheadError(
        f"the stream {stream} has frame {last}, but the log of {shard.name} ends with frame {shard.frame}: the "
        f"database was restored from an older copy. Restore a newer one, or accept the loss and delete the stream."
    )


async def _due(log: Log, shard: Shard, outbox: _Outbox, last: int) -> list[Frame]:
    """The frames after `last`, as soon as there are any; none when it is time to look at the stream."""
    while True:
        if frames := outbox.after(last):
            return frames
        if shard.frame > last:
            return await _read(log, shard.name, after=last, until=min(shard.frame, last + IN_FLIGHT))
        try:
            async with asyncio.timeout(LOOK_S):
                await outbox.filled.wait()
        except TimeoutError:
            return []
        if outbox.doubtful:
            outbox.doubtful = False
            return []


async def _read(log: Log, shard: str, *, after: int, until: int) -> list[Frame]:
    frames: list[Frame] = []
    size = 0
    async for frame in log.read(shard, after=after, until=until):
        frames.append(frame)
        size += sum(len(entry.data) for entry in frame.entries)
        if size >= IN_FLIGHT_BYTES:
            break
    return frames


async def _send(bus: Bus, subject: str, frames: list[Frame], last: int) -> int:
    """Publish frames in order, several at once; returns the number of the last one that the bus has."""
    for messages in _groups(frames, bus.payload_limit):
        fault_point("relay.before")
        sent = [bus.append(subject, data, expect_last=number - 1) for number, data in messages]
        for outcome in await asyncio.gather(*sent, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
            last = outcome
        fault_point("relay.published")
    return last


def _groups(frames: list[Frame], limit: int) -> Iterator[list[tuple[int, bytes]]]:
    """The messages that are sent at once, each with its frame's number."""
    group: list[tuple[int, bytes]] = []
    size = 0
    for frame in frames:
        data = encode(frame)
        if len(data) > limit:
            data = encode(hollow(frame))
        if group and (len(group) >= IN_FLIGHT or size + len(data) > IN_FLIGHT_BYTES):
            yield group
            group, size = [], 0
        group.append((frame.number, data))
        size += len(data)
    if group:
        yield group
