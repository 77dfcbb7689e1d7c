"""
A directory whose server had no accounts of its own: its streams are in the account `$G` of a store of the former form.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client

from kettle.bus.nats import NatsBus
from kettle.bus.ports import StreamSpec
from kettle.embedded import EmbeddedNats
from kettle.embedded.binaries import nats_server
from kettle.embedded.ports import listens
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.servers.members import Members
from kettle_wire.identity import Identity, daemon
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")
WHO: dict[str, tuple[str, Identity]] = {role: (role, daemon(role)) for role in ("schedd", "shadow")}
SHARD = "schedd.schedd"
EVENTS = StreamSpec(name=SUBJECTS.event_stream(SHARD), subjects=[SUBJECTS.events(SHARD)])


def server(directory: Path) -> EmbeddedNats:
    return EmbeddedNats(directory / "nats", trust=Members(directory / "keys", SUBJECTS, WHO))


@asynccontextmanager
async def bus_of(running: EmbeddedNats, role: str) -> AsyncGenerator[NatsBus]:
    async with NatsBus.connect(
        running.url,
        subjects=SUBJECTS,
        identity=daemon(role),
        credentials=str(running.credentials(role)),
        patience=PATIENCE_S,
        deadline=PATIENCE_S / 4,  # what a server that went away did not answer is sent again
    ) as bus:
        yield bus


async def former(store: Path, directory: Path) -> None:
    """What a server of the former form leaves in a store: one stream with two frames."""
    port = held_port()
    config = directory / "former.conf"
    config.write_text(f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{store}" }}\n')
    program = await asyncio.create_subprocess_exec(str(nats_server()), "--config", str(config))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not listens(port):
                await asyncio.sleep(0.005)
            client = Client()
            await client.connect(
                f"nats://127.0.0.1:{port}", connect_timeout=int(PATIENCE_S), allow_reconnect=False
            )
            js = client.jetstream(timeout=PATIENCE_S)  # pyright: ignore[reportUnknownMemberType]
            await js.add_stream(name=EVENTS.name, subjects=EVENTS.subjects)  # pyright: ignore[reportUnknownMemberType]
            for frame in (b"one", b"two"):
                await js.publish(EVENTS.subjects[0], frame)
            await client.close()
    finally:
        program.terminate()
        await program.wait()
    owner = store.stat()
    for path in (store / "jetstream" / "$G", *(store / "jetstream" / "$G").rglob("*")):
        os.chown(
            path, owner.st_uid, owner.st_gid
        )  # the pool's server may run as another account than this test


async def frames(running: EmbeddedNats) -> list[bytes]:
    async with bus_of(running, "shadow") as bus, asyncio.timeout(PATIENCE_S):
        return [message.data async for message in bus.read(EVENTS.name, subject=EVENTS.subjects[0])]


async def test_the_streams_of_a_former_version_go_on(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """
    They become the pool's, with what is in them; if it has its own already those of the former version go, and its own stay.
    Either is said in the log.
    """
    nats = server(directory)
    await nats.start()
    await nats.stop()
    for each in (nats.store / "jetstream").iterdir():
        shutil.rmtree(each)
    await former(nats.store, directory)
    async with nats:
        assert [b"one", b"two"] == await frames(nats)
        async with bus_of(nats, "schedd") as bus:
            await bus.append(EVENTS.subjects[0], b"three", expect_last=2)
    assert not (nats.store / "jetstream" / "$G").exists()
    await former(nats.store, directory)
    assert (nats.store / "jetstream" / "$G").exists()
    async with nats:
        assert [b"one", b"two", b"three"] == await frames(nats)
    assert not (nats.store / "jetstream" / "$G").exists()
    said = [record.getMessage() for record in caplog.records if "$G" in record.getMessage()]
    assert ["are now those of the pool's account" in each for each in said] == [True, False]
