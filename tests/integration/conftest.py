"""Real servers for one service, or for one part of it."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from kettle.testing.servers.embedded import postgres_template, server_directory
from kettle.testing.services import Backend
from kettle.testing.services import backend as a_backend


@pytest.fixture(scope="session")
def template() -> Generator[Path]:
    with server_directory() as directory:
        yield asyncio.run(postgres_template(directory / "template"))


@pytest.fixture
async def backend(template: Path) -> AsyncGenerator[Backend]:
    with server_directory() as directory:
        async with a_backend(directory, template=template) as made:
            yield made
