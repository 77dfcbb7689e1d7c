"""
Several messages of one stream, stored as one: the server commits all of them or none.

It is NATS's atomic batch (server 2.12 and later). Live subscribers receive each message when it is sent; the stream has
it from the commit on.
"""

import secrets
from collections.abc import Sequence
from itertools import count
from typing import Final

import msgspec

from kettle.bus.jetstream import heard, stored_at
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.nats_driver import Msg
from kettle.bus.ports import BusError, Post, RefusedError
from kettle_wire.codes import RefusalCode

NOTE: Final = "Kettle-Note"
MOST: Final = 1_000
"""The server takes no more at once."""


class _Committed(msgspec.Struct, frozen=True):
    count: int = 0


def check_count(posts: Sequence[Post]) -> None:
    """Raise BusError if these are none, or too many."""
    if not 1 <= len(posts) <= MOST:
        raise BusError(f"{len(posts)} messages at once; a batch has 1 to {MOST}")


class AtomicBatches:
    """The batches of one connection."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection
        self._name = secrets.token_hex(8)
        self._count = count(1)

    async def append(self, posts: Sequence[Post], *, expect_last: int, note: str, deadline: float) -> int:
        """See `Bus.append_together`."""
        check_count(posts)
        reply = await heard(lambda: self._sent(posts, expect_last, note, deadline), deadline)
        last = stored_at(reply, posts[-1].subject, expect_last)
        if msgspec.json.decode(reply.data, type=_Committed).count != len(posts):
            raise RefusedError(
                RefusalCode.UNSUPPORTED,
                "this NATS server stores no messages together: 2.12 or a later one is needed",
            )
        return last

    async def _sent(self, posts: Sequence[Post], expect_last: int, note: str, deadline: float) -> Msg:
        """The answer to a batch, which nobody has seen before: one whose end nobody heard is forgotten."""
        batch = f"{self._name}-{next(self._count)}"
        headers = {"Nats-Batch-Id": batch, "Nats-Expected-Last-Sequence": str(expect_last)}
        *others, final = posts
        for number, post in enumerate(others, start=1):
            headers["Nats-Batch-Sequence"] = str(number)
            await self._connection.publish(post.subject, post.data, headers=headers)
            headers.pop("Nats-Expected-Last-Sequence", None)
        headers |= {"Nats-Batch-Sequence": str(len(posts)), "Nats-Batch-Commit": "1"}
        if note:
            headers[NOTE] = note
        return await self._connection.request(final.subject, final.data, deadline=deadline, headers=headers)
