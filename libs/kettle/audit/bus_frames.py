"""The frames that the bus still has, beside those of the database."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Final

from kettle.audit.report import AuditReport
from kettle.bus.ports import Bus, Message
from kettle_wire.frames import Frame, encode, hollow
from kettle_wire.subjects import Subjects

_PATIENCE_S: Final = 10.0


class OnBus:
    """
    Compares in step: frames of the database are fed in order, messages are read as far as needed.

    The bus may lack any frame, and may have one that is too large for it hollow; it may not have another one.
    """

    def __init__(self, shard: str, report: AuditReport) -> None:
        self._shard = shard
        self._check = report.check("bus")
        self._messages: AsyncIterator[Message] | None = None
        self._next: Message | None = None
        self._last = 0
        self.compared = 0

    async def open(
        self, bus: Bus, subjects: Subjects, stack: AsyncExitStack, *, after: int, head: int
    ) -> None:
        """
        Begin with the first message after a frame, until the stack is closed. `head`: the database's last frame.
        """
        stream = subjects.event_stream(self._shard)
        last = await bus.last_sequence(stream)
        self._last = min(last or 0, head)
        if self._last > after:
            messages = _messages(bus, stream, subjects.events(self._shard), after)
            self._messages = await stack.enter_async_context(aclosing(messages))
            await self._advance()

    async def finish(self) -> None:
        """No frame of the database follows."""
        while self._next is not None:
            await self._surplus(self._next)

    async def feed(self, frame: Frame) -> None:
        """Compare the next frame of the database with the message of its number, if there is one."""
        while self._next is not None and self._next.sequence < frame.number:
            await self._surplus(self._next)
        if self._next is None or self._next.sequence != frame.number:
            return
        self._check.examined += 1
        self.compared += 1
        ours, theirs = (hashlib.sha256(data).hexdigest() for data in (encode(frame), self._next.data))
        if ours != theirs and self._next.data != encode(hollow(frame)):
            self._check.found(
                self._shard,
                frame.number,
                f"frame {frame.number} is {theirs[:12]} on the bus and {ours[:12]} in the database (SHA-256)",
            )
        await self._advance()

    async def _surplus(self, message: Message) -> None:
        self._check.found(
            self._shard, message.sequence, f"the bus has frame {message.sequence}, the database has not"
        )
        await self._advance()

    async def _advance(self) -> None:
        if self._messages is None or (self._next is not None and self._next.sequence >= self._last):
            self._next = None
            return
        try:
            async with asyncio.timeout(_PATIENCE_S):
                self._next = await anext(self._messages)
        except TimeoutError:
            self._next = None
            self._check.found(
                self._shard, 0, f"the bus did not deliver its frames within {_PATIENCE_S:.0f} s"
            )


async def _messages(bus: Bus, stream: str, subject: str, after: int) -> AsyncGenerator[Message, None]:
    async for batch in bus.consume(stream, "", subject=subject, after=after, ephemeral=True):
        for message in batch.messages:
            yield message
