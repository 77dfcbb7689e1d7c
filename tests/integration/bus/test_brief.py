"""One question without an event loop: the answer of the ordinary way, or none."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from kettle.bus.nats import NatsBus
from kettle.bus.ports import RefusedError, Served
from kettle.bus.single_request import UnusualError, ask_once
from kettle.embedded import EmbeddedNats
from kettle.embedded import Limits as ServerLimits
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING, server_directory
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("brief")
NOT_FOR_GOOD = (b"busy", b"stopping", b"unavailable", b"not_permitted")


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data: bytes
    times: int = 1


CALLERS = tuple(Caller)
ECHO = Endpoint("test", "echo", Text, Text, callers=CALLERS, repeat=Repeat.HARMLESS)


async def echo(request: Text, caller: Identity) -> Text:
    if not request.data:
        raise RefusedError("refused", "no: ä")
    if request.data in NOT_FOR_GOOD:
        raise RefusedError(request.data.decode(), "later", retry_after_ms=7)
    return Text(caller.name.encode() + request.data * request.times)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server() -> AsyncIterator[EmbeddedNats]:
    """A server that takes messages of 64 KB, and wants a key."""
    with server_directory() as directory:
        async with EmbeddedNats(
            directory / "nats",
            credentials=directory / "keys",
            permissions=EVERYTHING,
            limits=ServerLimits(max_payload="64KB"),
        ) as running:
            yield running


@pytest_asyncio.fixture
async def serving(server: EmbeddedNats) -> AsyncIterator[EmbeddedNats]:
    """Somebody answers there."""
    credentials = str(server.credentials("test"))
    async with NatsBus.connect(
        server.url,
        subjects=SUBJECTS,
        identity=daemon("gateway"),
        credentials=credentials,
        patience=PATIENCE_S,
        deadline=PATIENCE_S / 4,  # what a server that went away did not answer is sent again
    ) as bus:
        await bus.serve("test", "one", [Served(ECHO, echo)], version="1.0.0")
        yield server


async def asked(
    server: EmbeddedNats,
    request: Text,
    *,
    url: str = "",
    name: str = "one",
    key: bool = True,
    within: float = 20.0,
) -> Text:
    credentials = str(server.credentials("test")) if key else ""
    return await asyncio.to_thread(
        ask_once, url or server.url, ECHO, name, request,
        subjects=SUBJECTS, identity=user("eve"), credentials=credentials, within=within,
    )  # fmt: skip


@pytest.mark.parametrize("request_", [Text(b"x"), Text(b"x", 300_000), Text(b"y" * 300_000)])
async def test_it_answers(serving: EmbeddedNats, request_: Text) -> None:
    """Short, and with a long answer or a long question, which go in parts; who asks is known."""
    assert Text(b"eve" + request_.data * request_.times) == await asked(serving, request_)


async def test_a_refusal_is_the_answer(serving: EmbeddedNats) -> None:
    """With its code and its sentence; one that may pass, or that has to be explained, is left to others."""
    with pytest.raises(RefusedError, match="no: ä") as refused:
        await asked(serving, Text(b""))
    assert "refused" == refused.value.code
    for code in NOT_FOR_GOOD:
        with pytest.raises(UnusualError, match="later"):
            await asked(serving, Text(code))


async def test_what_is_unusual_is_left_to_others(serving: EmbeddedNats) -> None:
    """Nobody answers, several servers, another protocol, no key or a wrong one, no server, no time."""
    text = Text(b"x")
    with pytest.raises(UnusualError, match="nobody answers"):
        await asked(serving, text, name="two")
    for url in (
        f"{serving.url},{serving.url}",
        "ws://localhost:4222",
        "nats://u:p@localhost:4222",
        "nats://a",
    ):
        with pytest.raises(UnusualError, match="address of one server"):
            await asked(serving, text, url=url)
    with pytest.raises(UnusualError, match=r"(?i)authorization"):
        await asked(serving, text, key=False)
    with pytest.raises(UnusualError, match="refused"):
        await asked(serving, text, url="nats://127.0.0.1:1")
    with pytest.raises(UnusualError):
        await asked(serving, text, within=0.0)
