"""Other people in a pool, beside the one who runs the tests."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
import pytest

from kettle.auth.bus_permissions import permissions
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusUnavailableError
from kettle.client import Client, select
from kettle.client.connections.pool_connection import ConnectedTransport
from kettle.client.connections.pool_file import PoolFile
from kettle.embedded import Permissions
from kettle.embedded.nats_config import _user  # pyright: ignore[reportPrivateUsage]  # how the server is told of a person
from kettle.embedded.nkeys import new_seed, public_key
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.identity import user
from kettle_wire.subjects import Subjects

WITHIN_S: Final = 60.0


@asynccontextmanager
async def somebody(pool: ThrowawayPool, name: str, tmp_path: Path) -> AsyncGenerator[Client]:
    """A second person with a key of her own, whom the pool's server is told of while it runs."""
    if not selection.servers_are_ours():
        pytest.skip("who may connect to servers of somebody else is theirs to say")
    subjects, identity = Subjects(pool.client.pool.pool), user(name)
    seed = new_seed()
    credentials = tmp_path / "seed.nk"
    credentials.write_text(seed)
    credentials.chmod(0o600)
    publish, subscribe = permissions("user", subjects, identity)
    (config,) = pool.home.glob("**/nats.conf")
    entry = _user(public_key(seed), Permissions(publish=publish, subscribe=subscribe, replies=False))
    config.write_text(config.read_text().replace("  users: [\n", f"  users: [\n{entry}\n"))
    pool.kill("nats", signal.SIGHUP)
    person = msgspec.structs.replace(pool.client.pool, user=name, credentials=str(credentials))
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(WITHIN_S):
            bus = await _admitted(stack, person)
        client = Client(ConnectedTransport(bus, bus), person)
        yield client
        await client.remove(select(owners=[name]))  # nobody else may


async def _admitted(stack: AsyncExitStack, person: PoolFile) -> NatsBus:
    """A connection, as soon as the server has read its configuration again."""
    while True:
        with suppress(BusUnavailableError):
            return await stack.enter_async_context(
                NatsBus.connect(
                    person.nats_url,
                    subjects=Subjects(person.pool),
                    identity=user(person.user),
                    credentials=person.credentials,
                )
            )
        await asyncio.sleep(0.05)
