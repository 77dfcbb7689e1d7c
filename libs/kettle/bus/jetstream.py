"""The part of the JetStream API that is used here: streams, and consumers that are pulled."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

import msgspec

from kettle.bus.nats_connection import NatsConnection, status_of
from kettle.bus.nats_driver import Msg
from kettle.bus.ports import (
    BucketSpec,
    BusError,
    BusUnavailableError,
    NoResponderError,
    RefusedError,
    ReplyTimeoutError,
    StreamSpec,
    WrongSequenceError,
)
from kettle.retry.backoff import steady
from kettle.retry.deadline import Deadline
from kettle.retry.loop import retry
from kettle_wire.codes import RefusalCode

API_S: Final = 5.0
"""Deadline of one call of the API."""
LOOK_S: Final = 1.0
"""For a first look at a stream or consumer."""
ELECTION_S: Final = 0.5
"""How long a stream may be unknown to a part of its cluster."""
_ELECTION: Final = steady(0.05, spread=0.0)
NANOSECONDS: Final = 1_000_000_000
CREATE: Final = "CONSUMER.CREATE"
CREATE_STREAM: Final = "STREAM.CREATE"
DUPLICATES_S: Final = 0.1
"""
How long ids of messages are remembered, of which nobody of ours sends any; the shortest time that the server allows.
"""
ACK_WAIT_S: Final = 24 * 3600.0
"""Never reached: redelivery is the reader's own business."""
ORPHAN_S: Final = 60.0
"""After so long without its reader the server forgets a consumer that has no durable name."""
_NO_MESSAGE: Final = "404"
_STREAM_EXISTS: Final = 10058
_WRONG_LAST: Final = (10071, 10164)
_MESSAGE_TOO_LARGE: Final = 10054
_NOT_NOW: Final = frozenset({
    10005,  # no server that could take the stream: one of them is away
    10007,  # the asset is not assigned to the server that was asked: it is being moved
    10009,  # the server that was asked does not lead (any more)
    10012,  # a consumer could not be made, as reported by a part that is being moved or stopped
    10028,  # no memory left
    10041,  # no agreement between the servers
    10047,  # no room left on disk
    10049,  # a stream could not be made
    10118,  # the stream is not there at present
    10119,  # the consumer is not there at present
})  # fmt: skip
"""
Errors that are temporary, or that an operator repairs meanwhile: asking again is right, giving up is not.
"""


class NotFoundError(BusError):
    """There is no such stream or consumer now."""


class _ExistsError(BusError):
    """Somebody made the stream first, with another configuration."""


class _Error(msgspec.Struct):
    code: int
    err_code: int = 0
    description: str = ""


class State(msgspec.Struct, frozen=True):
    """Where a stream stands."""

    first_seq: int
    last_seq: int
    subjects: dict[str, int] | None = None
    """How many messages it has on each subject that was asked for."""


class StreamInfo(msgspec.Struct, frozen=True):
    """
    A stream; `created` distinguishes it from another of the same name that was made after it was deleted.
    """

    created: str
    state: State
    config: dict[str, Any]
    ts: datetime | None = None
    """When the server said so, on its clock."""
    total: int = 0
    """Of how many subjects there is something to say."""


class _Streams(msgspec.Struct, frozen=True):
    total: int
    streams: list[StreamInfo] | None = None


class _Stored(msgspec.Struct, frozen=True):
    hdrs: bytes = b""


class _Got(msgspec.Struct, frozen=True):
    message: _Stored


class _Floor(msgspec.Struct, frozen=True):
    stream_seq: int


class _Begin(msgspec.Struct, frozen=True):
    opt_start_seq: int = 0


class ConsumerInfo(msgspec.Struct, frozen=True):
    """A consumer: where it began, what is acknowledged, and how much waits."""

    ack_floor: _Floor
    num_pending: int
    config: _Begin = _Begin()

    @property
    def floor(self) -> int:
        """
        The last message that need not come again. In a cluster nothing is acknowledged before the first that is.
        """
        return max(self.ack_floor.stream_seq, self.config.opt_start_seq - 1)


class _Ack(msgspec.Struct, frozen=True):
    seq: int = 0
    error: _Error | None = None


class _Failed(msgspec.Struct, frozen=True):
    error: _Error | None = None


