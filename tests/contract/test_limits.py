"""What one member can take of the server: so much that others have theirs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.errors import Error

from kettle.auth.trust.accounts import Account
from kettle.auth.trust.pool import SUBSCRIPTIONS
from kettle.embedded import EmbeddedNats
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_wire.identity import Identity, daemon, user, worker
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")
WHO: dict[str, tuple[str, Identity]] = {
    "schedd": ("schedd", daemon("schedd")),
    "ada": ("user", user("ada")),
    "startd": ("startd", worker("host")),
}
MOST = 3
WITHIN_S = 10.0


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
        allow_reconnect=False,
    )
    return client


async def test_a_person_takes_no_connection_of_services_or_machines(server: EmbeddedNats) -> None:
    """The account of people is full; the others are not."""
    async with AsyncExitStack() as stack:
        for _ in range(MOST):
            await connected(server, "ada", stack)
        with pytest.raises(Error, match="maximum account active connections exceeded"):
            await connected(server, "ada", stack)
        for who in ("startd", "schedd", "schedd", "schedd", "schedd"):
            await connected(server, who, stack)


async def test_a_connection_has_so_many_subscriptions(server: EmbeddedNats) -> None:
    """With more it ends."""
    async with AsyncExitStack() as stack:
        client = await connected(server, "ada", stack)
        for number in range(SUBSCRIPTIONS + 10):
            await client.subscribe(f"{user('ada').inbox}.{number}")  # pyright: ignore[reportUnknownMemberType]
        async with asyncio.timeout(WITHIN_S):
            while not client.is_closed:
                await asyncio.sleep(0.01)
        assert "maximum subscriptions exceeded" in str(client.last_error)
