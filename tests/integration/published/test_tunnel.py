"""Tunnels over real connections."""

import asyncio
import socket

import pytest

from kettle.published.errors import StreamRefusedError, TunnelClosedError
from kettle.published.frames import FIRST_WINDOW, Announcement
from kettle.published.relay import join
from kettle.published.services import Service
from kettle.published.tunnel import Tunnel

from .tunnel_pairs import Pair, paired, service

PATIENCE_S = 60


async def said(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.readline(), PATIENCE_S)


async def test_a_service_answers_through_the_tunnel() -> None:
    """Lines, a large answer, and each direction ends for itself."""
    async with paired() as pair, service(pair):
        reader, writer = await pair.gateway.open_connection("web")
        writer.write(b"hello\n")
        assert await said(reader) == b"hello\n"
        writer.write(b"give 5000000\n")
        assert len(await asyncio.wait_for(reader.readexactly(5_000_000), PATIENCE_S)) == 5_000_000
        writer.write(b"count\n" + bytes(3_000_000))
        writer.write_eof()
        assert await said(reader) == b"3000000\n"
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        for relay in pair.relays:
            await asyncio.wait_for(relay.done, PATIENCE_S)
        await settled(pair)
        assert pair.gateway.open_streams == pair.job.open_streams == 0


async def settled(pair: Pair) -> None:
    """Until both sides have said what they had to say."""
    for end in (pair.job, pair.gateway, pair.job):
        heard = asyncio.Event()
        end.ping(heard.set)
        await asyncio.wait_for(heard.wait(), PATIENCE_S)


async def test_who_does_not_read_is_not_buffered_for_and_stops_nobody() -> None:
    """
    Of a stream that nobody reads no more than what was granted is kept, while another one delivers everything.
    """
    async with paired() as pair, service(pair):
        stream, protocol = await pair.gateway.create_connection(asyncio.Protocol, "web")
        stream.pause_reading()
        stream.write(b"give 50000000\n")
        reader, writer = await pair.gateway.open_connection("web")
        for _ in range(5):
            writer.write(b"give 4000000\n")
            await asyncio.wait_for(reader.readexactly(4_000_000), PATIENCE_S)
        assert pair.relays[0].received <= FIRST_WINDOW
        del protocol
        stream.abort()
        await settled(pair)
        assert pair.job.open_streams == 1


async def test_a_client_that_goes_away_is_gone_for_the_service() -> None:
    """The service's own connection ends, whichever way the client's did."""
    async with paired() as pair, service(pair) as there:
        for abrupt in (True, False):
            reader, writer = await pair.gateway.open_connection("web")
            writer.write(b"hello\n")
            await said(reader)
            if abrupt:
                writer.transport.abort()
            else:
                writer.close()
            await asyncio.wait_for(pair.relays[-1].done, PATIENCE_S)
            await asyncio.wait_for(there[-1].wait_closed(), PATIENCE_S)
            del reader


async def test_a_refusal_has_a_sentence() -> None:
    """And the stream is over on both sides."""
    async with paired() as pair:
        with pytest.raises(StreamRefusedError, match="nothing of the job listens") as error:
            await pair.gateway.open_connection("web")
        assert error.value.code == "nothing_listens"
        assert pair.gateway.open_streams == pair.job.open_streams == 0


async def test_a_broken_tunnel_breaks_its_streams() -> None:
    """
    Readers get an error and no end, so that half an answer is taken for no whole one; nothing new is opened.
    """
    async with paired() as pair, service(pair):
        reader, writer = await pair.gateway.open_connection("web")
        writer.write(b"hello\n")
        await said(reader)
        pair.job.close("the job has ended")
        with pytest.raises(TunnelClosedError, match="the job has ended"):
            await asyncio.wait_for(reader.read(), PATIENCE_S)
        assert await pair.gateway.ended() == "the job has ended"
        with pytest.raises(TunnelClosedError):
            await pair.gateway.open_connection("web")
        await asyncio.wait_for(pair.relays[0].done, PATIENCE_S)
        del writer


async def test_a_raw_connection_is_joined_with_a_stream() -> None:
    """
    What a client sends, and what it is answered, passes without anybody that reads it; bytes that were read before are not lost.
    """
    async with paired() as pair, service(pair):
        loop, tasks = asyncio.get_running_loop(), list[asyncio.Task[None]]()

        class First(asyncio.Protocol):
            """Reads the first bytes, and has the rest passed on."""

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                self.transport = transport

            def data_received(self, data: bytes) -> None:
                self.transport.pause_reading()
                tasks.append(loop.create_task(self.pass_on(data)))

            async def pass_on(self, data: bytes) -> None:
                stream, _ = await pair.gateway.create_connection(asyncio.Protocol, "web")
                await join(stream, self.transport, pair.buffer, received=data).done

        server = await loop.create_server(First, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"count\n" + bytes(2_000_000))
            writer.write_eof()
            assert await said(reader) == b"2000000\n"
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
            writer.close()
            await asyncio.wait_for(tasks[0], PATIENCE_S)


async def test_the_job_says_what_it_publishes_and_shows_tickets() -> None:
    """The gateway's side is told, and knows the last of it."""
    loop, heard = asyncio.get_running_loop(), list[object]()
    gateway = Tunnel(opens=True, on_announcement=heard.append, on_ticket=heard.append)
    job = Tunnel(opens=False, answer=lambda stream: None)
    ours, theirs = socket.socketpair()
    await loop.create_connection(lambda: gateway, sock=ours)
    await loop.create_connection(lambda: job, sock=theirs)
    announcement = Announcement(services=(Service("web", 80, "http"),))
    job.announce(announcement)
    job.renew("a.b.c")
    settled = asyncio.Event()
    job.ping(settled.set)
    await asyncio.wait_for(settled.wait(), PATIENCE_S)
    assert heard == [announcement, "a.b.c"]
    assert gateway.announcement == announcement
    job.close("over")
    assert await asyncio.wait_for(gateway.ended(), PATIENCE_S) == "over"


async def test_silence_ends_a_tunnel() -> None:
    """Somebody who answers no ping is gone; somebody who answers stays however quiet it is."""
    loop = asyncio.get_running_loop()
    gateway = Tunnel(opens=True, ping_s=0.05, dead_s=0.2)
    ours, theirs = socket.socketpair()
    await loop.create_connection(lambda: gateway, sock=ours)
    with theirs:
        assert "nothing was heard" in await asyncio.wait_for(gateway.ended(), PATIENCE_S)


async def test_a_stranger_is_told_what_is_wrong() -> None:
    """What is no frame ends the connection, with a CLOSE that says so."""
    loop = asyncio.get_running_loop()
    gateway = Tunnel(opens=True)
    ours, theirs = socket.socketpair()
    await loop.create_connection(lambda: gateway, sock=ours)
    reader, writer = await asyncio.open_connection(sock=theirs)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    assert b"the other side breaks the protocol" in await asyncio.wait_for(reader.read(), PATIENCE_S)
    assert "breaks the protocol" in await gateway.ended()
    writer.close()