_ack = msgspec.json.Decoder(_Ack)
_failed = msgspec.json.Decoder(_Failed)
_stream = msgspec.json.Decoder(StreamInfo)
_streams = msgspec.json.Decoder(_Streams)
_stored = msgspec.json.Decoder(_Got)
_consumer = msgspec.json.Decoder(ConsumerInfo)
_encode = msgspec.json.Encoder().encode


def _raise(error: _Error, subject: str, expected: int = -1) -> NoReturn:
    sentence = f"{subject}: {error.description} ({error.err_code})"
    if error.err_code in _WRONG_LAST:
        raise WrongSequenceError(sentence, expected=expected)
    if error.err_code == _STREAM_EXISTS:
        raise _ExistsError(sentence)
    if error.err_code == _MESSAGE_TOO_LARGE:
        raise RefusedError(RefusalCode.TOO_LARGE, sentence)
    if error.err_code in _NOT_NOW:
        raise BusUnavailableError(sentence)
    match error.code:
        case 404:
            raise NotFoundError(sentence)
        case 503 | 429:
            raise BusUnavailableError(sentence)
        case _:
            raise BusError(sentence)


def stored_at(reply: Msg, subject: str, expected: int) -> int:
    """The sequence under which a stream says that it stored a message; raises what it says instead."""
    try:
        ack = _ack.decode(reply.data)
    except msgspec.MsgspecError as error:
        raise BusError(f"{subject}: what answers there is no stream") from error
    if ack.error is not None:
        _raise(ack.error, subject, expected)
    return ack.seq


async def heard(send: Callable[[], Awaitable[Msg]], deadline: float) -> Msg:
    """
    What answers a message for a stream; `send` sends all of it again.

    That nobody answers is believed after a moment: in a cluster, a stream that is new or elects a leader is unknown
    to the other servers for that long.
    """
    return await retry(
        send,
        _ELECTION,
        retryable=lambda error: isinstance(error, NoResponderError),
        deadline=Deadline(min(ELECTION_S, deadline)),
    )


