"""Reads a bucket: what is there, then every change, also over a bucket that was lost and made again."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from kettle.bus.jetstream import NANOSECONDS
from kettle.bus.ports import KeyChange
from kettle.bus.stream_reader import Delivery, StreamReader
from kettle.bus.watched_keys import WatchedKeys


async def watch(reader: StreamReader, *, prefix: str) -> AsyncGenerator[KeyChange | None, None]:
    """See `Bus.watch`; `prefix` is what stands before the key in a subject."""
    known, loop = WatchedKeys(), asyncio.get_running_loop()
    complete, consumers, generation, target = False, 0, 0, 0
    async with aclosing(reader.batches()) as batches:
        async for deliveries in batches:
            began = reader.began
            if reader.consumers != consumers and began is not None:
                consumers, target = reader.consumers, began.state.last_seq
                if reader.generation != generation:
                    complete, generation = False, reader.generation
                    known.lost(loop.time() + float(began.config.get("max_age", 0)) / NANOSECONDS)
                if not complete and not reader.pending:
                    complete = True
                    yield None
            for delivery in deliveries:
                change = _change(delivery, prefix)
                known.record_change(change)
                yield change
                if not complete and (not delivery.pending or delivery.sequence >= target):
                    complete = True
                    yield None
            if complete:
                for change in known.gone(loop.time()):
                    yield change


def _change(delivery: Delivery, prefix: str) -> KeyChange:
    message = delivery.message
    headers = message.headers
    # KV-Operation: somebody deleted it; Nats-Marker-Reason: the server did, at its expiry.
    deleted = headers is not None and ("KV-Operation" in headers or "Nats-Marker-Reason" in headers)
    return KeyChange(
        message.subject.removeprefix(prefix), None if deleted else message.data, delivery.sequence
    )
