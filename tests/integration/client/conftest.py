import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest_asyncio

from kettle.auth.bus_permissions import permissions
from kettle.bus.nats import NatsBus
from kettle.client import Client, PoolFile
from kettle.embedded import EmbeddedNats, Permissions
from kettle.testing.commands.running import KETTLE, Said, run
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle_wire.identity import daemon, user
from kettle_wire.subjects import Subjects

from .fakes import FakePool

SUBJECTS = Subjects("test")


class World:
    """A real bus with its fake pool, and the home directory of a person of that pool."""

    def __init__(self, nats: EmbeddedNats, home: Path, place: Path) -> None:
        self.nats = nats
        self.home = home
        self.place = place
        self.pool: FakePool

    @property
    def environ(self) -> Mapping[str, str]:
        return {"KETTLE_HOME": str(self.home), "PATH": os.environ["PATH"], "TZ": "UTC", "LANG": "C.UTF-8"}

    async def start(self, *words: str, **environ: str) -> asyncio.subprocess.Process:
        """The `kettle` command as a process."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kettle_services.cli",
            *words,
            cwd=self.place,
            env={**self.environ, **environ},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def kettle(self, *words: str, stdin: str = "", **environ: str) -> Said:
        """What the `kettle` command does."""
        return await run([*KETTLE, *words], self.place, {**self.environ, **environ}, stdin)


def _may() -> dict[str, Permissions]:
    publish, subscribe = permissions("user", SUBJECTS, user("ada"))
    return {
        "pool": Permissions(publish=(">",), subscribe=(">",)),
        "user": Permissions(publish=publish, subscribe=subscribe),
    }


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def nats() -> AsyncIterator[EmbeddedNats]:
    """A server on which `ada` may do what a person may, and the pool everything."""
    with server_directory() as directory:
        server = EmbeddedNats(directory / "nats", credentials=directory / "credentials", permissions=_may())
        async with server:
            yield server


@pytest_asyncio.fixture
async def bare(nats: EmbeddedNats, tmp_path: Path) -> AsyncIterator[World]:
    """A pool in which nobody answers yet; `$KETTLE_HOME/pool.json` says where it is."""
    home, place = tmp_path / "home", tmp_path / "work"
    home.mkdir(mode=0o700)
    place.mkdir()
    PoolFile(pool="test", nats_url=nats.url, credentials=str(nats.credentials("user")), user="ada").save(home)
    world = World(nats, home, place)
    async with NatsBus.connect(
        nats.url,
        subjects=SUBJECTS,
        identity=daemon("pool"),
        credentials=str(nats.credentials("pool")),
        name="fake",
        patience=PATIENCE_S,
        deadline=PATIENCE_S,
    ) as bus:
        world.pool = FakePool(bus, SUBJECTS)
        yield world


@pytest_asyncio.fixture
async def world(bare: World) -> World:
    """The world with all its services answering."""
    await bare.pool.serve()
    return bare


@pytest_asyncio.fixture
async def client(bare: World) -> AsyncIterator[Client]:
    """A person's client."""
    async with Client.connect(environ=bare.environ, patience=PATIENCE_S) as connected:
        yield connected