class JetStream:
    """Calls of the API over one connection."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection

    async def append(
        self, subject: str, data: bytes, *, headers: dict[str, str] | None, expected: int, deadline: float
    ) -> int:
        """
        Store a message; returns its sequence. `expected` goes into the error if the guard in `headers` fails.
        """
        reply = await heard(
            lambda: self._connection.request(subject, data, deadline=deadline, headers=headers), deadline
        )
        return stored_at(reply, subject, expected)

    async def stream(self, name: str) -> StreamInfo:
        """Look at a stream; raises NotFoundError."""
        return _stream.decode((await self._look(f"STREAM.INFO.{name}")).data)

    async def stored(self, name: str, subject: str) -> set[str]:
        """The subjects below a filter on which a stream has a message; raises NotFoundError."""
        found: set[str] = set()
        while True:
            body = _encode({"subjects_filter": subject, "offset": len(found)})
            info = _stream.decode((await self._call(f"STREAM.INFO.{name}", body)).data)
            page = info.state.subjects or {}
            found.update(page)
            if not page or len(found) >= info.total:
                return found

    async def make_stream(self, config: dict[str, Any]) -> tuple[StreamInfo, bool]:
        """
        Make a stream if there is none of that name, and say whether; an existing one stays as its operator configured it.

        What is put into a new bucket afterwards over this connection arrives, although nobody confirms it.
        """
        name = str(config["name"])
        try:
            return await self.stream(name), False
        except NotFoundError as error:
            if self._connection.guest and not self._connection.asks_for_streams:
                raise BusUnavailableError(
                    f"{name} has not been made yet: the pool's services do that"
                ) from error
        try:
            made = _stream.decode((await self._call(f"{CREATE_STREAM}.{name}", _encode(config))).data)
        except _ExistsError:
            return await self.stream(name), False
        if config["num_replicas"] > 1 and name.startswith(bucket_stream("")):
            await self._until_reached(config["subjects"][0])
        return made, True

    async def _until_reached(self, subject: str) -> None:
        """
        Wait until the server to which we are connected knows where the stream of `subject` is: the others of a cluster learn it a
        moment after the answer that the stream is made, and drop until then what nobody is known to want.

        A message for another stream is refused, and never stored. Who may not send there need not wait.
        """
        headers = {"Nats-Expected-Stream": "none"}
        with suppress(RefusedError):
            await retry(
                lambda: self._connection.request(
                    subject.replace(">", "reached"), b"", deadline=LOOK_S, headers=headers
                ),
                _ELECTION,
                retryable=lambda error: isinstance(error, NoResponderError | ReplyTimeoutError),
                deadline=Deadline(API_S),
            )

    async def streams(self, subject: str) -> list[dict[str, Any]]:
        """The configurations of the streams that take anything of a subject."""
        found: list[dict[str, Any]] = []
        while True:
            body = _encode({"subject": subject, "offset": len(found)})
            page = _streams.decode((await self._call("STREAM.LIST", body)).data)
            found += [info.config for info in page.streams or ()]
            if not page.streams or len(found) >= page.total:
                return found

    async def header(self, stream: str, sequence: int, name: str) -> str:
        """A header of a stored message; empty if the message has none, or is not there any more."""
        try:
            reply = await self._call(f"STREAM.MSG.GET.{stream}", _encode({"seq": sequence}))
        except NotFoundError:
            return ""
        head = f"{name}: ".encode()
        for line in _stored.decode(reply.data).message.hdrs.split(b"\r\n"):
            if line.startswith(head):
                return line.removeprefix(head).decode()
        return ""

    async def newest(self, stream: str, subject: str, *, deadline: float) -> bytes | None:
        """The newest message on a subject, from any server that has a copy; None if there is none."""
        found = await self._newest(stream, subject, deadline)
        return None if found is None else found.data

    async def entry(self, bucket: str, key: str, *, deadline: float) -> bytes | None:
        """An entry of a bucket; None if there is none."""
        found = await self._newest(bucket_stream(bucket), entry_subject(bucket, key), deadline)
        return None if found is None or "KV-Operation" in (found.headers or {}) else found.data

    async def _newest(self, stream: str, subject: str, deadline: float) -> Msg | None:
        try:
            reply = await self._connection.request(
                f"{self._connection.api}.DIRECT.GET.{stream}.{subject}", b"", deadline=deadline
            )
        except NoResponderError:
            return None
        return None if status_of(reply) == _NO_MESSAGE else reply

    async def delete_stream(self, name: str) -> None:
        """Remove a stream with everything in it; raises NotFoundError."""
        await self._call(f"STREAM.DELETE.{name}", b"")

    async def consumer(self, stream: str, name: str) -> ConsumerInfo:
        """Look at a consumer; raises NotFoundError."""
        return _consumer.decode((await self._look(f"CONSUMER.INFO.{stream}.{name}")).data)

    async def make_consumer(self, stream: str, wanted: "Consumer") -> ConsumerInfo:
        """
        Make a consumer of the messages on `wanted.subject`, which is part of the request's own subject, so that the server
        can check who may read what. Members of other accounts are answered by a collector.
        """
        config = wanted.config()
        body = {"stream_name": stream, "config": config, "action": "create"}
        subject = f"{CREATE}.{stream}.{wanted.name}.{wanted.subject}"
        return _consumer.decode((await self._call(subject, _encode(body))).data)

    async def ask(self, subject: str, body: bytes) -> bytes:
        """Call for somebody else, who gets what JetStream says to it."""
        try:
            answer = await self._connection.request(f"{self._connection.api}.{subject}", body, deadline=API_S)
        except NoResponderError as error:
            raise BusUnavailableError("the server's JetStream does not answer") from error
        return answer.data

    async def delete_consumer(self, stream: str, name: str) -> None:
        """Remove a consumer; raises NotFoundError."""
        await self._call(f"CONSUMER.DELETE.{stream}.{name}", b"")

    async def _look(self, subject: str) -> Msg:
        """
        A question that changes nothing, so it is asked once more, and soon: in a cluster nobody answers for a stream whose
        leader is just being elected.
        """
        try:
            return await self._call(subject, b"", deadline=LOOK_S)
        except ReplyTimeoutError:
            return await self._call(subject, b"")

    async def _call(self, subject: str, body: bytes, *, deadline: float = API_S) -> Msg:
        try:
            reply = await self._connection.request(
                f"{self._connection.api}.{subject}", body, deadline=deadline
            )
        except NoResponderError as error:
            who = "the server's JetStream"
            if self._connection.guest and subject.startswith((CREATE, CREATE_STREAM)):
                who = "a collector, which makes readers and streams,"
            raise BusUnavailableError(f"{who} does not answer") from error
        failed = _failed.decode(reply.data).error
        if failed is not None:
            _raise(failed, subject)
        return reply


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer of a stream that is to be pulled from."""

    name: str
    subject: str
    durable: bool
    batch: int
    after: int | None
    """The sequence behind which it begins; None: with the newest message of each subject."""
    since: float = 0.0
    """Begin at that time instead, seconds since the epoch."""

    def config(self) -> dict[str, Any]:
        """As JetStream takes it."""
        config: dict[str, Any] = {"name": self.name, "filter_subject": self.subject}
        if self.durable:
            config |= {
                "durable_name": self.name,
                "ack_policy": "all",
                "ack_wait": int(ACK_WAIT_S * NANOSECONDS),
                "max_ack_pending": 8 * self.batch,
            }
        else:
            config |= {
                "ack_policy": "none",
                "mem_storage": True,
                "inactive_threshold": int(ORPHAN_S * NANOSECONDS),
            }
        if self.after is None:
            return config | {"deliver_policy": "last_per_subject"}
        if self.since:
            start = datetime.fromtimestamp(self.since, UTC).isoformat().replace("+00:00", "Z")
            return config | {"deliver_policy": "by_start_time", "opt_start_time": start}
        if self.after == 0:
            return config | {"deliver_policy": "all"}
        return config | {"deliver_policy": "by_start_sequence", "opt_start_seq": self.after + 1}


