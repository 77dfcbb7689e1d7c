"""Other people in a pool, beside the one who runs the tests."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest

from kettle.auth.trust.files import write
from kettle.auth.trust.pool import Kind, PoolTrust
from kettle.bus.nats import NatsBus
from kettle.client import Client, select
from kettle.client.connections.pool_connection import ConnectedTransport
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.identity import user
from kettle_wire.subjects import Subjects


@asynccontextmanager
async def somebody(pool: ThrowawayPool, name: str, tmp_path: Path) -> AsyncGenerator[Client]:
    """A second person with a key of her own, whom the pool vouches for while it runs."""
    if not selection.servers_are_ours():
        pytest.skip("who may connect to servers of somebody else is theirs to say")
    trust = PoolTrust(pool.home / "credentials" / "trust", Subjects(pool.client.pool.pool))
    credentials = write(tmp_path / "person.creds", partial(trust.member, Kind.PERSON, name))
    person = msgspec.structs.replace(pool.client.pool, user=name, credentials=str(credentials))
    connecting = NatsBus.connect(
        person.nats_url, subjects=Subjects(person.pool), identity=user(name), credentials=person.credentials
    )
    async with connecting as bus:
        client = Client(ConnectedTransport(bus, bus), person)
        yield client
        await client.remove(select(owners=[name]))  # nobody else may
