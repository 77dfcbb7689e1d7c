"""How a stream is read as long as nothing goes wrong."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from kettle.bus import stream_reader
from kettle.bus.nats import NatsBus
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.ports import StreamSpec
from kettle.bus.stream_reader import Source, StreamReader
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("test")
STREAM, EVENTS = SUBJECTS.event_stream("schedd.a"), SUBJECTS.events("schedd.a")
MESSAGES, BATCH = 1_000, 64


@pytest.mark.parametrize("durable", ["d", ""])
async def test_all_is_read_by_one_consumer(
    directory: Path, durable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A complete pull is not a reason to recreate the consumer, which takes as long as hundreds of messages.
    """
    monkeypatch.setattr(
        stream_reader, "SILENCE_S", PATIENCE_S
    )  # a machine that did nothing for a while would be one
    async with EmbeddedNats(
        directory / "nats", credentials=directory / "keys", permissions=EVERYTHING
    ) as nats:
        credentials = str(nats.credentials("test"))
        async with (
            NatsBus.connect(
                nats.url,
                subjects=SUBJECTS,
                identity=daemon("gateway"),
                credentials=credentials,
                deadline=PATIENCE_S / 4,  # what a server that went away did not answer is sent again
            ) as bus,
            NatsConnection.open(
                nats.url,
                identity=daemon("gateway"),
                credentials=credentials,
                name="reader",
                patience=PATIENCE_S,
            ) as connection,
        ):
            await bus.ensure_stream(StreamSpec(name=STREAM, subjects=[EVENTS]))
            await asyncio.gather(*(bus.append(EVENTS, b"%d" % number) for number in range(MESSAGES)))
            reader = StreamReader(
                connection, Source(stream=STREAM, subject=EVENTS, batch=BATCH, durable=durable)
            )
            seen: list[int] = []
            async with asyncio.timeout(PATIENCE_S), aclosing(reader.batches()) as batches:
                async for deliveries in batches:
                    seen += [delivery.sequence for delivery in deliveries]
                    if deliveries and durable:
                        await reader.ack(deliveries[-1])
                    if len(seen) >= MESSAGES:
                        break

    assert list(range(1, MESSAGES + 1)) == seen
    assert 1 == reader.consumers