def pull_request(batch: int, *, most: int, expires: float, heartbeat: float) -> bytes:
    """
    Ask for up to `batch` messages as they come, of up to `most` bytes together, during `expires` seconds, with a sign
    of life each `heartbeat` seconds. `most` must be more than the largest message: the server delivers none otherwise.
    """
    return _encode(
        {
            "batch": batch,
            "max_bytes": most,
            "expires": int(expires * NANOSECONDS),
            "idle_heartbeat": int(heartbeat * NANOSECONDS),
        }
    )


def stream_config(spec: StreamSpec, *, replicas: int = 1) -> dict[str, Any]:
    """The configuration of a stream that keeps the newest messages within its limits."""
    config: dict[str, Any] = {
        "name": spec.name,
        "subjects": spec.subjects,
        "retention": "limits",
        "discard": "old",
        "storage": "memory" if spec.memory else "file",
        "max_bytes": spec.max_bytes,
        "max_msgs": spec.max_messages,
        "max_age": int(spec.max_age * NANOSECONDS),
        "num_replicas": replicas,
        "allow_direct": True,
        "duplicate_window": int(DUPLICATES_S * NANOSECONDS),
    }
    if spec.transform:
        config["subject_transform"] = dict(zip(("src", "dest"), spec.transform, strict=True))
    if spec.together:
        config["allow_atomic"] = True
    if spec.objects:
        config |= {"max_msgs_per_subject": 1, "allow_msg_ttl": True, "discard": "new"}
    if spec.first_sequence > 1:
        config["first_seq"] = spec.first_sequence
    return config


def bucket_stream(bucket: str) -> str:
    """The stream that holds a bucket."""
    return f"KV_{bucket}"


def entry_subject(bucket: str, key: str) -> str:
    """The subject of an entry of a bucket, or a filter if `key` is one."""
    return f"$KV.{bucket}.{key}"


def bucket_config(spec: BucketSpec, *, replicas: int = 1) -> dict[str, Any]:
    """
    The configuration of the stream of a bucket.

    An expiry leaves no mark: a server that makes them lets everybody who may write an entry remove all (`Nats-Rollup`).
    """
    config: dict[str, Any] = {
        "name": bucket_stream(spec.name),
        "subjects": [entry_subject(spec.name, ">")],
        "retention": "limits",
        "discard": "new",
        "storage": "memory" if spec.memory else "file",
        "max_msgs_per_subject": 1,
        "max_bytes": spec.max_bytes,
        "max_age": int(spec.ttl * NANOSECONDS),
        "duplicate_window": int(DUPLICATES_S * NANOSECONDS),
        "num_replicas": replicas,
        "allow_direct": True,
        "allow_rollup_hdrs": False,
        "deny_delete": True,
        "allow_msg_ttl": True,
    }
    return config


def ttl_header(seconds: float) -> str:
    """A message's time to live as the server reads it; it knows nothing below one second."""
    return f"{max(int(seconds * 1000), 1000)}ms"
