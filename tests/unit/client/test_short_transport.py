"""The transport of commands that ask once and end: without an event loop as long as that will do."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Bus, RefusedError, Served
from kettle.bus.single_request import UnusualError
from kettle.client.connections import pool_connection, short_transport
from kettle.client.connections.pool_connection import ConnectedTransport
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.short_transport import ShortTransport
from kettle.client.errors import CommandRefusedError, PoolUnreachableError
from kettle.testing.patience import PATIENCE_S
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, user
from kettle_wire.subjects import Subjects


class Request(msgspec.Struct, frozen=True):
    id: str


ASK = Endpoint("test", "ask", Request, Request, callers=(Caller.USER,), repeat=Repeat.FIRST_ANSWER)
POOL = PoolFile(nats_url="nats://127.0.0.1:1", user="ada")


class Pool:
    """Both ways to a service, with what went over each."""

    def __init__(self) -> None:
        self.short: list[str] = []
        self.connected: list[str] = []
        self.connections = self.closed = 0
        self.unusual: set[str] = set()
        self.reachable = True

    def ask_once(self, url: str, endpoint: Any, name: str, request: Request, **_: Any) -> Request:
        self.short.append(request.id)
        if request.id in self.unusual:
            raise UnusualError(url)
        if request.id == "refused":
            raise RefusedError("denied", "no")
        return request

    @asynccontextmanager
    async def connect(self, _pool: PoolFile, patience: float) -> AsyncGenerator[ConnectedTransport]:
        if not self.reachable:
            raise PoolUnreachableError("no bus")
        bus = MemoryBus(MemoryServer(), subjects=Subjects("t"), identity=user("ada"))
        await bus.serve("test", "a", [Served(ASK, self._answer)], version="1.0.0")
        self.connections += 1
        yield ConnectedTransport(bus, bus, patience=patience)
        self.closed += 1

    async def _answer(self, request: Request, _caller: Identity) -> Request:
        self.connected.append(request.id)
        if request.id == "forbidden":
            raise RefusedError("denied", "no")
        return request


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    pool = Pool()
    monkeypatch.setattr(short_transport, "ask_once", pool.ask_once)
    monkeypatch.setattr(pool_connection, "connect_pool", pool.connect)
    return pool


@pytest.fixture
def transport() -> ShortTransport:
    return ShortTransport(POOL, 5.0)


@pytest.fixture
def asked(transport: ShortTransport) -> Callable[..., list[str]]:
    """Ask for one thing after the other in one coroutine; what was answered."""

    async def each(*ids: str) -> list[str]:
        return [(await transport.call(ASK, "a", Request(id_))).id for id_ in ids]

    return lambda *ids: transport.run(each(*ids))


def test_questions_need_no_event_loop(
    pool: Pool, asked: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(asyncio, "run")
    assert ["x", "y"] == asked("x", "y") == pool.short
    assert 0 == pool.connections


def test_what_is_unusual_is_asked_again_in_an_event_loop(pool: Pool, asked: Callable[..., list[str]]) -> None:
    """
    It is the first request again, since a repeat is known by its id; over one connection, as is all that comes after it, and that ends.
    """
    pool.unusual = {"y"}
    assert ["x", "y", "z"] == asked("x", "y", "z")
    assert (["x", "y"], ["y", "z"]) == (pool.short, pool.connected)
    assert (1, 1) == (pool.connections, pool.closed)
    assert ["x"] == asked("x")
    assert (["x", "y", "x"], 1) == (pool.short, pool.connections)


def test_a_refusal_is_raised_where_it_was_asked(pool: Pool, transport: ShortTransport) -> None:
    pool.unusual = {"forbidden"}

    async def work() -> str:
        try:
            await transport.call(ASK, "a", Request("forbidden"))
        except CommandRefusedError as error:
            return error.code
        return ""

    assert "denied" == transport.run(work())


def test_what_is_refused_for_good_is_sent_once(pool: Pool, transport: ShortTransport) -> None:
    with pytest.raises(CommandRefusedError, match="no") as refused:
        transport.run(transport.call(ASK, "a", Request("refused")))
    assert ("denied", ["refused"], 0) == (refused.value.code, pool.short, pool.connections)


def test_who_comes_with_a_token_is_refused_once(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Services know what a rule gives him before they answer, so there is nothing to ask again, and one denial
    is recorded.
    """
    monkeypatch.setenv("BEARER_TOKEN", "a.b.c")
    transport = ShortTransport(msgspec.structs.replace(POOL, token="BEARER_TOKEN"), 5.0)
    with pytest.raises(CommandRefusedError):
        transport.run(transport.call(ASK, "a", Request("refused")))
    assert (["refused"], []) == (pool.short, pool.connected)


def test_a_pool_out_of_reach_is_told_each_time_it_is_asked(pool: Pool, transport: ShortTransport) -> None:
    """A caller that can do without an answer continues."""
    pool.reachable, pool.unusual = False, {"x", "y"}

    async def work() -> list[str]:
        told: list[str] = []
        for id_ in ("x", "y", "z"):
            try:
                told.append((await transport.call(ASK, "a", Request(id_))).id)
            except PoolUnreachableError as error:
                told.append(str(error))
        return told

    assert ["no bus", "no bus", "z"] == transport.run(work())
    with pytest.raises(PoolUnreachableError):
        transport.run(transport.call(ASK, "a", Request("x")))


def test_what_goes_on_has_an_event_loop_from_its_connection_on(pool: Pool, transport: ShortTransport) -> None:
    """And asks nothing in the short way any more."""

    async def work() -> tuple[Bus | None, list[Request]]:
        before = await transport.call(ASK, "a", Request("before"))
        bus = await transport.connection()
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            tasks = [group.create_task(transport.call(ASK, "a", Request(id_))) for id_ in "xy"]
        return bus, [before, *(task.result() for task in tasks)]

    bus, answers = transport.run(work())
    assert isinstance(bus, MemoryBus)
    assert ["before", "x", "y"] == [answer.id for answer in answers]
    assert (["before"], {"x", "y"}, 1) == (pool.short, set(pool.connected), pool.connections)


def test_an_error_ends_the_connection(pool: Pool, transport: ShortTransport) -> None:
    async def work() -> None:
        await transport.connection()
        raise LookupError

    with pytest.raises(LookupError):
        transport.run(work())
    assert 1 == pool.connections
    pool.unusual = {"y"}
    assert Request("y") == transport.run(transport.call(ASK, "a", Request("y")))
    assert 2 == pool.connections
