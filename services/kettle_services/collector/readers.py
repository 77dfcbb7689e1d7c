"""
Consumers of streams for members of other accounts than the pool's: they ask as JetStream is asked, and so does any client of NATS.

JetStream itself would deliver messages to whatever subject is named, with rights of its own: to an event stream, into a lease.
So only consumers that are pulled from are made here.  Who may read what the server has decided: the filter is part of the
subject on which it lets somebody ask.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kettle.bus.jetstream import CREATE, CREATE_STREAM, NANOSECONDS
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError
from kettle_services.collector.domain.reader_requests import Kept, ReaderError, accepted
from kettle_services.collector.domain.stream_requests import accepted_stream
from kettle_wire.subjects import Subjects

_UNAVAILABLE: Final = 503
_LARGEST: Final = 64 * 1024
_encode: Final = msgspec.json.Encoder().encode


class _Request(msgspec.Struct):
    """What a client sends."""

    config: dict[str, Any]


class Readers:
    """Makes them."""

    def __init__(self, bus: NatsBus, subjects: Subjects, clock: Callable[[], float]) -> None:
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._kept = Kept()

    async def answer(self, subject: str, body: bytes) -> bytes:
        """What JetStream says, or why it is not asked, in the form in which it would say that."""
        place = subject.removeprefix(self._subjects.readers(""))
        stream, _, rest = place.partition(".")
        name, _, of = rest.partition(".")
        try:
            request = self._request(stream, name, of, body)
        except ReaderError as error:
            return _refusal(error.code, str(error))
        try:
            return await self._bus.ask_jetstream(f"{CREATE}.{place}", request)
        except BusError as error:
            return _refusal(_UNAVAILABLE, str(error))

    async def make_stream(self, subject: str, body: bytes) -> bytes:
        """
        What JetStream says of a stream that an access point asks for which has joined, or why it is not asked.
        """
        name = subject.removeprefix(self._subjects.stream_requests(""))
        try:
            return await self._bus.ask_jetstream(
                f"{CREATE_STREAM}.{name}", accepted_stream(self._subjects, name, body)
            )
        except ReaderError as error:
            return _refusal(error.code, str(error), kind="stream")
        except BusError as error:
            return _refusal(_UNAVAILABLE, str(error), kind="stream")

    def _request(self, stream: str, name: str, of: str, body: bytes) -> bytes:
        """What JetStream is asked; raises ReaderError."""
        if len(body) > _LARGEST:
            raise ReaderError(f"the settings of a consumer have {_LARGEST} bytes at most")
        try:
            asked = msgspec.json.decode(body, type=_Request).config
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ReaderError(f"these are no settings of a consumer: {error}") from error
        reader = accepted(self._subjects, stream, name, of, asked)
        config = dict(reader.config)
        if reader.idle:
            config["inactive_threshold"] = int(reader.idle * NANOSECONDS)
        try:
            request = _encode({"stream_name": stream, "config": config, "action": "create"})
        except (msgspec.MsgspecError, ValueError, OverflowError) as error:
            raise ReaderError(f"these are no settings of a consumer: {error}") from error
        self._kept.add(reader, now=self._clock())
        return request


def _refusal(code: int, sentence: str, *, kind: str = "consumer") -> bytes:
    answer = f"io.nats.jetstream.api.v1.{kind}_create_response"
    return _encode({"type": answer, "error": {"code": code, "description": sentence}})
