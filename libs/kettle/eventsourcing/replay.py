"""
Frames of a shard for readers without a database, from the owner of the shard, which has one.

The bus keeps the newest frames, and those that are too large for a message without their entries. A reader that follows
a shard only by the bus and finds that something is missing requests it here.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from kettle.bus.batching import BatchingDelay
from kettle.bus.ports import Bus, BusError, RefusedError, Served
from kettle.bus.retryable import retryable
from kettle.eventsourcing.log import Log, LogUnavailableError
from kettle.retry.backoff import Backoff
from kettle.retry.loop import retry
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.log import LARGEST_NUMBER, READ_FRAMES, Frames, ReadFrames
from kettle_wire.frames import Frame, decode, encode, recorded
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects

ROLE: Final = "log"
"""Under which an owner answers for its shard, by the shard's name."""
AT_ONCE: Final = 4
"""Answers that are put together at the same time: each may hold as much as was asked for."""
FOLLOWED: Final = 64
"""Frames that a follower takes from the bus at once."""
PART_BYTES: Final = 4 * 1024 * 1024
DEADLINE_S: Final = 10.0
BACKOFF: Final = Backoff(first=0.05, longest=0.5)
"""
The waits before a missing owner is asked again; they are short, because readers are often started before owners.
"""

_log = logging.getLogger(__name__)


def served_frames(log: Log, shard: str) -> Served[Any, Any]:
    """
    What the owner of a shard answers beside its own commands: `bus.serve(ROLE, shard, [served_frames(log, shard)], ...)`.
    """
    gate = asyncio.Semaphore(AT_ONCE)

    async def answer(request: ReadFrames, _caller: Identity) -> Frames:
        try:
            async with gate:
                return await _frames(log, shard, request)
        except LogUnavailableError as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"the log of {shard} cannot be read now: {error}"
            ) from error

    return Served(READ_FRAMES, answer)


async def _frames(log: Log, shard: str, request: ReadFrames) -> Frames:
    tenure = await log.tenure(shard)
    head = tenure.frame if tenure is not None else 0
    until = min(request.until or head, head)
    frames: list[bytes] = []
    size = 0
    if until > request.after:
        async for frame in log.read(shard, after=request.after, until=until):
            data = encode(frame)
            if frames and size + len(data) > request.max_bytes:
                break
            frames.append(data)
            size += len(data)
    return Frames(frames=frames, head=head)


async def missing_frames(bus: Bus, shard: str, after: int, until: int) -> AsyncGenerator[Frame, None]:
    """
    The frames with `after < number <= until`, in order and without a gap, from the owner of the shard.

    Waits for an owner as long as it takes. Raises BusError if the owner does not have them.
    """
    while after < until:
        answer = await _asked(bus, shard, ReadFrames(after=after, until=until, max_bytes=PART_BYTES))
        if not answer.frames:
            raise BusError(f"the log of {shard} ends with frame {answer.head}: it has no frame {after + 1}")
        for data in answer.frames:
            frame = recorded(data)
            if frame.number != after + 1:
                raise BusError(
                    f"the owner of {shard} answered with frame {frame.number} instead of {after + 1}"
                )
            yield frame
            after = frame.number


async def followed_frames(
    bus: Bus, subjects: Subjects, shard: str, *, after: int, gather: BatchingDelay | None = None
) -> AsyncGenerator[Frame, None]:
    """The frames of `followed_batches`, one after the other; never ends. Use it with `aclosing`."""
    async with aclosing(followed_batches(bus, subjects, shard, after=after, gather=gather)) as batches:
        async for batch in batches:
            for frame in batch:
                yield frame


async def followed_batches(
    bus: Bus, subjects: Subjects, shard: str, *, after: int, gather: BatchingDelay | None = None
) -> AsyncGenerator[list[Frame], None]:
    """
    The frames of a shard behind one, in order and without a gap, as they are recorded, those together that have come together.

    Never ends; use it with `aclosing`. What the bus does not have comes from the owner of the shard. `gather`: how long frames may
    be gathered.
    """
    reading = bus.consume(
        subjects.event_stream(shard),
        "",
        subject=subjects.events(shard),
        batch=FOLLOWED,
        after=after,
        ephemeral=True,
        gather=gather,
    )
    async with aclosing(reading) as batches:
        async for batch in batches:
            together: list[Frame] = []
            for message in batch.messages:
                arrived = decode(message.data)
                if arrived.number <= after:
                    continue
                if isinstance(arrived, Frame) and arrived.number == after + 1:
                    together.append(arrived)
                else:
                    async for frame in missing_frames(bus, shard, after, arrived.number):
                        together.append(frame)
                        if len(together) >= FOLLOWED:  # very many may be missing
                            yield together
                            together = []
                after = arrived.number
            if together:
                yield together


async def head_frame(bus: Bus, shard: str) -> int:
    """
    The number of the last frame in the log of a shard, from its owner; waits for the owner without a limit.
    """
    return (await _asked(bus, shard, ReadFrames(after=LARGEST_NUMBER))).head


async def _asked(bus: Bus, shard: str, request: ReadFrames) -> Frames:
    def failed(error: Exception, pause: float) -> None:
        del pause
        _log.info("frames of %s are missing here and cannot be had yet: %s", shard, error)

    return await retry(
        lambda: bus.call(READ_FRAMES, shard, request, deadline=DEADLINE_S),
        BACKOFF,
        retryable=retryable,
        failed=failed,
    )
