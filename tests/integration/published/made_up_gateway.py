"""A gateway that takes tunnels, or does not, as a test says."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from kettle.published.tunnel import Tunnel


class MadeUpGateway:
    """Answers each request as `answers` say, the last of them again and again; 101 makes a tunnel."""

    def __init__(self) -> None:
        self.answers = [101]
        self.requests: list[bytes] = []
        self.tickets: list[str] = []
        self.tunnels: asyncio.Queue[Tunnel] = asyncio.Queue()
        self.taken: list[Tunnel] = []
        self.url = ""
        self._writers: list[asyncio.StreamWriter] = []
        """Kept: one that is forgotten closes its connection."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if status != 101:
            body = json.dumps({"detail": f"said {status}"})
            writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: {len(body)}\r\n\r\n{body[:5]}".encode())
            await writer.drain()
            writer.write(body[5:].encode())
            writer.close()
            return
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: kettle-tunnel\r\n\r\n")
        transport = writer.transport
        tunnel = Tunnel(opens=True, on_ticket=self.tickets.append)
        transport.set_protocol(tunnel)
        tunnel.connection_made(transport)
        self.taken.append(tunnel)
        self._writers.append(writer)
        self.tunnels.put_nowait(tunnel)

    async def tunnel(self) -> Tunnel:
        """The next one that comes, as soon as it has said what it publishes."""
        found = await asyncio.wait_for(self.tunnels.get(), PATIENCE_S)
        heard = asyncio.Event()
        found.ping(heard.set)
        await asyncio.wait_for(heard.wait(), PATIENCE_S)
        return found


PATIENCE_S: Final = 60


@asynccontextmanager
async def made_up_gateway() -> AsyncGenerator[MadeUpGateway]:
    """One that listens."""
    gateway = MadeUpGateway()
    server = await asyncio.start_server(gateway.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    gateway.url = f"http://{host}:{port}"
    try:
        yield gateway
    finally:
        server.close()
        for tunnel in gateway.taken:
            tunnel.close("the test is over")
            await asyncio.wait_for(tunnel.ended(), PATIENCE_S)
