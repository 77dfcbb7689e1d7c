"""What one member can take of the server: so much that others have theirs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, suppress

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.errors import Error

from kettle.auth.trust.accounts import Account
from kettle.auth.trust.pool import SUBSCRIPTIONS
from kettle.bus.leases import KeyLeases
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, BusError
from kettle.embedded import EmbeddedNats
from kettle.embedded.nats_config import Limits
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_wire.identity import Identity, daemon, user, worker
from kettle_wire.subjects import Subjects, machine_key, token

SUBJECTS = Subjects("pool")
WHO: dict[str, tuple[str, Identity]] = {
    "schedd": ("schedd", daemon("schedd")),
    "ada": ("user", user("ada")),
    "startd": ("startd", worker("host")),
}
MOST = 3


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EmbeddedNats]:
    with server_directory() as directory:
        most = {Account.PEOPLE: MOST, Account.WORKERS: MOST}
        members = Members(directory / "keys", SUBJECTS, WHO, connections=most)
        async with EmbeddedNats(directory / "nats", trust=members) as running:
            yield running


async def _quiet(_error: Exception) -> None:
    pass


async def connected(server: EmbeddedNats, who: str, stack: AsyncExitStack) -> Client:
    client = Client()
    stack.push_async_callback(client.close)
    await client.connect(
        server.url,
        user_credentials=str(server.credentials(who)),
        inbox_prefix=WHO[who][1].inbox.encode(),
        error_cb=_quiet,
        connect_timeout=int(PATIENCE_S),
        allow_reconnect=False,
    )
    return client


def bus_of(server: EmbeddedNats, who: str) -> AbstractAsyncContextManager[NatsBus]:
    return NatsBus.connect(
        server.url,
        subjects=SUBJECTS,
        identity=WHO[who][1],
        credentials=str(server.credentials(who)),
        patience=PATIENCE_S,
        deadline=PATIENCE_S,
    )


async def test_a_person_takes_no_connection_of_services_or_machines(server: EmbeddedNats) -> None:
    """The account of people is full; the others are not."""
    async with AsyncExitStack() as stack:
        for _ in range(MOST):
            await connected(server, "ada", stack)
        with pytest.raises(Error, match="maximum account active connections exceeded"):
            await connected(server, "ada", stack)
        for who in ("startd", "schedd", "schedd", "schedd", "schedd"):
            await connected(server, who, stack)


async def test_ads_take_no_lease() -> None:
    """
    A machine fills the memory of the server with ads, so that nobody's are taken; services keep their shards.
    """
    lease = BucketSpec(name=SUBJECTS.leases, ttl=60.0, memory=False)
    ads = BucketSpec(name=SUBJECTS.ads, ttl=60.0)
    shard = token("schedd.schedd")
    with server_directory() as directory:
        members = Members(directory / "keys", SUBJECTS, WHO)
        limits = Limits(max_memory="4MB")
        async with (
            EmbeddedNats(directory / "nats", trust=members, limits=limits) as server,
            bus_of(server, "schedd") as owner,
            bus_of(server, "startd") as machine,
        ):
            for bucket in (ads, lease):
                await owner.ensure_bucket(bucket)
            leases = KeyLeases(owner, lease.name)
            held = await leases.acquire(shard, "first", ttl=12.0)
            taken = 0
            with suppress(BusError):
                while taken < 10:
                    key = machine_key("host", f"slot{taken}@host")
                    await machine.update(ads.name, key, b"x" * (1 << 20), expect=0)
                    taken += 1
            assert 3 <= taken < 10
            lost = asyncio.ensure_future(held.lost)
            async with asyncio.timeout(PATIENCE_S), aclosing(owner.watch(lease.name, shard)) as renewals:
                while await anext(renewals) is not None:
                    pass
                await anext(renewals)
            assert not lost.done()
            await held.release()
            async with asyncio.timeout(PATIENCE_S):
                await (await leases.acquire(shard, "second", ttl=30.0)).release()


async def test_a_connection_has_so_many_subscriptions(server: EmbeddedNats) -> None:
    """With more it ends."""
    async with AsyncExitStack() as stack:
        client = await connected(server, "ada", stack)
        for number in range(SUBSCRIPTIONS + 10):
            await client.subscribe(f"{user('ada').inbox}.{number}")  # pyright: ignore[reportUnknownMemberType]
        async with asyncio.timeout(PATIENCE_S):
            while not client.is_closed:
                await asyncio.sleep(0.01)
        assert "maximum subscriptions exceeded" in str(client.last_error)
