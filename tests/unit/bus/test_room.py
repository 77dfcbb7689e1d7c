"""What a service has in hand at once."""

import asyncio
from typing import cast

import msgspec

from kettle.bus import command_service
from kettle.bus.command_service import CommandService, refusal_of
from kettle.bus.large_requests import Parcel
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.ports import Served
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, user
from kettle_wire.subjects import Subjects


class Text(msgspec.Struct, frozen=True):
    data: bytes


SUBJECTS = Subjects("test")
CALLERS = tuple(Caller)
ASK = Endpoint("test", "ask", Text, Text, callers=CALLERS, repeat=Repeat.HARMLESS, limited=True, largest=10)
ORDER = Endpoint("test", "order", Text, Text, callers=CALLERS, repeat=Repeat.HARMLESS)
BODY = msgspec.msgpack.encode(Text(b"x"))


class FakeConnection:
    limit = 1 << 20


class Asker:
    """Sends requests to a service as if they came from the bus."""

    def __init__(self) -> None:
        self._service = CommandService(cast("NatsConnection", FakeConnection()), SUBJECTS, None)
        self.codes: list[str] = []

    async def send(self, served: Served[Text, Text], data: bytes = BODY) -> None:
        async def respond(parcel: Parcel) -> None:
            refusal = refusal_of(parcel.headers, parcel.data)
            self.codes.append(refusal.code if refusal is not None else "")

        subject = SUBJECTS.command("test", "a", served.endpoint.verb, user("ada").token)
        await self._service.take("test", subject, Parcel(data), served, respond)

    async def close(self) -> None:
        await self._service.close()


async def test_what_is_for_anybody_leaves_room() -> None:
    """However many questions of people hang, the service's other endpoints answer."""

    async def hang(_request: Text, _caller: Identity) -> Text:
        await asyncio.Event().wait()
        raise AssertionError

    async def obey(request: Text, _caller: Identity) -> Text:
        return request

    asker = Asker()
    for _ in range(command_service.MOST_LIMITED + 1):
        await asker.send(Served(ASK, hang))
    assert ["busy"] == asker.codes
    await asker.send(Served(ORDER, obey))
    while len(asker.codes) < 2:
        await asyncio.sleep(0)
    assert ["busy", ""] == asker.codes
    await asker.close()


async def test_a_request_that_is_too_large_is_not_taken_in() -> None:
    """Endpoints say how much they take."""

    async def never(_request: Text, _caller: Identity) -> Text:
        raise AssertionError

    asker = Asker()
    await asker.send(Served(ASK, never), bytes(11))
    assert ["too_large"] == asker.codes
    await asker.close()
