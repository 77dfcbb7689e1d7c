"""Where a test finds its servers, and what it leaves on those that outlive it."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import Servers
from kettle_wire.subjects import Subjects

_LOOK_S: Final = 0.02


class NotHereError(Exception):
    """What the tests were to run on cannot be had on this machine; the message says why."""


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """Where servers are, named like the settings that say it."""

    nats_url: str
    nats_credentials: str
    """Path of the file with the seed of somebody who may do everything; empty: the server asks for none."""
    nats_replicas: int
    database_url: str


class Place(msgspec.Struct, frozen=True):
    """What one test has: servers, an empty database, and the name of a pool that nobody else uses."""

    pool: str
    addresses: Addresses
    own: Servers | None = None
    """The servers, where they are this test's own."""

    @property
    def subjects(self) -> Subjects:
        """The names of the pool on the bus."""
        return Subjects(self.pool)


@asynccontextmanager
async def fresh_pool(addresses: Addresses) -> AsyncGenerator[str]:
    """A name for a pool; at the end nothing that bears it is left on the bus."""
    name = f"t{secrets.token_hex(6)}"
    yield name
    await forget(addresses, name)


async def forget(addresses: Addresses, pool: str) -> None:
    """Remove the streams and buckets of a pool."""
    prefix = f"KETTLE_{pool}_"
    async with _jetstream(addresses) as manager:
        async with asyncio.timeout(PATIENCE_S):
            while found := [
                name for name in await _streams(manager) if name.removeprefix("KV_").startswith(prefix)
            ]:
                for name in found:
                    with suppress(NotFoundError):  # in a cluster, a list may be behind
                        await manager.delete_stream(name)


async def everywhere(addresses: Addresses, stream: str) -> None:
    """Wait until every server that keeps a stream has all of it: a reader may be given to any of them."""
    async with _jetstream(addresses) as manager:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                info = await manager.stream_info(stream)
                others = (info.cluster.replicas if info.cluster else None) or []
                if all(other.current and not other.lag for other in others):
                    return
                await asyncio.sleep(_LOOK_S)


@asynccontextmanager
async def _jetstream(addresses: Addresses) -> AsyncGenerator[JetStreamContext]:
    """With the patience of a test in place of the seconds that a client has by itself."""
    client = Client()
    await client.connect(
        addresses.nats_url.split(","),
        user_credentials=addresses.nats_credentials or None,
        connect_timeout=int(PATIENCE_S),
    )
    try:
        yield JetStreamContext(client, timeout=PATIENCE_S)
    finally:
        await client.close()


async def _streams(manager: JetStreamContext) -> list[str]:
    names: list[str] = []
    while page := await manager.streams_info(offset=len(names)):
        names += [info.config.name or "" for info in page]
    return names
