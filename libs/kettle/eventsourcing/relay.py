"""
Puts the frames of a shard on the bus, where stream sequence equals frame number.

What was just committed is published from memory; whatever the bus lost is published again from the log. Every
publication names the sequence that it expects, so a frame is never there twice, whoever else tries.
"""

import asyncio
import logging
from collections import deque
from typing import Final

from kettle.bus.backoff import Backoff
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
from kettle.wire.frames import Frame, encode
from kettle.wire.subjects import Subjects

IN_FLIGHT: Final = 64
"""Frames published and not yet confirmed."""
HELD_FRAMES: Final = 1_024
HELD_EVENTS: Final = 50_000
"""Beyond either, committed frames are not held in memory but read again from the log."""
REFILL_FRAMES: Final = 10_000
"""How many frames go back onto a stream that was lost; a reader that needs older ones asks the log."""
LOOK_S: Final = 10.0
"""A stream on which nothing happens is looked at so often."""
STREAM_BYTES: Final = 1 << 30

_logger = logging.getLogger(__name__)


class BusAheadError(LogError):
    """
    The bus has frames that the log has not: the log was restored from an old copy, and truth was lost.
    """


class _Outbox:
    """
    The frames that were committed and not yet taken.
    """

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
    Publish for ever. Raises BusAheadError rather than let log and bus tell different stories.
    """
    outbox = _Outbox()
    shard.on_commit(outbox.put)
    bus.on_return(outbox.look_again)
    backoff = Backoff()
    while True:
        try:
            last = await _stream(bus, shard, subjects, refill)
            while frames := await _due(log, shard, outbox, last):
                last = await _send(bus, subjects.events(shard.name), frames, last)
                backoff.reset()
            continue
        except (BusUnavailableError, ReplyTimeoutError) as error:
            _logger.warning("frames of %s wait for the bus: %s", shard.name, error)
        except (WrongSequenceError, NoResponderError) as error:
            _logger.warning("the stream of %s is not what it was: %s", shard.name, error)
        except RefusedError as error:
            raise LogError(
                f"the bus does not take a frame of {shard.name}: {error}. Frames have up to about 5 MB; "
                f"set the NATS server's max_payload to 8MB."
            ) from error
        await backoff.wait()


async def _stream(bus: Bus, shard: Shard, subjects: Subjects, refill: int) -> int:
    """
    The last frame on the bus, after making the stream if it is not there.
    """
    spec = StreamSpec(
        name=subjects.event_stream(shard.name),
        subjects=[subjects.events(shard.name)],
        max_bytes=STREAM_BYTES,
        first_sequence=max(1, shard.frame - refill + 1),
        remake=False,
    )
    last = await bus.ensure_stream(spec)
    if last > shard.frame:
        raise BusAheadError(
            f"the stream {spec.name} has frame {last}, but the log of {shard.name} ends with frame {shard.frame}: the "
            f"database was restored from an older copy. Restore a newer one, or accept the loss and delete the stream."
        )
    return last


async def _due(log: Log, shard: Shard, outbox: _Outbox, last: int) -> list[Frame]:
    """
    The frames after `last`, as soon as there are any; none when it is time to look at the stream.
    """
    while True:
        if frames := outbox.after(last):
            return frames
        if shard.frame > last:
            until = min(shard.frame, last + IN_FLIGHT)
            return [frame async for frame in log.read(shard.name, after=last, until=until)]
        try:
            async with asyncio.timeout(LOOK_S):
                await outbox.filled.wait()
        except TimeoutError:
            return []
        if outbox.doubtful:
            outbox.doubtful = False
            return []


async def _send(bus: Bus, subject: str, frames: list[Frame], last: int) -> int:
    """
    Publish frames in order, several at once; returns the number of the last one that the bus has.
    """
    for start in range(0, len(frames), IN_FLIGHT):
        sent = [
            bus.append(subject, encode(frame), expect_last=frame.number - 1)
            for frame in frames[start : start + IN_FLIGHT]
        ]
        for outcome in await asyncio.gather(*sent, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
            last = outcome
    return last
