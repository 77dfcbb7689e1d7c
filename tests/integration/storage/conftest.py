from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.embedded import EmbeddedPostgres
from kettle.testing.embedded import fresh_database, server_directory


@pytest.fixture
def directory() -> Generator[Path]:
    """
    Where a test's own server keeps what it has.
    """
    with server_directory() as path:
        yield path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres() -> AsyncIterator[EmbeddedPostgres]:
    """
    One server for all tests that do not hurt it.
    """
    with server_directory() as path:
        async with EmbeddedPostgres(path / "postgres", throwaway=True) as server:
            yield server


@pytest_asyncio.fixture
async def dsn(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """
    An empty database.
    """
    async with fresh_database(postgres) as url:
        yield url
