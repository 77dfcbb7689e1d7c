from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kettle.testing.bus_adapters import World
from kettle.testing.bus_adapters import world as open_world
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.locations import Place
from kettle.testing.servers.selection import place


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real() -> AsyncIterator[Place]:
    """NATS and PostgreSQL for all contract tests; each test has names of its own on them."""
    with server_directory() as directory:
        async with place(directory) as running:
            yield running


@pytest_asyncio.fixture(params=["memory", "nats"])
async def world(request: pytest.FixtureRequest, real: Place) -> AsyncIterator[World]:
    """A pool of its own, over each adapter of the bus."""
    async with open_world(request.param, real) as opened:
        yield opened
