"""
Reads a stream in order, no matter what happens to connection, consumer and stream.

The reader's own position decides, not the server's bookkeeping: after any doubt (a lost connection, a missing
heartbeat, a gap in the consumer's numbering) the consumer is recreated from the message after the last one received or,
if it is durable, acknowledged. So nothing is skipped, order holds, and only messages that were being processed can come
twice.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Final

import msgspec

from kettle.bus.batching import BatchingDelay
from kettle.bus.jetstream import Consumer, JetStream, NotFoundError, StreamInfo, pull_request
from kettle.bus.nats_connection import NatsConnection, status_of
from kettle.bus.nats_driver import Msg, Subscription, errors
from kettle.bus.ports import BusError, BusUnavailableError, NoResponderError, ReplyTimeoutError
from kettle.retry.backoff import Backoff, steady
from kettle.retry.loop import Waits, retry

PULL_S: Final = 30.0
PULL_BYTES: Final = 8 * 1024 * 1024
"""What one pull may bring, however large the messages are; two are under way at most."""
HEARTBEAT_S: Final = 5.0
SILENCE_S: Final = 2.5 * HEARTBEAT_S
"""Without a sign of life for so long, the consumer is taken for lost."""
UNMADE_S: Final = 0.5
"""
The longest wait before a missing stream is looked for again: who reads is often started before who makes it.
"""
CONFIRM_S: Final = 0.5
"""For the answer to the last acknowledgement of a reader that ends; without it the same may come again."""

_ELECTION: Final = steady(0.02, spread=0.0)
_HEARTBEAT: Final = "100"
_EXPIRED: Final = "408"
_OVER: Final = ("Message Size Exceeds MaxBytes", "Batch Completed")
"""
How a server calls the end of a pull that has brought what it was to bring, under the status of all conflicts.
"""
_UNSERVED: Final = "Nats-Pending-Messages"
"""How many messages of a pull that has ended will not come."""


class Delivery(msgspec.Struct, frozen=True):
    """One message and where it stands: its sequence in the stream, and how many the consumer has after it."""

    message: Msg
    sequence: int
    pending: int
    stored: int
    """When the server stored it, on its clock, in nanoseconds since the epoch."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """
    What to read. `durable`: the name of a consumer whose acknowledgements outlive the reader; one reader at a time.
    """

    stream: str
    subject: str
    batch: int
    after: int = 0
    since: float = 0.0
    """Begin with the first message at that time or later, seconds since the epoch."""
    durable: str = ""
    newest_per_subject: bool = False
    """Begin with the last message of each subject instead of those after `after`."""


class _DoubtError(Exception):
    """The consumer must be recreated."""


class _UnrecordedError(BusError):
    """An acknowledgement is not recorded yet."""


class StreamReader:
    """One reading of one source. `began` is what the stream was when the present consumer was made."""

    def __init__(
        self,
        connection: NatsConnection,
        source: Source,
        *,
        missing: Callable[[], Awaitable[None]] | None = None,
        gather: BatchingDelay | None = None,
    ) -> None:
        self._connection = connection
        self._jetstream = JetStream(connection)
        self._source = source
        self._missing = missing
        self._gather = gather
        self._seen: int | None = None
        """Sequence of the last message received; None: none of the present stream."""
        self._floor = source.after
        """What need not be read (again)."""
        self._counted = 0
        self._wanted = 0
        self._buffer: list[Delivery] = []
        self._wake = asyncio.Event()
        self._doubtful = False
        self._last_ack = ""
        """Subject of the newest acknowledgement."""
        self._name = source.durable
        self._inbox = ""
        self._subscription: Subscription | None = None
        self.began: StreamInfo | None = None
        self.pending = 0
        """Messages that were there when the present consumer was made."""
        self.consumers = 0
        """How many consumers were made."""
        self.generation = 0
        """Raised whenever the stream turned out to be another one of the same name."""
        self.wake_at = math.inf
        """When to give an empty list at the latest, if nothing comes; in the time of the loop."""
        self._heard = 0.0
        """When the last sign of life came, or somebody began to wait for one; in the same time."""
        self._woken = False

    async def batches(self) -> AsyncGenerator[list[Delivery], None]:
        """
        Messages as they come; an empty list when a consumer was made, at `wake_at`, and with each sign of life. Ends by being
        closed.
        """
        broken, unmade = Waits(), Waits(Backoff(first=0.05, longest=UNMADE_S))
        self._connection.watch(lost=self._doubt)
        try:
            while True:
                waits = broken
                try:
                    await self._begin()
                    self.consumers += 1
                    broken.reset()
                    unmade.reset()
                    yield []
                    while True:
                        yield await self._next()
                except (_DoubtError, BusUnavailableError, ReplyTimeoutError):
                    pass
                except NotFoundError:
                    if self._missing is not None:
                        await self._missing()
                    waits = unmade
                finally:
                    await self._end()
                await waits.wait()
        finally:
            self._connection.unwatch(self._doubt)
            await self._confirm()

    async def ack(self, delivery: Delivery) -> None:
        """Acknowledge everything up to a message."""
        self._floor = max(self._floor, delivery.sequence)
        self._last_ack = delivery.message.reply
        with suppress(BusError):
            await self._connection.publish(self._last_ack, b"+ACK")

    async def stored(self, subject: str) -> set[str]:
        """The subjects below a filter on which the stream has a message now."""
        return await self._jetstream.stored(self._source.stream, subject)

    async def _confirm(self) -> None:
        """
        Wait until the newest acknowledgement is recorded, so that the next reader does not get the same once more.

        While a reader lives it knows itself what it acknowledged. In a cluster an acknowledgement is recorded a moment after it
        was received, and may be lost before our server knows where a new consumer is.
        """
        if not self._last_ack or not self._connection.connected:
            return

        async def confirm() -> None:
            await self._connection.request(self._last_ack, b"+ACK", deadline=CONFIRM_S)
            if (await self._jetstream.consumer(self._source.stream, self._name)).floor < self._floor:
                raise _UnrecordedError

        with suppress(BusError, TimeoutError):
            async with asyncio.timeout(CONFIRM_S):
                await retry(
                    confirm,
                    _ELECTION,
                    retryable=lambda error: isinstance(error, NoResponderError | _UnrecordedError),
                )

    def _doubt(self) -> None:
        self._doubtful = True
        self._wake.set()

    async def _begin(self) -> None:
        now = await self._jetstream.stream(self._source.stream)
        if self.began is not None and self.began.created != now.created:
            self.generation += 1
            self._seen, self._floor = None, 0
        after = await self._position(now)
        self.began = now
        self._buffer, self._counted, self._wanted, self._doubtful = [], 0, 0, False
        self._wake.clear()
        self._heard = asyncio.get_running_loop().time()
        self._inbox = self._connection.new_inbox()
        self._subscription = await self._connection.subscribe(
            self._inbox, self._on_message, overrun=self._doubt
        )
        if not self._source.durable:
            self._name = self._inbox.rpartition(".")[2]
        made = await self._jetstream.make_consumer(self._source.stream, self._consumer(after))
        self.pending = made.num_pending
        await self._pull()

    async def _position(self, now: StreamInfo) -> int | None:
        """
        The sequence after which to go on; None: with the newest message of each subject.

        Never after the end: a tail that the server lost is written again under the same numbers.
        """
        if self._source.durable:
            self._floor = await self._acknowledged()
            return min(self._floor, now.state.last_seq)
        if self._seen is None and self._source.newest_per_subject:
            return None
        return min(self._floor if self._seen is None else self._seen, now.state.last_seq)

    async def _acknowledged(self) -> int:
        """
        Delete the durable consumer, so that messages that it delivered to nobody come again at once and not after its
        deadline.
        """
        try:
            info = await self._jetstream.consumer(self._source.stream, self._name)
            await self._jetstream.delete_consumer(self._source.stream, self._name)
        except NotFoundError:
            return self._floor
        ours = 0 if self.began is None else self._floor  # `after` is for a consumer that is new
        return max(info.floor, ours)

    def _consumer(self, after: int | None) -> Consumer:
        source = self._source
        at_time = source.since and self._seen is None and after is not None and after <= source.after
        return Consumer(
            name=self._name,
            subject=source.subject,
            durable=bool(source.durable),
            batch=source.batch,
            after=after,
            since=source.since if at_time else 0.0,
        )

    async def _pull(self) -> None:
        """
        Ask for more while half of what was asked for is still to come: the stream need not wait for who reads it.
        """
        more = self._source.batch - self._wanted
        if more < self._source.batch / 2 or self._doubtful:
            return
        self._wanted += more
        subject = f"{self._connection.api}.CONSUMER.MSG.NEXT.{self._source.stream}.{self._name}"
        most = max(PULL_BYTES, 2 * self._connection.client.max_payload)
        request = pull_request(more, most=most, expires=PULL_S, heartbeat=HEARTBEAT_S)
        await self._connection.publish(subject, request, reply=self._inbox)

    async def _next(self) -> list[Delivery]:
        if not self._woken:
            self._heard = asyncio.get_running_loop().time()
        self._woken = False
        while True:
            self._wake.clear()
            if self._buffer:
                if self._gather is not None and not self._buffer[-1].pending:
                    await self._gather.wait()
                batch, self._buffer = self._buffer, []
                await self._pull()
                return batch
            # What came in order before the doubt is valid; otherwise a slow reader would never make progress.
            if self._doubtful and not self._arriving:
                raise _DoubtError
            await self._pull()
            silent = self._heard + SILENCE_S
            try:
                async with asyncio.timeout_at(min(silent, self.wake_at)):
                    await self._wake.wait()
            except TimeoutError as error:
                if asyncio.get_running_loop().time() < silent:
                    self._woken = True
                    return []
                raise _DoubtError from error
            if not self._buffer and not self._doubtful:
                return []

    @property
    def _arriving(self) -> bool:
        return self._subscription is not None and self._subscription.pending_msgs > 0

    def _on_message(self, message: Msg) -> None:
        self._heard = asyncio.get_running_loop().time()
        status = status_of(message)
        if status and not message.reply.startswith("$JS.ACK."):
            self._on_status(status, message)
            return
        # $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>[.<token>]
        fields = message.reply.split(".")
        numbers = fields[4:] if len(fields) == 9 else fields[6:11]
        sequence, counted, stored, pending = map(int, numbers[1:5])
        if counted != self._counted + 1:
            self._doubt()
            return
        self._counted = counted
        self._wanted -= 1
        self._seen = sequence
        self._buffer.append(Delivery(message, sequence, pending, stored))
        self._wake.set()

    def _on_status(self, status: str, message: Msg) -> None:
        headers = message.headers or {}
        if status == _EXPIRED or headers.get("Description", "").startswith(_OVER):
            self._wanted -= int(headers.get(_UNSERVED, self._wanted))
        elif status != _HEARTBEAT:
            self._doubtful = True  # the consumer was deleted, or its server goes away
        self._wake.set()

    async def _end(self) -> None:
        if self._subscription is None:
            return
        subscription, self._subscription = self._subscription, None
        with suppress(errors.Error):
            await subscription.unsubscribe()
        if not self._source.durable and self._connection.connected:
            with suppress(BusError):
                await self._connection.publish(
                    f"{self._connection.api}.CONSUMER.DELETE.{self._source.stream}.{self._name}", b""
                )
