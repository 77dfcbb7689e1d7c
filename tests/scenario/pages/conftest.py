"""What the tests of pages share: the standard pool with its pages, and one browser."""

import shutil
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from kettle.testing.throwaway_pool import ThrowawayPool

from .browser import Looks, chromium, looks


@pytest.fixture(scope="session")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the browser of all these tests is driven from."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs a browser (Debian package chromium)")
    with chromium(program, tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6}}}


@pytest_asyncio.fixture
async def look(driven: str, pool: ThrowawayPool) -> AsyncIterator[Looks]:
    """Opens pages of the pool, as the account that it runs as."""
    async with looks(driven, pool) as opened:
        yield opened
