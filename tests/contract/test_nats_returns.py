"""
A connection to NATS that was lost comes back, whatever goes wrong on the way; on each of the event loops that services have.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import pytest
import pytest_asyncio
import uvloop

from kettle.bus.nats_connection import NatsConnection
from kettle.bus.nats_transport import NatsClient
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING, server_directory
from kettle_wire.identity import daemon

_LOOPS: Final = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server() -> AsyncIterator[EmbeddedNats]:
    """One of its own: a client of a cluster would go past the door of one server."""
    with server_directory() as directory:
        async with EmbeddedNats(directory / "nats", permissions=EVERYTHING) as running:
            yield running


class _Door:
    """
    Before a server: each further connection is met as the next of `moods` says, and normally when there is none left.
    """

    def __init__(self, url: str) -> None:
        self._host, _, port = url.removeprefix("nats://").rpartition(":")
        self._port = int(port)
        self.moods: list[str] = []
        self._open: list[asyncio.StreamWriter] = []
        self._meeting: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[str]:
        """Where it is."""
        server = await asyncio.start_server(self._meet, "127.0.0.1")
        try:
            yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            self.break_off()

    def break_off(self) -> None:
        """End all connections."""
        for writer in self._open:
            writer.close()
        self._open.clear()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mood = self.moods.pop(0) if self.moods else ""
        inner, outer = await asyncio.open_connection(self._host, self._port)
        self._open += [writer, outer]
        if mood == "leaves":  # behind its greeting, as a server that waited for too long
            writer.write(await inner.readline())
            writer.transport.abort()
            outer.close()
            return
        async with asyncio.TaskGroup() as both:
            both.create_task(_pass(reader, outer))
            both.create_task(_pass(inner, writer, silent=mood == "silent"))


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter, *, silent: bool = False) -> None:
    """`silent`: nothing is passed on behind the first PONG."""
    heard = b""
    with suppress(ConnectionError):
        while data := await source.read(65536):
            heard += data
            if silent and b"PONG" in heard:
                data = data[: data.find(b"PONG") + 6]
                target.write(data)
                await target.drain()
                await source.read()
                break
            target.write(data)
            await target.drain()
    target.close()


async def _asked(connection: NatsConnection) -> None:
    """It is there again, and has its subscriptions."""
    echo = connection.new_inbox()
    heard = asyncio.Event()
    await connection.subscribe(echo, lambda _message: heard.set())
    async with asyncio.timeout(PATIENCE_S):
        while not heard.is_set():
            if connection.connected:
                await connection.publish(echo, b"?")
            await asyncio.sleep(0.02)


async def _lost_and_found(
    server: EmbeddedNats, moods: list[str], token: Callable[[], str] | None = None
) -> None:
    door = _Door(server.url)
    async with (
        door.opened() as url,
        NatsConnection.open(
            url,
            identity=daemon("test"),
            credentials=str(server.credentials("test")),
            name="test",
            patience=PATIENCE_S,
            token=token,
        ) as connection,
    ):
        back = asyncio.Event()
        connection.watch(back=back.set)
        door.moods = list(moods)
        door.break_off()
        async with asyncio.timeout(PATIENCE_S):
            await back.wait()
        assert [] == door.moods, "each of them was met"
        await _asked(connection)
        assert not connection.failed.done()


def _run(make: Callable[[], asyncio.AbstractEventLoop], work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(work)


def test_a_server_that_leaves_behind_its_greeting(server: EmbeddedNats) -> None:
    """As one does to which somebody says too late who he is, because his machine is busy."""
    _run(uvloop.new_event_loop, _lost_and_found(server, ["leaves"] * 3))


def test_a_server_that_is_silent_behind_its_greeting(
    server: EmbeddedNats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was to serve that connection does not take what comes on the next."""
    flush = NatsClient.flush

    async def soon(self: NatsClient, timeout: float = 10) -> None:
        await flush(self, min(timeout, 0.2) if self.stats["reconnects"] else timeout)  # type: ignore[arg-type]

    monkeypatch.setattr(NatsClient, "flush", soon)
    _run(uvloop.new_event_loop, _lost_and_found(server, ["silent"] * 2))


@pytest.mark.parametrize("make", _LOOPS)
def test_a_token_that_cannot_be_had_for_a_while(
    server: EmbeddedNats, make: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """The reason is not one of the network's; the next try has it."""
    said: list[str] = []

    def token() -> str:
        said.append("")
        if len(said) in {2, 3}:
            raise ValueError("half a token")
        return "token"

    _run(make, _lost_and_found(server, [], token))
    assert 4 <= len(said)
