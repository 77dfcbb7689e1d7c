from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.testing.servers.embedded import fresh_database, server_directory
from kettle.testing.servers.selection import database_server


@pytest.fixture
def directory() -> Generator[Path]:
    """Where a test's own server keeps what it has."""
    with server_directory() as path:
        yield path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres() -> AsyncIterator[str]:
    """One server for all tests that do not hurt it."""
    with server_directory() as path:
        async with database_server(path) as url:
            yield url


@pytest_asyncio.fixture
async def dsn(postgres: str) -> AsyncIterator[str]:
    """An empty database."""
    async with fresh_database(postgres) as url:
        yield url
