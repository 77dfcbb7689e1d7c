"""
Reads a bucket: what is there, then every change, also over a bucket that was lost and made again.

The server says nothing of an entry that expires. So a watcher counts the lives of the entries itself, and asks for one whose
time should be over whether it is there still: the server decides, by its own clock.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import lru_cache
from typing import Final

from kettle.bus.jetstream import NANOSECONDS, NotFoundError, StreamInfo
from kettle.bus.ports import BusUnavailableError, KeyChange, ReplyTimeoutError
from kettle.bus.stream_reader import Delivery, StreamReader
from kettle.bus.watched_keys import WatchedKeys

_ONE_BY_ONE: Final = 16
"""Of more keys than these the server is asked together with all others."""
_LATE_S: Final = 0.05
"""The server needs a moment for an expiry, too: a question at the very instant would be too early."""
_UNITS_S: Final = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


async def watch(reader: StreamReader, *, prefix: str, keys: str) -> AsyncGenerator[KeyChange | None, None]:
    """See `Bus.watch`; `prefix` is what stands before the key in a subject."""
    known, loop = WatchedKeys(), asyncio.get_running_loop()
    complete, consumers, generation, target = False, 0, 0, 0
    lives = _Lives()
    async with aclosing(reader.batches()) as batches:
        async for deliveries in batches:
            began = reader.began
            if reader.consumers != consumers and began is not None:
                consumers, target = reader.consumers, began.state.last_seq
                lives = _Lives(began, loop.time())
                if reader.generation != generation:
                    complete, generation = False, reader.generation
                    known.lost(loop.time() + lives.default)
                if not complete and not reader.pending:
                    complete = True
                    yield None
            for delivery in deliveries:
                change = _change(delivery, prefix)
                known.record_change(change, lives.end(delivery))
                yield change
                if not complete and (not delivery.pending or delivery.sequence >= target):
                    complete = True
                    yield None
            if complete:
                for change in await _expired(reader, known, prefix=prefix, keys=keys):
                    known.record_change(change)
                    yield change
            reader.wake_at = known.next_due if complete else math.inf


class _Lives:
    """When entries of a bucket end, in the time of the loop."""

    def __init__(self, bucket: StreamInfo | None = None, now: float = 0.0) -> None:
        """`now`: when the server said that of the bucket."""
        self.default = float(bucket.config.get("max_age", 0)) / NANOSECONDS if bucket else 0.0
        """Of an entry that has no life of its own, in seconds; 0: it does not end."""
        self._now = now
        self._server = bucket.ts.timestamp() if bucket and bucket.ts else 0.0

    def end(self, delivery: Delivery) -> float:
        life = _seconds((delivery.message.headers or {}).get("Nats-TTL", "")) or self.default or math.inf
        return self._now + delivery.stored / NANOSECONDS - self._server + life + _LATE_S


@lru_cache(maxsize=64)
def _seconds(ttl: str) -> float:
    """
    The life that a header gives; 0: it gives none, or one that is not ours, of which the server is asked after the usual time.
    """
    for unit, seconds in _UNITS_S.items():
        number = ttl.removesuffix(unit)
        if number != ttl and number.isascii() and number.isdecimal():
            return int(number) * seconds
    return float(ttl) if ttl.isascii() and ttl.isdecimal() else 0.0


async def _expired(
    reader: StreamReader, known: WatchedKeys, *, prefix: str, keys: str
) -> Iterable[KeyChange]:
    loop = asyncio.get_running_loop()
    due = known.due(loop.time())
    if not due:
        return []
    subjects = [prefix + key for key in due] if len(due) <= _ONE_BY_ONE else [prefix + keys]
    there: set[str] = set()
    try:
        for subject in subjects:
            there |= await reader.stored(subject)
    except (BusUnavailableError, ReplyTimeoutError, NotFoundError):
        there.update(prefix + key for key in due)  # nobody can tell: asked again
    for key in due:
        if prefix + key in there:
            known.put_off(key, loop.time())
    return [KeyChange(key, None, 0) for key in due if prefix + key not in there]


def _change(delivery: Delivery, prefix: str) -> KeyChange:
    message = delivery.message
    headers = message.headers
    deleted = headers is not None and "KV-Operation" in headers
    return KeyChange(
        message.subject.removeprefix(prefix), None if deleted else message.data, delivery.sequence
    )
