"""
Stands between a provider and a peer that speaks HTTP, and makes what networks and clouds do when they fail.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qs

import aiohttp
from aiohttp import web

from kettle.testing.servers.held_port import held_port

_OF_ONE_HOP: Final = frozenset(
    {"connection", "content-encoding", "content-length", "host", "transfer-encoding"}
)


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    """With its query."""
    headers: dict[str, str]
    body: bytes

    @property
    def action(self) -> str:
        """Of a request as Amazon's services take it."""
        return self.field("Action")

    def field(self, name: str) -> str:
        """Of a form."""
        return parse_qs(self.body.decode(errors="replace")).get(name, [""])[0]


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


class LostError(Exception):
    """The connection ends without an answer."""


Forward: TypeAlias = Callable[[Asked], Awaitable[Answer]]
Fault: TypeAlias = Callable[[Asked, Forward], Awaitable[Answer]]


class FaultProxy:
    """Answers at `url`; `faults` are asked in turn, the last of them nearest to the peer."""

    def __init__(self, peer: str) -> None:
        self.port: Final = held_port()
        self.url: Final = f"http://127.0.0.1:{self.port}"
        self.faults: Final[list[Fault]] = []
        self.asked: Final[list[Asked]] = []
        """What reached the peer."""
        self._peer: Final = peer
        self._client: aiohttp.ClientSession
        self._runner: web.AppRunner

    async def open(self) -> None:
        """Listen."""
        self._client = aiohttp.ClientSession(auto_decompress=False)
        await self._listen()

    async def _listen(self) -> None:
        application = web.Application(client_max_size=1 << 24)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def close(self) -> None:
        """Stop."""
        await self._runner.cleanup()
        await self._client.close()

    @asynccontextmanager
    async def closed(self) -> AsyncGenerator[None]:
        """Nobody listens while this lasts."""
        await self._runner.cleanup()
        try:
            yield
        finally:
            await self._listen()

    @contextmanager
    def fault(self, *faults: Fault) -> Generator[None]:
        """Have faults while this lasts, before all others."""
        self.faults[:0] = faults
        try:
            yield
        finally:
            for each in faults:
                self.faults.remove(each)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _OF_ONE_HOP}
        asked = Asked(request.method, request.raw_path, headers, await request.read())

        async def through(number: int, asked: Asked) -> Answer:
            if number == len(faults):
                return await self._forward(asked)
            return await faults[number](asked, lambda changed: through(number + 1, changed))

        faults = list(self.faults)
        try:
            answer = await through(0, asked)
        except LostError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    async def _forward(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        async with self._client.request(
            asked.method,
            self._peer + asked.path,
            headers=asked.headers,
            data=asked.body,
            allow_redirects=False,
        ) as said:
            headers = {key: value for key, value in said.headers.items() if key.lower() not in _OF_ONE_HOP}
            if encoding := said.headers.get("Content-Encoding"):
                headers["Content-Encoding"] = encoding
            return Answer(said.status, headers, await said.read())


@asynccontextmanager
async def fault_proxy(peer: str) -> AsyncGenerator[FaultProxy]:
    """One while the context lasts."""
    made = FaultProxy(peer)
    await made.open()
    try:
        yield made
    finally:
        await made.close()


Matches: TypeAlias = Callable[[Asked], bool]


def lost_answers(matches: Matches, *, times: int | None = None) -> Fault:
    """What is asked is done, and the answer is lost; so many times."""
    lost = 0

    async def fault(asked: Asked, forward: Forward) -> Answer:
        nonlocal lost
        answer = await forward(asked)
        if matches(asked) and (times is None or lost < times):
            lost += 1
            raise LostError
        return answer

    return fault


def lost_requests() -> Fault:
    """Nothing gets through: connections end before anything is asked of the peer."""

    async def fault(asked: Asked, forward: Forward) -> Answer:
        raise LostError

    return fault


def answered(matches: Matches, answer: Answer, *, times: int | None = None, after: int = 0) -> Fault:
    """In place of the peer, which hears nothing of it; so many times, the first ones left alone."""
    seen = 0

    async def fault(asked: Asked, forward: Forward) -> Answer:
        nonlocal seen
        if not matches(asked):
            return await forward(asked)
        seen += 1
        if seen <= after or (times is not None and seen > after + times):
            return await forward(asked)
        return answer

    return fault


def sent_twice(matches: Matches) -> Fault:
    """The peer gets it twice, as when something between repeats it."""

    async def fault(asked: Asked, forward: Forward) -> Answer:
        if matches(asked):
            await forward(asked)
        return await forward(asked)

    return fault
