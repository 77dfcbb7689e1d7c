"""
Reads a bucket: what is there, then every change, also over a bucket that was lost and made again.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from kettle.bus.jetstream import NANOSECONDS
from kettle.bus.ports import KeyChange
from kettle.bus.reader import Delivery, Reader


class _Known:
    """
    The keys that the watcher was told of, and those of a lost bucket that nobody has sent again yet.
    """

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self._missing: set[str] = set()
        self._until = 0.0

    def lost(self) -> None:
        self._missing |= self.keys
        self.keys = set()

    def wait(self, seconds: float) -> None:
        self._until = asyncio.get_running_loop().time() + seconds

    def note(self, change: KeyChange) -> None:
        self._missing.discard(change.key)
        if change.value is None:
            self.keys.discard(change.key)
        else:
            self.keys.add(change.key)

    def gone(self) -> list[KeyChange]:
        if not self._missing or asyncio.get_running_loop().time() < self._until:
            return []
        missing, self._missing = self._missing, set()
        return [KeyChange(key, None, 0) for key in sorted(missing)]


async def watch(reader: Reader, *, prefix: str) -> AsyncGenerator[KeyChange | None, None]:
    """
    See `Bus.watch`; `prefix` is what stands before the key in a subject.
    """
    known = _Known()
    complete, consumers, generation, target = False, 0, 0, 0
    async with aclosing(reader.batches()) as batches:
        async for deliveries in batches:
            began = reader.began
            if reader.consumers != consumers and began is not None:
                consumers, target = reader.consumers, began.state.last_seq
                if reader.generation != generation:
                    complete, generation = False, reader.generation
                    known.lost()
                    known.wait(float(began.config.get("max_age", 0)) / NANOSECONDS)
                if not complete and not reader.pending:
                    complete = True
                    yield None
            for delivery in deliveries:
                change = _change(delivery, prefix)
                known.note(change)
                yield change
                if not complete and (not delivery.pending or delivery.sequence >= target):
                    complete = True
                    yield None
            if complete:
                for change in known.gone():
                    yield change


def _change(delivery: Delivery, prefix: str) -> KeyChange:
    message = delivery.message
    headers = message.headers
    # KV-Operation: somebody deleted it; Nats-Marker-Reason: the server did, at its expiry.
    deleted = headers is not None and ("KV-Operation" in headers or "Nats-Marker-Reason" in headers)
    return KeyChange(
        message.subject.removeprefix(prefix), None if deleted else message.data, delivery.sequence
    )
