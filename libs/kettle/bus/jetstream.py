"""
The part of the JetStream API that is used here: streams, and consumers that are pulled.
"""

from typing import Any, Final, NoReturn

import msgspec
from nats.aio.msg import Msg

from kettle.bus.connection import Connection
from kettle.bus.ports import (
    BucketSpec,
    BusError,
    BusUnavailableError,
    NoResponderError,
    StreamSpec,
    WrongSequenceError,
)

API: Final = "$JS.API"
API_S: Final = 5.0
"""Deadline of one call of the API."""
NANOSECONDS: Final = 1_000_000_000
DUPLICATES_S: Final = 120.0
MARKER_S: Final = 60.0
"""How long a deletion stays to be seen by watchers that are away."""

_STREAM_EXISTS: Final = 10058
_WRONG_LAST: Final = (10071, 10164)


class NotFoundError(BusError):
    """
    There is no such stream or consumer now.
    """


class _ExistsError(BusError):
    """
    Somebody made the stream first, with another configuration.
    """


class _Error(msgspec.Struct):
    code: int
    err_code: int = 0
    description: str = ""


class State(msgspec.Struct, frozen=True):
    """
    Where a stream stands.
    """

    first_seq: int
    last_seq: int


class StreamInfo(msgspec.Struct, frozen=True):
    """
    A stream; `created` tells it from another of the same name that was made after it was deleted.
    """

    created: str
    state: State
    config: dict[str, Any]


class _Floor(msgspec.Struct, frozen=True):
    stream_seq: int


class ConsumerInfo(msgspec.Struct, frozen=True):
    """
    A consumer: what is acknowledged, and how much waits.
    """

    ack_floor: _Floor
    num_pending: int


class _Ack(msgspec.Struct, frozen=True):
    seq: int = 0
    error: _Error | None = None


class _Failed(msgspec.Struct, frozen=True):
    error: _Error | None = None


_ack = msgspec.json.Decoder(_Ack)
_failed = msgspec.json.Decoder(_Failed)
_stream = msgspec.json.Decoder(StreamInfo)
_consumer = msgspec.json.Decoder(ConsumerInfo)
_encode = msgspec.json.Encoder().encode


def _raise(error: _Error, subject: str, expected: int = -1) -> NoReturn:
    sentence = f"{subject}: {error.description} ({error.err_code})"
    if error.err_code in _WRONG_LAST:
        raise WrongSequenceError(sentence, expected=expected)
    if error.err_code == _STREAM_EXISTS:
        raise _ExistsError(sentence)
    match error.code:
        case 404:
            raise NotFoundError(sentence)
        case 503:
            raise BusUnavailableError(sentence)
        case _:
            raise BusError(sentence)


class JetStream:
    """
    Calls of the API over one connection.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def append(
        self, subject: str, data: bytes, *, headers: dict[str, str] | None, expected: int, deadline: float
    ) -> int:
        """
        Store a message; returns its sequence. `expected` goes into the error if the guard in `headers` fails.
        """
        reply = await self._connection.request(subject, data, deadline=deadline, headers=headers)
        try:
            ack = _ack.decode(reply.data)
        except msgspec.MsgspecError as error:
            raise BusError(f"{subject}: what answers there is no stream") from error
        if ack.error is not None:
            _raise(ack.error, subject, expected)
        return ack.seq

    async def stream(self, name: str) -> StreamInfo:
        """
        Look at a stream; raises NotFoundError.
        """
        return _stream.decode((await self._call(f"STREAM.INFO.{name}", b"")).data)

    async def make_stream(self, config: dict[str, Any]) -> tuple[StreamInfo, bool]:
        """
        Make a stream if there is none of that name, and say whether; an existing one stays as its operator configured it.
        """
        name = str(config["name"])
        try:
            return await self.stream(name), False
        except NotFoundError:
            pass
        try:
            return _stream.decode((await self._call(f"STREAM.CREATE.{name}", _encode(config))).data), True
        except _ExistsError:
            return await self.stream(name), False

    async def delete_stream(self, name: str) -> None:
        """
        Remove a stream with everything in it; raises NotFoundError.
        """
        await self._call(f"STREAM.DELETE.{name}", b"")

    async def consumer(self, stream: str, name: str) -> ConsumerInfo:
        """
        Look at a consumer; raises NotFoundError.
        """
        return _consumer.decode((await self._call(f"CONSUMER.INFO.{stream}.{name}", b"")).data)

    async def make_consumer(self, stream: str, name: str, config: dict[str, Any]) -> ConsumerInfo:
        """
        Make a consumer of the messages on `config["filter_subject"]`, which stands in the request's own subject, so
        that the server can tell who may read what.
        """
        body = {"stream_name": stream, "config": config, "action": "create"}
        subject = f"CONSUMER.CREATE.{stream}.{name}.{config['filter_subject']}"
        return _consumer.decode((await self._call(subject, _encode(body))).data)

    async def delete_consumer(self, stream: str, name: str) -> None:
        """
        Remove a consumer; raises NotFoundError.
        """
        await self._call(f"CONSUMER.DELETE.{stream}.{name}", b"")

    async def _call(self, subject: str, body: bytes) -> Msg:
        try:
            reply = await self._connection.request(f"{API}.{subject}", body, deadline=API_S)
        except NoResponderError as error:
            raise BusUnavailableError("the server's JetStream does not answer") from error
        failed = _failed.decode(reply.data).error
        if failed is not None:
            _raise(failed, subject)
        return reply


def pull_request(batch: int, *, expires: float, heartbeat: float) -> bytes:
    """
    Ask for up to `batch` messages as they come, during `expires` seconds, with a sign of life each `heartbeat` seconds.
    """
    return _encode(
        {
            "batch": batch,
            "expires": int(expires * NANOSECONDS),
            "idle_heartbeat": int(heartbeat * NANOSECONDS),
        }
    )


def stream_config(spec: StreamSpec) -> dict[str, Any]:
    """
    The configuration of a stream that keeps the newest messages within its limits.
    """
    config: dict[str, Any] = {
        "name": spec.name,
        "subjects": spec.subjects,
        "retention": "limits",
        "discard": "old",
        "storage": "memory" if spec.memory else "file",
        "max_bytes": spec.max_bytes,
        "max_age": int(spec.max_age * NANOSECONDS),
        "num_replicas": 1,
        "allow_direct": True,
    }
    if spec.max_age:
        config["duplicate_window"] = int(min(spec.max_age, DUPLICATES_S) * NANOSECONDS)
    if spec.first_sequence > 1:
        config["first_seq"] = spec.first_sequence
    return config


def bucket_stream(bucket: str) -> str:
    """
    The stream that holds a bucket.
    """
    return f"KV_{bucket}"


def entry_subject(bucket: str, key: str) -> str:
    """
    The subject of an entry of a bucket, or a filter if `key` is one.
    """
    return f"$KV.{bucket}.{key}"


def bucket_config(spec: BucketSpec) -> dict[str, Any]:
    """
    The configuration of the stream behind a bucket; expiry leaves a marker, which is how watchers hear of it.
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
        "duplicate_window": int(min(spec.ttl or DUPLICATES_S, DUPLICATES_S) * NANOSECONDS),
        "num_replicas": 1,
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": int(MARKER_S * NANOSECONDS),
    }
    return config


def ttl_header(seconds: float) -> str:
    """
    A message's time to live as the server reads it; it knows nothing below one second.
    """
    return f"{max(int(seconds * 1000), 1000)}ms"
