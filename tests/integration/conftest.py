"""Real servers for one service, or for one part of it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.testing.servers.embedded import postgres_template, server_directory
from kettle.testing.servers.locations import Place
from kettle.testing.servers.selection import place
from kettle.testing.services import Backend, backend_on
from kettle.testing.services import backend as a_backend


@pytest.fixture(scope="session")
def template() -> Generator[Path]:
    with server_directory() as directory:
        yield asyncio.run(postgres_template(directory / "template"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(template: Path) -> AsyncIterator[Place]:
    """Servers for all tests that break none."""
    with server_directory() as directory:
        async with place(directory, template=template) as running:
            yield running


@pytest.fixture
async def backend(request: pytest.FixtureRequest, template: Path, shared: Place) -> AsyncGenerator[Backend]:
    """
    A database and a pool of the test's own on the shared servers; servers of its own where it is marked `breaks_servers`.
    """
    if request.node.get_closest_marker("breaks_servers") is None:
        async with backend_on(shared) as made:
            yield made
        return
    with server_directory() as directory:
        async with a_backend(directory, template=template) as made:
            yield made
