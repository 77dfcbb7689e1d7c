"""A line that is broken on purpose does to a connection what a network would."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from kettle.testing.chaos.proxy import BLACKHOLE, CLEAR, CUT, DEAF, MUTE, LineState, Proxy
from kettle.testing.patience import PATIENCE_S

MOMENT_S = 0.1
"""In which a byte that could pass would have passed: the loopback interface takes microseconds."""

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Server:
    """Keeps what it hears, and says what it is told to."""

    def __init__(self) -> None:
        self.heard = asyncio.Queue[bytes]()
        self.joined = asyncio.Queue[asyncio.StreamWriter]()
        self.clients: list[asyncio.StreamWriter] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.joined.put_nowait(writer)
        try:
            while data := await reader.read(100):
                self.heard.put_nowait(data)
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def line(server: Server) -> AsyncGenerator[tuple[Proxy, int]]:
    listening = await asyncio.start_server(server, "127.0.0.1", 0)
    proxy = Proxy(("127.0.0.1", listening.sockets[0].getsockname()[1]))
    port = await proxy.listen()
    try:
        yield proxy, port
    finally:
        await proxy.close()
        listening.close()
        await closed(*server.clients)


async def closed(*writers: asyncio.StreamWriter) -> None:
    """Ours are closed for certain: one that is left to the garbage collector warns."""
    for writer in writers:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def broken(server: Server) -> AsyncIterator[tuple[Proxy, int]]:
    async with line(server) as both:
        yield both


async def connect(port: int, server: Server) -> tuple[Ends, asyncio.StreamWriter]:
    client = await asyncio.open_connection("127.0.0.1", port)
    server.clients.append(client[1])
    async with asyncio.timeout(PATIENCE_S):
        return client, await server.joined.get()


async def heard(server: Server) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await server.heard.get()


async def read(client: Ends, size: int) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await client[0].readexactly(size)


async def test_a_clear_line_passes_both_ways(server: Server, broken: tuple[Proxy, int]) -> None:
    """Nothing is added and nothing is lost."""
    proxy, port = broken
    client, far = await connect(port, server)
    client[1].write(b"there")
    far.write(b"back")
    assert (b"there", b"back") == (await heard(server), await read(client, 4))
    assert (1, 9) == (proxy.connections, proxy.passed)


@pytest.mark.parametrize(
    ("broken_line", "there", "back"), [(BLACKHOLE, False, False), (MUTE, False, True), (DEAF, True, False)]
)
async def test_what_does_not_pass_passes_later(
    server: Server, broken: tuple[Proxy, int], broken_line: LineState, there: bool, back: bool
) -> None:
    """
    Each direction is cut off by itself; when the line is whole again the bytes come, in the same connection.
    """
    proxy, port = broken
    client, far = await connect(port, server)
    await proxy.set(broken_line)
    client[1].write(b"there")
    far.write(b"back")
    arrived, answer = asyncio.ensure_future(heard(server)), asyncio.ensure_future(read(client, 4))
    if passing := {each for each, passes in ((arrived, there), (answer, back)) if passes}:
        await asyncio.wait(passing, timeout=PATIENCE_S)
    await asyncio.wait({arrived, answer}, timeout=MOMENT_S)
    assert (there, back) == (arrived.done(), answer.done())
    await proxy.set(CLEAR)
    assert (b"there", b"back") == (await arrived, await answer)


async def test_a_cut_resets(server: Server, broken: tuple[Proxy, int]) -> None:
    """Both ends of a connection learn that it is gone, new ones too, until the line is whole."""
    proxy, port = broken
    client, _far = await connect(port, server)
    await proxy.set(CUT)
    with pytest.raises(ConnectionResetError):
        await read(client, 1)
    refused = await asyncio.open_connection("127.0.0.1", port)
    server.clients.append(refused[1])
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await read(refused, 1)
    await proxy.set(CLEAR)
    client, _far = await connect(port, server)
    client[1].write(b"again")
    assert b"again" == await heard(server)


async def test_a_black_hole_hides_the_end(server: Server, broken: tuple[Proxy, int]) -> None:
    """A server that ends its connection is not heard of while nothing passes."""
    proxy, port = broken
    client, far = await connect(port, server)
    await proxy.set(BLACKHOLE)
    far.close()
    ended = asyncio.ensure_future(client[0].read(1))
    await asyncio.wait({ended}, timeout=MOMENT_S)
    assert not ended.done()
    await proxy.set(CLEAR)
    async with asyncio.timeout(PATIENCE_S):
        assert b"" == await ended


async def test_a_slow_line_delays(server: Server, broken: tuple[Proxy, int]) -> None:
    """A byte does not arrive before its delay is over."""
    proxy, port = broken
    client, _far = await connect(port, server)
    await proxy.set(LineState(delay=0.2, rate=1000.0))
    loop = asyncio.get_running_loop()
    begun = loop.time()
    client[1].write(b"x" * 100)
    assert b"x" * 100 == await heard(server)
    assert loop.time() - begun >= 0.3


async def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """A client that connects while nothing listens behind the proxy is reset."""
    proxy = Proxy(tmp_path / "nobody")
    port = await proxy.listen()
    client = await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await read(client, 1)
    await closed(client[1])
    await proxy.close()


async def test_unix_sockets(tmp_path: Path, server: Server) -> None:
    """PostgreSQL's socket can be stood in for too."""
    listening = await asyncio.start_unix_server(server, tmp_path / "far")
    proxy = Proxy(tmp_path / "far")
    assert 0 == await proxy.listen(tmp_path / "near")
    _reader, writer = await asyncio.open_unix_connection(tmp_path / "near")
    writer.write(b"hello")
    assert b"hello" == await heard(server)
    await proxy.set(CUT)
    async with asyncio.timeout(PATIENCE_S):
        while proxy.connections:
            await asyncio.sleep(0.01)
    await proxy.close()
    listening.close()
    await closed(writer)
