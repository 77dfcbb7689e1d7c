import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from kettle.testing.embedded import postgres_template, short_directory


@pytest.fixture(scope="session")
def template() -> Generator[Path]:
    """
    A data directory that is made once and copied by the tests.
    """
    directory = Path(tempfile.mkdtemp(prefix="kettle-template-"))
    asyncio.run(postgres_template(directory))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
async def directory() -> AsyncGenerator[Path]:
    """
    Private, as a home directory is: another account cannot enter it.
    """
    async with short_directory() as path:
        yield path
