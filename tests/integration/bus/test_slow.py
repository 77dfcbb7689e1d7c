"""
A reader that does not keep up affects only itself, notices it, and loses nothing that can be read again.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partialmethod
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from nats.aio.client import Client

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, StreamSpec
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("test")
SHARD = "schedd.a"
STREAM, EVENTS = SUBJECTS.event_stream(SHARD), SUBJECTS.events(SHARD)
KB = 1024
_SUBSCRIBER = """
import asyncio, sys
from nats.aio.client import Client

async def main():
    client = Client()
    await client.connect(sys.argv[1], user_credentials=sys.argv[2])
    async def ignore(message): pass
    await client.subscribe(sys.argv[3], cb=ignore)
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest_asyncio.fixture
async def nats(directory: Path) -> AsyncIterator[EmbeddedNats]:
    async with EmbeddedNats(
        directory / "nats", credentials=directory / "keys", permissions=EVERYTHING
    ) as server:
        yield server


@asynccontextmanager
async def connected(nats: EmbeddedNats, url: str = "") -> AsyncGenerator[NatsBus, None]:
    async with NatsBus.connect(
        url or nats.url,
        subjects=SUBJECTS,
        identity=daemon("gateway"),
        credentials=str(nats.credentials("test")),
        patience=PATIENCE_S,
        deadline=PATIENCE_S / 4,  # what a server that went away did not answer is sent again
    ) as bus:
        yield bus


@asynccontextmanager
async def stopped_subscriber(nats: EmbeddedNats) -> AsyncGenerator[int, None]:
    """A process with a plain client that subscribes to the frames and is stopped; its process id."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _SUBSCRIBER,
        nats.url,
        str(nats.credentials("test")),
        EVENTS,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert b"ready\n" == await process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        yield process.pid
    finally:
        process.kill()
        await process.wait()


async def test_a_subscriber_that_is_stopped_holds_nobody_up(nats: EmbeddedNats) -> None:
    """
    While frames flow at a high rate, more than the server keeps for anybody, another one and the stream get them all.
    """
    count, size = 1_500, 64 * KB
    async with connected(nats) as owner, connected(nats) as other, stopped_subscriber(nats):
        await owner.ensure_stream(StreamSpec(name=STREAM, subjects=[EVENTS], remake=False))
        live: list[int] = []
        complete = asyncio.Event()

        def heard(_subject: str, data: bytes) -> None:
            live.append(int(data[:8]))
            if len(live) == count:
                complete.set()

        await other.listen(EVENTS, heard)
        async with asyncio.timeout(PATIENCE_S):
            for start in range(0, count, 50):
                sent = range(start, start + 50)
                await asyncio.gather(
                    *(
                        owner.append(EVENTS, b"%08d" % number + bytes(size), expect_last=number)
                        for number in sent
                    )
                )
            await complete.wait()
        assert list(range(count)) == live
        assert count == await owner.last_sequence(STREAM)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions of our client that keep a hundred messages."""
    subscribe = cast("Any", Client).subscribe
    monkeypatch.setattr(Client, "subscribe", partialmethod(subscribe, pending_msgs_limit=100))


async def test_who_is_too_slow_for_a_live_feed_is_told(nats: EmbeddedNats, narrow: None) -> None:
    """
    Our client drops what it cannot keep, and says once that something is missing, as after a lost connection.
    """
    del narrow
    async with connected(nats) as teller, connected(nats) as listener:
        heard: list[str] = []
        told = asyncio.Event()
        await listener.listen(EVENTS, lambda subject, _data: heard.append(subject))
        listener.on_return(told.set)
        for _ in range(20_000):
            await teller.publish(EVENTS, b"x")
        await asyncio.wait_for(told.wait(), PATIENCE_S)
        assert 0 < len(heard) < 20_000


