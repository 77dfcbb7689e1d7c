from collections.abc import Generator
from pathlib import Path

import pytest

from kettle.testing.servers.embedded import server_directory


@pytest.fixture
def directory() -> Generator[Path]:
    """Where a test's own server keeps what it has."""
    with server_directory() as path:
        yield path
