import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from kettle.testing.servers.embedded import postgres_template, server_directory


@pytest.fixture(scope="session")
def template() -> Generator[Path]:
    """A data directory that is made once and copied by the tests."""
    with server_directory() as directory:
        yield asyncio.run(postgres_template(directory / "template"))


@pytest.fixture
def directory() -> Generator[Path]:
    """Private, as a home directory is: another account cannot enter it."""
    with server_directory() as path:
        yield path