async def test_a_slow_reader_of_a_stream_misses_nothing(nats: EmbeddedNats, narrow: None) -> None:
    """What was dropped comes again, because the consumer's numbering shows the gap."""
    del narrow
    async with connected(nats) as owner, connected(nats) as reader:
        await owner.ensure_stream(StreamSpec(name=STREAM, subjects=[EVENTS]))
        for _ in range(40):
            await asyncio.gather(*(owner.append(EVENTS, b"x") for _ in range(50)))
        got: list[int] = []
        async with (
            aclosing(reader.consume(STREAM, "d", subject=EVENTS, batch=1_000)) as batches,
            asyncio.timeout(PATIENCE_S),
        ):
            async for batch in batches:
                got += [message.sequence for message in batch.messages]
                await batch.ack()
                if got[-1] == 2_000:
                    break
        assert list(range(1, 2_001)) == sorted(set(got))


async def test_large_messages_are_not_all_asked_for_at_once(nats: EmbeddedNats) -> None:
    """A batch is bounded in bytes, too; everything comes, in order."""
    count, size = 24, 4 * KB * KB
    async with connected(nats) as owner, connected(nats) as reader:
        await owner.ensure_stream(StreamSpec(name=STREAM, subjects=[EVENTS]))
        for number in range(count):
            await owner.append(EVENTS, bytes([number]) + bytes(size))
        got: list[int] = []
        largest = 0
        async with (
            aclosing(reader.consume(STREAM, "", subject=EVENTS, ephemeral=True)) as batches,
            asyncio.timeout(PATIENCE_S),
        ):
            while len(got) < count:
                messages = (await anext(batches)).messages
                largest = max(largest, sum(len(message.data) for message in messages))
                got += [message.data[0] for message in messages]
        assert list(range(count)) == got
        assert largest <= 16 * KB * KB


async def test_reconnecting_leaves_no_consumer_behind(nats: EmbeddedNats) -> None:
    """After twenty lost connections each reading has one consumer on the server."""
    async with (
        Line(urlsplit(nats.url).port or 0) as line,
        connected(nats) as owner,
        connected(nats, line.url) as reader,
    ):
        await owner.ensure_stream(StreamSpec(name=STREAM, subjects=[EVENTS]))
        await owner.ensure_bucket(BucketSpec(name=SUBJECTS.ads))
        back = asyncio.Event()
        reader.on_return(back.set)
        async with (
            aclosing(reader.consume(STREAM, "", subject=EVENTS, ephemeral=True)) as plain,
            aclosing(reader.consume(STREAM, "d", subject=EVENTS)) as durable,
            aclosing(reader.watch(SUBJECTS.ads)) as watch,
            asyncio.timeout(PATIENCE_S),
        ):
            assert await anext(watch) is None
            for number in range(20):
                back.clear()
                line.cut()
                await back.wait()
                await owner.append(EVENTS, b"%d" % number)
                await owner.update(SUBJECTS.ads, "Machine.a", b"%d" % number, expect=number)
                for batches in (plain, durable):
                    batch = await anext(batches)
                    assert b"%d" % number == batch.messages[-1].data
                    await batch.ack()
                change = await anext(watch)
                while change is None or change.value != b"%d" % number:
                    change = await anext(watch)
            assert (2, 1) == await consumers(nats)
        async with asyncio.timeout(PATIENCE_S):
            while (1, 0) != await consumers(nats):
                await asyncio.sleep(0.05)


class Line:
    """The connection to a server, which can be cut; new connections get through."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """End every connection, in the middle of whatever is said."""
        for writer in self._writers:
            writer.transport.abort()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._through, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        ends = {writer, back}
        self._writers |= ends
        await asyncio.wait(
            [asyncio.ensure_future(_pipe(reader, back)), asyncio.ensure_future(_pipe(there, writer))]
        )
        self._writers -= ends


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(64 * KB):
            writer.write(data)
            await writer.drain()
    writer.close()


async def consumers(nats: EmbeddedNats) -> tuple[int, int]:
    """How many the server has for the stream and for the bucket."""
    client = Client()
    await client.connect(nats.url, user_credentials=str(nats.credentials("test")))
    try:
        manager = cast("Any", client).jetstream(timeout=PATIENCE_S)
        return len(await manager.consumers_info(STREAM)), len(
            await manager.consumers_info(f"KV_{SUBJECTS.ads}")
        )
    finally:
        await client.close()
