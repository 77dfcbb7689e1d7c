"""A server that breaks off before it has greeted."""

import asyncio
import gc

import pytest

from kettle.bus.nats import NatsBus
from kettle.testing.patience import PATIENCE_S
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

_INFO = b'INFO {"server_id":"x","version":"2.12.0","max_payload":1048576,"headers":true}\r\n'


class _Greeter:
    """Serves the first connection until it is told to drop it, and says nothing to any other."""

    def __init__(self, refusals: int) -> None:
        self.drop = asyncio.Event()
        self.refused = asyncio.Event()
        self._refusals = refusals
        self._first = True

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        first, self._first = self._first, False
        if first:
            writer.write(_INFO)
            serving = asyncio.create_task(self._serve(reader, writer))
            await self.drop.wait()
            serving.cancel()
        else:
            self._refusals -= 1
            if not self._refusals:
                self.refused.set()
        writer.close()
        await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")


@pytest.mark.filterwarnings("error::ResourceWarning")
async def test_no_socket_of_a_broken_greeting_is_left() -> None:
    """However often a server breaks off: each socket is closed when the next is opened."""
    greeter = _Greeter(refusals=3)
    async with await asyncio.start_server(greeter.meet, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        async with NatsBus.connect(
            f"nats://127.0.0.1:{port}",
            subjects=Subjects("test"),
            identity=daemon("gateway"),
            patience=PATIENCE_S,
        ):
            greeter.drop.set()
            await greeter.refused.wait()
    gc.collect()  # what was forgotten says so now, and that fails the test
