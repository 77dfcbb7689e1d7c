"""Two ends of a tunnel in one loop, and a server that stands for a service of a job."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from kettle.published.errors import StreamCode
from kettle.published.relay import CHUNK, Relay
from kettle.published.tunnel import Tunnel
from kettle.published.tunnel_stream import TunnelStream


class Pair:
    """Both ends; the job's side joins each stream with `port`, if that is not 0."""

    def __init__(self) -> None:
        self.port = 0
        self.relays: list[Relay] = []
        self.buffer: Final = bytearray(CHUNK)
        self.tasks: set[asyncio.Task[None]] = set()
        self.gateway = Tunnel(opens=True)
        self.job = Tunnel(opens=False, answer=self.answer)

    def answer(self, stream: TunnelStream) -> None:
        """Join it with the port."""
        task = asyncio.get_running_loop().create_task(self._join(stream))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _join(self, stream: TunnelStream) -> None:
        if not self.port:
            stream.refuse(StreamCode.NOTHING_LISTENS, "nothing of the job listens on port 0 yet")
            return
        relay = Relay(stream, self.buffer)
        self.relays.append(relay)
        await asyncio.get_running_loop().create_connection(lambda: relay.of_socket, "127.0.0.1", self.port)
        stream.accept(relay.of_stream)


@asynccontextmanager
async def paired() -> AsyncGenerator[Pair]:
    """Two ends that are connected."""
    loop, pair = asyncio.get_running_loop(), Pair()
    ours, theirs = socket.socketpair()
    await loop.create_connection(lambda: pair.gateway, sock=ours)
    await loop.create_connection(lambda: pair.job, sock=theirs)
    try:
        yield pair
    finally:
        pair.gateway.close("the test is over")
        await asyncio.wait_for(pair.job.ended(), 10)
        await asyncio.wait_for(pair.gateway.ended(), 10)
        if pair.tasks:
            await asyncio.wait(pair.tasks)
        for _ in range(3):
            await asyncio.sleep(0)  # transports that are closed are told so in the next turn of the loop


@asynccontextmanager
async def service(pair: Pair) -> AsyncGenerator[list[asyncio.StreamWriter]]:
    """
    A server behind the pair: it echoes lines; `give N` gives N bytes, `hold` reads no more, `count` says how many bytes came before
    the end.
    """
    open_: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_.append(writer)
        try:
            while line := await reader.readline():
                match line.split():
                    case [b"give", count]:
                        writer.write(bytes(int(count)))
                        await writer.drain()
                    case [b"hold"]:
                        writer.write(b"held\n")
                        await asyncio.Event().wait()
                    case [b"count"]:
                        writer.write(b"%d\n" % len(await reader.read(-1)))
                    case _:
                        writer.write(line)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    pair.port = server.sockets[0].getsockname()[1]
    try:
        yield open_
    finally:
        server.close()
        for writer in open_:
            writer.transport.abort()
        for relay in pair.relays:
            relay.stream.abort()
            await asyncio.wait_for(relay.done, 10)
