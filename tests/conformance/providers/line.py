"""A line of TCP between a provider and its peer that can be cut, and that can lose what comes back."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

from kettle.testing.servers.held_port import held_port

_PIECE: Final = 1 << 16


class Line:
    """Listens at `port`, and passes on to a peer."""

    def __init__(self, peer: int) -> None:
        self.port: Final = held_port()
        self._peer: Final = peer
        self._refusing = False
        self._deaf_after: int | None = None
        self._asked = 0
        self._ends: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", self.port)

    async def close(self) -> None:
        """Cut everything."""
        assert self._server is not None
        self._server.close()
        self.lose()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def lose(self) -> None:
        """Cut what goes through it now."""
        for end in list(self._ends):
            end.transport.abort()

    @asynccontextmanager
    async def cut(self) -> AsyncGenerator[None]:
        """Nobody gets through while this lasts."""
        self._refusing = True
        self.lose()
        try:
            yield
        finally:
            self._refusing = False

    @contextmanager
    def deaf(self, after: int) -> Generator[None]:
        """
        Once so many bytes have gone to the peer from now on, nothing comes back; what is asked still gets there.
        """
        self._deaf_after, self._asked = after, 0
        try:
            yield
        finally:
            self._deaf_after = None
            self.lose()

    def _begin(self, ours: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pass_on(ours, back))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _pass_on(self, ours: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        if self._refusing:
            back.transport.abort()
            return
        self._ends.add(back)
        theirs, forth = await asyncio.open_connection("127.0.0.1", self._peer)
        self._ends.add(forth)
        try:
            await asyncio.gather(self._ask(ours, forth), self._answer(theirs, back))
        finally:
            self._ends -= {back, forth}
            for end in (back, forth):
                end.close()

    async def _ask(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await source.read(_PIECE):
                self._asked += len(piece)
                sink.write(piece)
                await sink.drain()
            sink.write_eof()

    async def _answer(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await source.read(_PIECE):
                if self._deaf_after is None or self._asked <= self._deaf_after:
                    sink.write(piece)
                    await sink.drain()
            sink.close()


@asynccontextmanager
async def line(peer: int) -> AsyncGenerator[Line]:
    """One while the context lasts."""
    made = Line(peer)
    await made.open()
    try:
        yield made
    finally:
        await made.close()
