"""A shadow with everybody it talks to."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from kettle.bus.memory_server import MemoryServer

from .fakes import Side


@pytest.fixture
async def side(tmp_path: Path) -> AsyncGenerator[Side]:
    side = Side(MemoryServer(), tmp_path)
    await side.schedd.serve()
    await side.startd.serve()
    try:
        yield side
    finally:
        await side.close()
