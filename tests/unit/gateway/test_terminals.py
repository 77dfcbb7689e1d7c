"""What passes between the WebSocket of a browser and a program beside a job."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import ClientSession, WSMessage, WSMsgType, web
from aiohttp.http_websocket import WebSocketError, WSCloseCode
from aiohttp.test_utils import TestServer

from kettle.auth.mapping.levels import Level
from kettle.client.jobs.access import SideProgram
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.rest.application import Front
from kettle_services.gateway.rest.connections import LastingConnections
from kettle_services.gateway.rest.past import PastQuestions
from kettle_services.gateway.rest.streams import Streams
from kettle_services.gateway.sessions.origins import Origins
from kettle_services.gateway.terminals import serving
from kettle_services.gateway.terminals.relay import TerminalRelay
from kettle_wire.commands.access import Output, Terminal
from kettle_wire.jobs import JobId


class Browser:
    """Sends these messages, and then nothing."""

    def __init__(self, *messages: WSMessage) -> None:
        self._messages = messages

    async def __aiter__(self) -> AsyncIterator[WSMessage]:
        for each in self._messages:
            yield each
        await asyncio.Event().wait()


class Program:
    """Takes what is typed, and writes nothing."""

    name = "p"

    def __init__(self) -> None:
        self.taken = b""

    async def output(self) -> AsyncIterator[Output]:
        await asyncio.Event().wait()
        yield Output(descriptor=1, data=b"")

    async def write(self, data: bytes) -> None:
        self.taken += data


async def still() -> None:
    """Nobody has withdrawn anything."""


@pytest.mark.parametrize(
    "error",
    [
        WebSocketError(WSCloseCode.MESSAGE_TOO_BIG, "Message size 65537 exceeds limit"),
        TimeoutError("No PONG"),
    ],
    ids=["too large", "silent"],
)
async def test_a_connection_that_fails_ends_the_terminal_with_the_reason(error: Exception) -> None:
    """A message beyond the largest, or no sign of life: neither is taken for something that was typed."""
    program = Program()
    browser = Browser(WSMessage(WSMsgType.BINARY, b"ls", None), WSMessage(WSMsgType.ERROR, error, None))
    relay = TerminalRelay(cast("web.WebSocketResponse", browser), cast("SideProgram", program), still)
    why = await relay.run()
    assert "has failed" in why
    assert str(error) in why


class Visit:
    """A running job, and everything that leads to it."""

    slot = "slot1@host"

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.person = SimpleNamespace(name="ada", expires=None)

    async def admit(self, _request: web.Request, _level: Level) -> SimpleNamespace:
        return SimpleNamespace(person=self.person, admission=SimpleNamespace(require_still=still))

    async def named(self, _name: str) -> tuple[JobId, str]:
        return JobId(1, 0), "queue"

    @asynccontextmanager
    async def for_long(self, _person: object) -> AsyncGenerator["Visit"]:
        yield self

    def at(self, _schedd: str) -> "Visit":
        return self

    async def visit(self, _job: JobId) -> "Visit":
        return self

    @asynccontextmanager
    async def running(self, _command: object, *, terminal: Terminal) -> AsyncGenerator[Program]:
        try:
            yield Program()
        finally:
            self.over.set()


async def test_a_browser_that_is_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing is typed or written its silence is the only sign: then the shell ends."""
    monkeypatch.setattr(serving, "ALIVE_S", 0.2)
    visit, streams, application = Visit(), Streams(1, 1), web.Application()
    front, people, past = (
        cast("Front", visit),
        cast("LastingConnections", visit),
        cast("PastQuestions", visit),
    )
    serving.Terminals(front, people, past, Origins("", ()), streams).add_to(application)
    async with TestServer(application) as server, ClientSession() as session:
        address = server.make_url("/live/terminals/1.0")
        # It answers while it receives, however long it takes to begin, and then no more.
        async with session.ws_connect(address) as socket, asyncio.timeout(PATIENCE_S):
            await socket.send_str('{"rows": 20, "columns": 70}')
            assert '{"slot":"slot1@host"}' == await socket.receive_str()
            assert 1 == streams.count
            await visit.over.wait()
