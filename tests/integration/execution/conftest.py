"""A startd with real starters and real jobs; the pool around it is a bus in memory."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from kettle.testing.submit_side import SubmitSide
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings

from .workers import open_directory, worker_pool, worker_settings


@pytest.fixture
def directory() -> Iterator[Path]:
    with open_directory() as path:
        yield path


@pytest.fixture
def settings(directory: Path) -> StartdSettings:
    return worker_settings(directory)


@pytest.fixture
async def pool(settings: StartdSettings) -> AsyncGenerator[WorkerPool]:
    async with worker_pool(settings) as made:
        yield made


@pytest.fixture
async def submitter(pool: WorkerPool) -> AsyncGenerator[SubmitSide]:
    """The submit side of a running startd, which is drained at the end and must leave nothing."""
    async with pool.startd() as startd:
        yield pool.submitter
        await startd.drain()
