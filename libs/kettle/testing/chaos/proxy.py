"""
A connection that can be broken: a TCP or Unix-socket proxy between one service and one server.

Bytes that cannot pass are kept and pass later, as the kernels at both ends of a broken line would send them again; what
is lost is lost with its connection, as in a network.
"""

import asyncio
import contextlib
import socket
import struct
from pathlib import Path
from typing import Final

import msgspec

_PIECE: Final = 1 << 16
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of no seconds: the connection ends with RST."""

Address = tuple[str, int] | Path
"""Host and port, or the path of a socket."""


class LineState(msgspec.Struct, frozen=True, kw_only=True):
    """What a line lets pass."""

    refuse: bool = False
    """Connections are reset, and new ones at once."""
    to_server: bool = True
    to_client: bool = True
    delay: float = 0.0
    """Seconds by which every byte is late."""
    rate: float = 0.0
    """Bytes a second in each direction of each connection; 0: as many as there are."""


CLEAR: Final = LineState()
CUT: Final = LineState(refuse=True)
BLACKHOLE: Final = LineState(to_server=False, to_client=False)
MUTE: Final = LineState(to_server=False)
DEAF: Final = LineState(to_client=False)


class Proxy:
    """
    Listens in a server's place.  The server need not be there yet; while it is not, connections are reset.
    """

    def __init__(self, upstream: Address) -> None:
        self.upstream = upstream
        self.line = CLEAR
        self.passed = 0
        """Bytes that went through."""
        self._changed = asyncio.Condition()
        self._pairs: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """How many connections there are now."""
        return len(self._pairs)

    async def listen(self, path: Path | None = None) -> int:
        """Begin, at a Unix socket or at a free port of the loopback interface; the port, or 0."""
        if path is not None:
            self._server = await asyncio.start_unix_server(self._accept, path)
            return 0
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def set(self, line: LineState) -> None:
        """Change what passes, from now on and for the connections that there are."""
        async with self._changed:
            self.line = line
            if line.refuse:
                self._reset_all()
            self._changed.notify_all()

    async def close(self) -> None:
        """End all connections and listen no more."""
        if self._server is not None:
            self._server.close()
        for pair in tuple(self._pairs):
            pair.cancel()
        self._reset_all()
        await asyncio.gather(*self._pairs, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._pairs.add(pair)
        pair.add_done_callback(self._pairs.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self.line.refuse:
                _reset(writer)
            else:
                await self._join(reader, writer)
        except OSError:
            _reset(writer)  # nobody listens there: the service hears what it would hear without us
        finally:
            writer.close()
            self._writers.discard(writer)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open(to_server=True)
        far_reader, far_writer = await self._dial()
        self._writers.add(far_writer)
        try:
            async with asyncio.TaskGroup() as group:
                there = group.create_task(self._pump(reader, far_writer, to_server=True))
                back = group.create_task(self._pump(far_reader, writer, to_server=False))
                await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
                for task in (there, back):
                    task.cancel()  # neither NATS nor PostgreSQL goes on with half a connection
        finally:
            far_writer.close()
            self._writers.discard(far_writer)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.upstream, Path):
            return await asyncio.open_unix_connection(self.upstream)
        return await asyncio.open_connection(*self.upstream)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_server: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while True:
                data = await reader.read(_PIECE)
                await self._open(to_server=to_server)
                if not data:
                    return
                if pause := self._pause(len(data)):
                    await asyncio.sleep(pause)
                    await self._open(to_server=to_server)
                writer.write(data)
                self.passed += len(data)
                await writer.drain()

    def _pause(self, size: int) -> float:
        return self.line.delay + (size / self.line.rate if self.line.rate else 0.0)

    async def _open(self, *, to_server: bool) -> None:
        if self._passes(to_server=to_server):
            return
        async with self._changed:
            await self._changed.wait_for(lambda: self._passes(to_server=to_server))

    def _passes(self, *, to_server: bool) -> bool:
        return self.line.to_server if to_server else self.line.to_client

    def _reset_all(self) -> None:
        for writer in self._writers:
            _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    held: socket.socket | None = writer.get_extra_info("socket")
    if held is not None and held.family != socket.AF_UNIX and held.fileno() >= 0:
        with contextlib.suppress(OSError):
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
