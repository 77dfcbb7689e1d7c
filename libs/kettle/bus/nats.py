"""The bus over NATS with JetStream."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import msgspec

from kettle.bus.atomic_batch import NOTE, AtomicBatches
from kettle.bus.batching import BatchingDelay
from kettle.bus.bucket_watch import watch
from kettle.bus.command_service import Around, CommandService, Observe, refusal_of
from kettle.bus.jetstream import (
    JetStream,
    NotFoundError,
    bucket_config,
    bucket_stream,
    entry_subject,
    stream_config,
    ttl_header,
)
from kettle.bus.large_messages import PartLimits
from kettle.bus.large_requests import Parcel, call_in_parts
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.nats_driver import Msg
from kettle.bus.ports import (
    Auditor,
    Authorize,
    Batch,
    BucketSpec,
    BusError,
    BusUnavailableError,
    Further,
    KeyChange,
    Learn,
    Message,
    Post,
    RefusedError,
    Rep,
    ReplyTimeoutError,
    Req,
    Served,
    StreamSpec,
)
from kettle.bus.stream_reader import Delivery, Source, StreamReader
from kettle.retry.deadline import Deadline
from kettle.retry.loop import Waits, retry
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects

Inject = Callable[[MutableMapping[str, str]], None]
"""Adds the headers of the current trace to an outgoing command."""

WATCH_BATCH: Final = 1_000
GUARD: Final = "Nats-Expected-Last-Sequence"
"""The header by which the owner of a stream says what he knows of it."""
MARKER_TTL: Final = "60s"
"""How long a deletion stays to be seen by watchers that are away."""
ENSURE_S: Final = 15.0
"""
How long to try to reach a stream or bucket before the caller gets the error that JetStream does not answer.
"""

DEADLINE_S: Final = 5.0
"""How long an answer may take where nobody says otherwise."""

_encode = msgspec.msgpack.Encoder().encode


class NatsBus:
    """One identity's connection. `failure` must be awaited beside the service's own loops."""

    def __init__(
        self,
        connection: NatsConnection,
        subjects: Subjects,
        identity: Identity,
        inject: Inject | None,
        around: Around | None,
        *,
        replicas: int,
        limits: PartLimits | None,
        deadline: float,
    ) -> None:
        self.subjects = subjects
        self.identity = identity
        self._connection = connection
        self._jetstream = JetStream(connection)
        self._together = AtomicBatches(connection)
        self._service = CommandService(
            connection,
            subjects,
            around,
            limits,
            sole=identity.kind in {"worker", "visitor"} or bool(identity.access_point),
        )
        self._inject = inject
        self._replicas = replicas
        self._deadline = deadline
        self._remakes: dict[str, dict[str, Any]] = {}
        self._returned = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        connection.watch(back=self._returned.set)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str,
        *,
        subjects: Subjects,
        identity: Identity,
        credentials: str = "",
        name: str = "",
        patience: float | None = None,
        deadline: float = DEADLINE_S,
        inject: Inject | None = None,
        extract: Around | None = None,
        replicas: int = 1,
        limits: PartLimits | None = None,
        ca: str = "",
        token: Callable[[], str] | None = None,
    ) -> AsyncGenerator["NatsBus", None]:
        """
        Connect with what the file `credentials` holds (empty: none), waiting up to `patience` seconds; `token` gives what a
        person shows besides. An answer for which nobody names a deadline has `deadline` seconds.

        With `ca`, the path of the certificate of an authority, or a URL with `tls://`, every connection is encrypted,
        and a server whose certificate does not come from that authority is sent nothing.

        `url` may name several servers of one cluster, with commas between them; each of `replicas` many keeps a copy
        of every stream and bucket that this connection makes.
        `inject` adds trace headers to commands; `extract` is entered around the handling of each.
        `limits`: what is held for those who send large commands, and fetch large answers.
        """
        async with NatsConnection.open(
            url,
            identity=identity,
            credentials=credentials,
            name=name or identity.token,
            patience=patience,
            ca=ca,
            token=token,
        ) as connection:
            bus = cls(
                connection,
                subjects,
                identity,
                inject,
                extract,
                replicas=replicas,
                limits=limits,
                deadline=deadline,
            )
            keeper = asyncio.create_task(bus._keep(), name="bus-keeper")
            keeper.add_done_callback(bus._kept)
            try:
                yield bus
            finally:
                keeper.cancel()
                await bus._service.close()

    def authorize_by(
        self, authorize: Authorize, further: Further | None = None, *, learn: Learn | None = None
    ) -> None:
        """
        Let this decide from now on which commands people may send to what is served here; `further` is served as well.

        Before somebody is refused, `learn` has what is known of him brought up to date.
        """
        self._service.authorize = authorize
        self._service.further = further
        self._service.learn = learn

    @property
    def auditor(self) -> Auditor | None:
        """Who is told of what administrators have services do here, and who is refused."""
        return self._service.auditor

    def audit_by(self, auditor: Auditor) -> None:
        """Tell this from now on."""
        self._service.auditor = auditor

    def observe_by(self, observe: Observe) -> None:
        """Tell this of each answer from now on."""
        self._service.observe = observe

    @property
    def connected(self) -> bool:
        """See `Bus.connected`."""
        return self._connection.connected

    @property
    def payload_limit(self) -> int:
        """See `Bus.payload_limit`."""
        return self._connection.limit

    async def failure(self) -> None:
        """See `Bus.failure`."""
        await self._connection.failed

    def on_return(self, listener: Callable[[], None]) -> None:
        """See `Bus.on_return`."""
        self._listeners.append(listener)

    async def call(
        self, endpoint: Endpoint[Req, Rep], name: str, request: Req, *, deadline: float | None = None
    ) -> Rep:
        """See `Bus.call`."""
        headers: dict[str, str] = {}
        if self._inject is not None:
            self._inject(headers)

        async def carry(place: str, data: bytes, headers: Mapping[str, str]) -> Parcel:
            subject = self.subjects.command(endpoint.role, place, endpoint.verb, self.identity.token)
            message = await self._connection.request(
                subject, data, deadline=self._within(deadline), headers=headers
            )
            if refusal := refusal_of(message.headers, message.data):
                raise refusal
            return Parcel(message.data, message.headers or {})

        reply = await call_in_parts(carry, name, _encode(request), headers, limit=self._connection.limit)
        try:
            return endpoint.decode_reply(reply)
        except msgspec.MsgspecError as error:
            raise BusError(f"{endpoint!r} of {name} answered what we cannot read: {error}") from error

    async def serve(
        self,
        role: str,
        name: str,
        served: Sequence[Served[Any, Any]],
        *,
        version: str,
        shared: bool = False,
    ) -> None:
        """See `Bus.serve`."""
        await self._service.add(role, name, served, version=version, shared=shared)

    async def publish(self, subject: str, data: bytes) -> None:
        """See `Bus.publish`."""
        await self._drop_when_full(self._connection.publish(subject, data))

    async def listen(
        self, subject: str, listener: Callable[[str, bytes], None], *, guarded: bool = False
    ) -> None:
        """See `Bus.listen`."""

        def deliver(message: Msg) -> None:
            if not guarded or GUARD in (message.headers or {}):
                listener(message.subject, message.data)

        await self._connection.subscribe(subject, deliver)
        await self._connection.settle()

    async def ensure_stream(self, spec: StreamSpec) -> int:
        """See `Bus.ensure_stream`."""
        return await self._ensure(stream_config(spec, replicas=self._replicas), remake=spec.remake)

    async def last_sequence(self, stream: str) -> int | None:
        """See `Bus.last_sequence`."""
        try:
            return (await self._jetstream.stream(stream)).state.last_seq
        except NotFoundError:
            return None

    async def first_sequence(self, stream: str) -> int | None:
        """See `Bus.first_sequence`."""
        try:
            return (await self._jetstream.stream(stream)).state.first_seq
        except NotFoundError:
            return None

    async def delete_stream(self, stream: str) -> None:
        """
        Remove a stream: what an operator does to one that lies; it is made again and refilled from the log.
        """
        await self._jetstream.delete_stream(stream)

    async def append(
        self,
        subject: str,
        data: bytes,
        *,
        expect_last: int | None = None,
        ttl: float | None = None,
        deadline: float | None = None,
    ) -> int:
        """See `Bus.append`."""
        headers: dict[str, str] = {}
        if expect_last is not None:
            headers[GUARD] = str(expect_last)
        if ttl is not None:
            headers["Nats-TTL"] = ttl_header(ttl)
        return await self._jetstream.append(
            subject, data, headers=headers or None, expected=expect_last or 0, deadline=self._within(deadline)
        )

    async def newest(self, stream: str, subject: str, *, deadline: float | None = None) -> bytes | None:
        """See `Bus.newest`."""
        return await self._jetstream.newest(stream, subject, deadline=self._within(deadline))

    async def append_together(
        self, posts: Sequence[Post], *, expect_last: int, note: str = "", deadline: float | None = None
    ) -> int:
        """See `Bus.append_together`."""
        return await self._together.append(
            posts, expect_last=expect_last, note=note, deadline=self._within(deadline)
        )

    async def last_note(self, stream: str) -> tuple[int, str]:
        """See `Bus.last_note`."""
        last = (await self._jetstream.stream(stream)).state.last_seq
        return last, (await self._jetstream.header(stream, last, NOTE)) if last else ""

    async def answer(self, subject: str, answer: Callable[[str, bytes], Awaitable[bytes]]) -> None:
        """Answer messages that are no commands of ours; each goes to one of those who answer on a subject."""
        await self._service.answer(subject, answer)

    async def ask_jetstream(self, call: str, body: bytes) -> bytes:
        """
        What JetStream says to a call of its interface, whatever that is.  Raises BusError if it says nothing.
        """
        return await self._jetstream.ask(call, body)

    async def stored_subjects(self, subject: str) -> list[str]:
        """See `Bus.stored_subjects`."""
        return [one for config in await self._jetstream.streams(subject) for one in config["subjects"]]

    async def consume(
        self,
        stream: str,
        durable: str,
        *,
        subject: str,
        batch: int = 256,
        after: int = 0,
        since: float = 0.0,
        ephemeral: bool = False,
        gather: BatchingDelay | None = None,
    ) -> AsyncGenerator[Batch, None]:
        """See `Bus.consume`."""
        source = Source(
            stream=stream,
            subject=subject,
            batch=batch,
            after=after,
            since=since,
            durable="" if ephemeral else durable,
        )
        reader = StreamReader(self._connection, source, missing=lambda: self._remake(stream), gather=gather)
        async with aclosing(reader.batches()) as batches:
            async for deliveries in batches:
                if deliveries:
                    yield _Fetched(reader, deliveries)

    async def read(
        self, stream: str, *, subject: str, batch: int = 256, after: int = 0, since: float = 0.0
    ) -> AsyncGenerator[Message, None]:
        """See `Bus.read`."""
        source = Source(stream=stream, subject=subject, batch=batch, after=after, since=since)
        reader = StreamReader(self._connection, source, missing=lambda: self._remake(stream))
        async with aclosing(reader.batches()) as batches:
            async for deliveries in batches:
                for delivery in deliveries:
                    yield Message(delivery.message.subject, delivery.sequence, delivery.message.data)
                if not (deliveries[-1] if deliveries else reader).pending:
                    return

    async def ensure_bucket(self, spec: BucketSpec) -> None:
        """See `Bus.ensure_bucket`."""
        await self._ensure(bucket_config(spec, replicas=self._replicas), remake=True)

    async def put(self, bucket: str, key: str, value: bytes, *, ttl: float | None = None) -> None:
        """See `Bus.put`."""
        headers = {"Nats-TTL": ttl_header(ttl)} if ttl is not None else None
        await self._drop_when_full(
            self._connection.publish(entry_subject(bucket, key), value, headers=headers)
        )

    async def update(
        self,
        bucket: str,
        key: str,
        value: bytes,
        *,
        expect: int,
        ttl: float | None = None,
        deadline: float | None = None,
    ) -> int:
        """See `Bus.update`."""
        headers = {"Nats-Expected-Last-Subject-Sequence": str(expect)}
        if ttl is not None:
            headers["Nats-TTL"] = ttl_header(ttl)
        return await self._jetstream.append(
            entry_subject(bucket, key),
            value,
            headers=headers,
            expected=expect,
            deadline=self._within(deadline),
        )

    async def get(self, bucket: str, key: str, *, deadline: float | None = None) -> bytes | None:
        """See `Bus.get`."""
        return await self._jetstream.entry(bucket, key, deadline=self._within(deadline))

    async def delete(self, bucket: str, key: str, *, expect: int | None = None) -> None:
        """See `Bus.delete`."""
        headers = {"KV-Operation": "DEL", "Nats-TTL": MARKER_TTL}
        if expect is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(expect)
        await self._drop_when_full(self._connection.publish(entry_subject(bucket, key), b"", headers=headers))

    async def watch(self, bucket: str, keys: str = ">") -> AsyncGenerator[KeyChange | None, None]:
        """See `Bus.watch`."""
        source = Source(
            stream=bucket_stream(bucket),
            subject=entry_subject(bucket, keys),
            batch=WATCH_BATCH,
            newest_per_subject=True,
        )
        reader = StreamReader(self._connection, source, missing=lambda: self._remake(bucket_stream(bucket)))
        async with aclosing(watch(reader, prefix=entry_subject(bucket, ""), keys=keys)) as changes:
            async for change in changes:
                yield change

    def _within(self, deadline: float | None) -> float:
        return self._deadline if deadline is None else deadline

    async def _ensure(self, config: dict[str, Any], *, remake: bool) -> int:
        # Where a cluster has just lost a server, nobody may know for a while what streams there are.
        info, _ = await retry(
            lambda: self._jetstream.make_stream(config),
            retryable=lambda error: isinstance(error, BusUnavailableError | ReplyTimeoutError),
            deadline=Deadline(ENSURE_S),
        )
        if remake:
            self._remakes[str(config["name"])] = config
        return info.state.last_seq

    async def _remake(self, name: str) -> None:
        if name in self._remakes:
            _, made = await self._jetstream.make_stream(self._remakes[name])
            if made:
                self._tell_return()

    async def _keep(self) -> None:
        """
        The server may come back with nothing: first what was ensured is made again, then it can be filled.
        """
        waits = Waits()
        while True:
            await self._returned.wait()
            self._returned.clear()
            try:
                for config in list(self._remakes.values()):
                    await self._jetstream.make_stream(config)
            except (BusUnavailableError, ReplyTimeoutError):
                await waits.wait()
                self._returned.set()
                continue
            waits.reset()
            self._tell_return()

    def _kept(self, keeper: asyncio.Task[None]) -> None:
        if not keeper.cancelled() and (error := keeper.exception()) is not None:
            self._connection.fail(error)

    def _tell_return(self) -> None:
        for listener in self._listeners:
            listener()

    async def _drop_when_full(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except BusUnavailableError:
            pass
        except RefusedError as error:
            raise BusError(str(error)) from error


class _Fetched:
    """A batch of a durable consumer, whose acknowledgements include everything before it."""

    def __init__(self, reader: StreamReader, deliveries: Sequence[Delivery]) -> None:
        self._reader = reader
        self._last = deliveries[-1]
        self.messages: Sequence[Message] = [
            Message(d.message.subject, d.sequence, d.message.data) for d in deliveries
        ]

    async def ack(self) -> None:
        """See `Batch.ack`."""
        await self._reader.ack(self._last)
