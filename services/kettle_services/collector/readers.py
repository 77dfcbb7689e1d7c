"""
Consumers of streams for members of other accounts than the pool's: they ask as JetStream is asked, and so does any client of NATS.

JetStream itself would deliver messages to whatever subject is named, with rights of its own: to an event stream, into a lease.
So only consumers that are pulled from are made here.  Who may read what the server has decided: the filter is part of the
subject on which it lets somebody ask.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kettle.bus.jetstream import CREATE, NANOSECONDS
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusUnavailableError, ReplyTimeoutError
from kettle_services.collector.domain.reader_requests import Kept, ReaderError, accepted
from kettle_wire.subjects import Subjects

_UNAVAILABLE: Final = 503
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
            asked = msgspec.json.decode(body, type=_Request).config
            reader = accepted(self._subjects, stream, name, of, asked)
            self._kept.add(reader, now=self._clock())
        except ReaderError as error:
            return _refusal(error.code, str(error))
        except (msgspec.MsgspecError, RecursionError) as error:
            return _refusal(ReaderError.code, str(error))
        config = reader.config
        if reader.idle:
            config = {**config, "inactive_threshold": int(reader.idle * NANOSECONDS)}
        request = {"stream_name": stream, "config": config, "action": "create"}
        try:
            return await self._bus.ask_jetstream(f"{CREATE}.{place}", _encode(request))
        except (BusUnavailableError, ReplyTimeoutError) as error:
            return _refusal(_UNAVAILABLE, str(error))


def _refusal(code: int, sentence: str) -> bytes:
    kind = "io.nats.jetstream.api.v1.consumer_create_response"
    return _encode({"type": kind, "error": {"code": code, "description": sentence}})
