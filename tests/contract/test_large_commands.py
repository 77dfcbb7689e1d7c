"""Commands and answers that are larger than a message of the bus, over each adapter."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import msgspec
import pytest
import pytest_asyncio

from kettle.bus.large_messages import PartLimits
from kettle.bus.large_requests import LARGEST
from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus, RefusedError, Served
from kettle.embedded import EmbeddedNats
from kettle.embedded import Limits as ServerLimits
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING, server_directory
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.subjects import Subjects

MESSAGE = 64 * 1024
SUBJECTS = Subjects("large")


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data: bytes


CALLERS = tuple(Caller)
ECHO = Endpoint("test", "echo", Text, Text, callers=CALLERS, repeat=Repeat.HARMLESS)
Connect = Callable[..., Awaitable[Bus]]


async def echo(request: Text, _caller: Identity) -> Text:
    return Text(request.data[::-1])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def small() -> AsyncIterator[EmbeddedNats]:
    """A server that takes messages of 64 KB."""
    with server_directory() as directory:
        async with EmbeddedNats(
            directory / "nats",
            credentials=directory / "keys",
            permissions=EVERYTHING,
            limits=ServerLimits(max_payload="64KB"),
        ) as server:
            yield server


@pytest_asyncio.fixture(params=["memory", "nats"])
async def connect(request: pytest.FixtureRequest, small: EmbeddedNats) -> AsyncIterator[Connect]:
    """Connects somebody to a bus with a small limit."""
    memory = MemoryServer(payload_limit=MESSAGE)
    async with AsyncExitStack() as stack:

        async def connected(who: Identity = daemon("gateway"), limits: PartLimits | None = None) -> Bus:  # noqa: B008 - frozen
            if request.param == "memory":
                bus = MemoryBus(memory, subjects=SUBJECTS, identity=who, limits=limits)
                stack.callback(bus.close)
                return bus
            return await stack.enter_async_context(
                NatsBus.connect(
                    small.url,
                    subjects=SUBJECTS,
                    identity=who,
                    credentials=str(small.credentials("test")),
                    patience=PATIENCE_S,
                    deadline=PATIENCE_S,
                    limits=limits,
                )
            )

        yield connected


def content(size: int) -> bytes:
    """Bytes of which no two parts are alike."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


@pytest.mark.parametrize("size", [0, MESSAGE // 2, MESSAGE, MESSAGE + 1, 10 * MESSAGE + 7])
async def test_what_is_sent_and_answered_arrives_whole(connect: Connect, size: int) -> None:
    """Below the limit, at it, and far above it, in both directions."""
    service, caller = await connect(), await connect(user("ada"))
    await service.serve("test", "a", [Served(ECHO, echo)], version="1.0.0")
    data = content(size)
    assert data[::-1] == (await caller.call(ECHO, "a", Text(data), deadline=PATIENCE_S)).data


async def test_large_commands_of_many_callers_do_not_mix(connect: Connect) -> None:
    """Side by side, also several of one caller."""
    service = await connect()
    await service.serve("test", "a", [Served(ECHO, echo)], version="1.0.0")
    callers = [await connect(user(name)) for name in ("ada", "grace")]

    async def once(caller: Bus, number: int) -> bool:
        data = bytes([number]) + content(5 * MESSAGE)
        return data[::-1] == (await caller.call(ECHO, "a", Text(data), deadline=PATIENCE_S)).data

    outcomes = await asyncio.gather(*(once(caller, i) for caller in callers for i in range(4)))
    assert [True] * 8 == outcomes


async def test_each_command_goes_to_one_of_several_that_serve(connect: Connect) -> None:
    """All its parts reach the same instance, no matter which others answer for the name."""
    caller = await connect(user("ada"))
    for _ in range(3):
        await (await connect()).serve("test", "a", [Served(ECHO, echo)], version="1.0.0")
    for number in range(6):
        data = bytes([number]) + content(3 * MESSAGE)
        assert data[::-1] == (await caller.call(ECHO, "a", Text(data), deadline=PATIENCE_S)).data


async def test_a_refusal_of_a_large_command_arrives(connect: Connect) -> None:
    """Whether the service does not want it or cannot read it."""

    async def refuse(_request: Text, _caller: Identity) -> Text:
        raise RefusedError("not_now", "later", retry_after_ms=70)

    service, caller = await connect(), await connect(user("ada"))
    await service.serve("test", "a", [Served(ECHO, refuse)], version="1.0.0")
    with pytest.raises(RefusedError, match="later") as refused:
        await caller.call(ECHO, "a", Text(content(3 * MESSAGE)), deadline=PATIENCE_S)
    assert ("not_now", 70) == (refused.value.code, refused.value.retry_after_ms)
    wrong = Endpoint("test", "echo", Wrong, Text, callers=CALLERS, repeat=Repeat.HARMLESS)
    with pytest.raises(RefusedError, match="Expected `bytes`") as malformed:
        await caller.call(wrong, "a", Wrong([1] * 3 * MESSAGE), deadline=PATIENCE_S)
    assert "malformed" == malformed.value.code


class Wrong(msgspec.Struct, frozen=True):
    data: list[int]


async def test_there_is_an_end_to_what_is_carried(connect: Connect) -> None:
    """Beyond it the request is refused before it is sent, and the answer before it is kept."""

    async def much(_request: Text, _caller: Identity) -> Text:
        return Text(bytes(LARGEST))

    service, caller = await connect(), await connect(user("ada"))
    await service.serve("test", "a", [Served(ECHO, much)], version="1.0.0")
    for request in (Text(bytes(LARGEST)), Text(b"")):
        with pytest.raises(RefusedError) as refused:
            await caller.call(ECHO, "a", request, deadline=PATIENCE_S)
        assert "too_large" == refused.value.code


async def test_a_caller_with_too_much_under_way_is_told_to_wait(connect: Connect) -> None:
    """The room of one is not that of the others."""
    limits = PartLimits(each=4 * MESSAGE, retry_ms=30)
    service, greedy, modest = (
        await connect(limits=limits),
        await connect(user("greedy")),
        await connect(user("modest")),
    )
    await service.serve("test", "a", [Served(ECHO, echo)], version="1.0.0")
    with pytest.raises(RefusedError) as refused:
        await greedy.call(ECHO, "a", Text(content(5 * MESSAGE)), deadline=PATIENCE_S)
    assert ("busy", 30) == (refused.value.code, refused.value.retry_after_ms)
    data = content(3 * MESSAGE)
    assert data[::-1] == (await modest.call(ECHO, "a", Text(data), deadline=PATIENCE_S)).data
