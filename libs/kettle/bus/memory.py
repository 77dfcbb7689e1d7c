"""The bus in memory: the same promises as over NATS, without a server, for tests and simulation."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from kettle.bus.atomic_batch import check_count
from kettle.bus.batching import BatchingDelay
from kettle.bus.callers import require_caller, require_own_queue
from kettle.bus.large_messages import CompleteRequest, PartLimits, PartStore
from kettle.bus.large_requests import Parcel, call_in_parts
from kettle.bus.memory_server import MemoryServer, matches
from kettle.bus.ports import (
    Batch,
    BucketSpec,
    BusError,
    BusUnavailableError,
    KeyChange,
    Message,
    NoResponderError,
    Post,
    RefusedError,
    Rep,
    ReplyTimeoutError,
    Req,
    Served,
    StreamSpec,
    refusal_for,
)
from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects, untoken

_encode = msgspec.msgpack.Encoder().encode


class MemoryBus:
    """One identity's connection to a `MemoryServer`."""

    def __init__(
        self,
        server: MemoryServer,
        *,
        subjects: Subjects,
        identity: Identity,
        limits: PartLimits | None = None,
        deadline: float = 5.0,
    ) -> None:
        """`deadline`: see `NatsBus.connect`."""
        self.subjects = subjects
        self.identity = identity
        self._server = server
        self._deadline = deadline
        self._tasks: set[asyncio.Task[Parcel]] = set()
        self._depot = PartStore(lambda: server.payload_limit, limits)
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._listeners: list[Callable[[], None]] = []
        self._closed = False
        self._specs: dict[str, StreamSpec | BucketSpec] = {}
        self._services: dict[str, Served[Any, Any]] = {}
        self.shared: set[str] = set()
        """Patterns of what others answer as well."""
        server.remade.append(self._remake)
        server.connections.append(self)

    def close(self) -> None:
        """Answer nothing and reach nobody any more, as a process that died."""
        self._closed = True
        self._server.connections.remove(self)
        self._server.remade.remove(self._remake)
        self._services.clear()
        self._depot.close()
        for task in self._tasks:
            task.cancel()
        self._failure.cancel()

    @property
    def connected(self) -> bool:
        """See `Bus.connected`."""
        return not self._closed

    @property
    def payload_limit(self) -> int:
        """See `Bus.payload_limit`."""
        return self._server.payload_limit

    async def failure(self) -> None:
        """See `Bus.failure`."""
        await self._failure

    def on_return(self, listener: Callable[[], None]) -> None:
        """See `Bus.on_return`."""
        self._listeners.append(listener)

    async def call(
        self, endpoint: Endpoint[Req, Rep], name: str, request: Req, *, deadline: float | None = None
    ) -> Rep:
        """See `Bus.call`."""
        within = self._deadline if deadline is None else deadline

        async def carry(place: str, data: bytes, headers: Mapping[str, str]) -> Parcel:
            subject = self.subjects.command(endpoint.role, place, endpoint.verb, self.identity.token)
            return await self._carry(subject, Parcel(data, headers), within)

        reply = await call_in_parts(carry, name, _encode(request), {}, limit=self.payload_limit)
        return endpoint.decode_reply(reply)

    async def _carry(self, subject: str, parcel: Parcel, deadline: float) -> Parcel:
        self._check(subject, parcel.data)
        answers: list[asyncio.Future[Parcel]] = []
        shared = False
        for connection in tuple(self._server.connections):
            pattern = connection.pattern(subject)
            if shared and pattern in connection.shared:
                continue
            if (answer := connection.answer(subject, parcel)) is not None:
                answers.append(answer)
                shared = shared or pattern in connection.shared
        if not answers:
            raise NoResponderError(f"nobody answers {subject}")
        done, _ = await asyncio.wait(answers, timeout=deadline, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise ReplyTimeoutError(f"no answer on {subject} within {deadline} seconds")
        return done.pop().result()

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
        for one in served:
            pattern = self.subjects.command(role, name, one.endpoint.verb, "*")
            self._services[pattern] = one
            if shared:
                self.shared.add(pattern)

    def pattern(self, subject: str) -> str:
        """
        Under which pattern this connection serves a command; empty if it does not, or for a part of one.
        """
        return next((pattern for pattern in self._services if matches(pattern, subject)), "")

    def answer(self, subject: str, parcel: Parcel) -> asyncio.Future[Parcel] | None:
        """What this connection answers to a command or to a part of one; None if it does not serve it."""
        served = self._services.get(self.pattern(subject))
        if served is None and not matches(self.subjects.command("*", self._depot.place, "*", "*"), subject):
            return None
        task = asyncio.create_task(self._handle(served, subject, parcel))
        self._tasks.add(task)
        reply: asyncio.Future[Parcel] = asyncio.get_running_loop().create_future()
        task.add_done_callback(partial(self._answered, reply))
        return reply

    async def publish(self, subject: str, data: bytes) -> None:
        """See `Bus.publish`."""
        self._server.publish(subject, data)

    async def listen(
        self, subject: str, listener: Callable[[str, bytes], None], *, guarded: bool = False
    ) -> None:
        """See `Bus.listen`; no answer goes to a subject here."""
        del guarded
        self._server.listeners.append((subject, listener))

    async def ensure_stream(self, spec: StreamSpec) -> int:
        """See `Bus.ensure_stream`."""
        if spec.remake:
            self._specs[spec.name] = spec
        return self._server.make_stream(spec).last

    async def last_sequence(self, stream: str) -> int | None:
        """See `Bus.last_sequence`."""
        found = self._server.streams.get(stream)
        return found.last if found else None

    async def first_sequence(self, stream: str) -> int | None:
        """See `Bus.first_sequence`."""
        found = self._server.streams.get(stream)
        return found.first if found else None

    async def append(
        self,
        subject: str,
        data: bytes,
        *,
        expect_last: int | None = None,
        ttl: float | None = None,
        deadline: float = 5.0,
    ) -> int:
        """See `Bus.append`."""
        self._check(subject, data)
        return self._server.append(subject, data, expect_last, ttl)

    async def newest(self, stream: str, subject: str, *, deadline: float = 5.0) -> bytes | None:
        """See `Bus.newest`."""
        found = self._server.streams.get(stream)
        return found.newest(subject, now=self._server.clock()) if found is not None else None

    async def append_together(
        self, posts: Sequence[Post], *, expect_last: int, note: str = "", deadline: float = 5.0
    ) -> int:
        """See `Bus.append_together`."""
        check_count(posts)
        for post in posts:
            self._check(post.subject, post.data)
        return self._server.append_together(posts, expect_last, note)

    async def last_note(self, stream: str) -> tuple[int, str]:
        """See `Bus.last_note`."""
        return self._server.streams[stream].last_note

    async def stored_subjects(self, subject: str) -> list[str]:
        """See `Bus.stored_subjects`."""
        taken = [one for stream in self._server.streams.values() for one in stream.spec.subjects]
        return [one for one in taken if matches(subject, one)]

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
        reading, position = None, after
        while True:
            now = self._server.streams.get(stream)
            if now is None:
                await self._server.made.wait()
                continue
            if now is not reading:
                # Another stream of the same name: from its beginning.
                position = after if reading is None else 0
                position = max(position, now.before(since)) if since and reading is None else position
                position = position if ephemeral else now.acked.get(durable, position)
                reading = now
            if gather is not None and now.after(position, subject, 1):
                await gather.wait()
            if messages := now.after(position, subject, batch):
                position = messages[-1].sequence
                yield _Fetched(messages, now.acked, "" if ephemeral else durable)
            else:
                await now.changed.wait()

    async def read(
        self, stream: str, *, subject: str, batch: int = 256, after: int = 0, since: float = 0.0
    ) -> AsyncGenerator[Message, None]:
        """See `Bus.read`."""
        now = self._server.streams[stream]
        last = now.last
        for message in now.after(max(after, now.before(since)), subject, last):
            yield message

    async def ensure_bucket(self, spec: BucketSpec) -> None:
        """See `Bus.ensure_bucket`."""
        self._specs[spec.name] = spec
        self._server.make_bucket(spec)

    async def put(self, bucket: str, key: str, value: bytes, *, ttl: float | None = None) -> None:
        """See `Bus.put`."""
        with suppress(NoResponderError):
            self._server.put(bucket, key, value, ttl, None)

    async def update(
        self,
        bucket: str,
        key: str,
        value: bytes,
        *,
        expect: int,
        ttl: float | None = None,
        deadline: float = 5.0,
    ) -> int:
        """See `Bus.update`."""
        self._check(key, value)
        return self._server.put(bucket, key, value, ttl, expect)

    async def get(self, bucket: str, key: str, *, deadline: float = 5.0) -> bytes | None:
        """See `Bus.get`."""
        return self._server.entry(bucket, key)

    async def delete(self, bucket: str, key: str, *, expect: int | None = None) -> None:
        """See `Bus.delete`."""
        with suppress(BusError):
            self._server.put(bucket, key, None, None, expect)

    async def watch(self, bucket: str, keys: str = ">") -> AsyncGenerator[KeyChange | None, None]:
        """See `Bus.watch`."""
        watcher = self._server.watch(bucket, keys)
        try:
            while True:
                await watcher.filled.wait()
                watcher.filled.clear()
                changes, watcher.changes = watcher.changes, []
                for change in changes:
                    yield change
        finally:
            self._server.watchers[bucket].remove(watcher)

    def _check(self, subject: str, data: bytes) -> None:
        if self._closed:
            raise BusUnavailableError("this connection was closed")
        if len(data) > self._server.payload_limit:
            raise RefusedError(RefusalCode.TOO_LARGE, f"a message of {len(data)} bytes for {subject}")

    async def _handle(self, served: Served[Any, Any] | None, subject: str, parcel: Parcel) -> Parcel:
        caller = Identity.from_subject(subject)
        if served is not None:
            require_caller(served, caller)
            require_own_queue(served.endpoint, untoken(subject.split(".")[-3]), caller)
        received = self._depot.receive(caller.token, parcel, served)
        if not isinstance(received, CompleteRequest):
            return received
        endpoint = received.served.endpoint
        try:
            request = endpoint.decode_request(received.data)
            data = _encode(await received.served.handler(request, caller))
        except msgspec.MsgspecError as error:
            raise RefusedError(RefusalCode.MALFORMED, f"{endpoint.role}.{endpoint.verb}: {error}") from error
        finally:
            self._depot.answered(received)
        return self._depot.reply(caller.token, data)

    def _answered(self, reply: asyncio.Future[Parcel], task: asyncio.Task[Parcel]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or reply.done():
            return
        match task.exception():
            case None:
                reply.set_result(task.result())
            case BusError() as error:
                reply.set_exception(refusal_for(error))
                reply.exception()  # the caller may have given up
            case error:
                if not self._failure.done():
                    self._failure.set_exception(error)

    def _remake(self, name: str) -> None:
        match self._specs.get(name):
            case StreamSpec() as spec:
                self._server.make_stream(spec)
            case BucketSpec() as spec:
                self._server.make_bucket(spec)
            case None:
                return
        for listener in self._listeners:
            listener()


class _Fetched:
    """A batch that remembers its acknowledgement in the stream."""

    def __init__(self, messages: Sequence[Message], acked: dict[str, int], durable: str) -> None:
        self.messages = messages
        self._acked = acked
        self._durable = durable

    async def ack(self) -> None:
        """See `Batch.ack`."""
        if self._durable:
            last = self.messages[-1].sequence
            self._acked[self._durable] = max(last, self._acked.get(self._durable, 0))
