"""
What the tests of pages share: the standard pool with its pages, and one browser.

Their event loop is one as well, because what drives the browser belongs to the loop that started it.
"""

import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool

from .browser import PROGRAMS, Looks, browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def seeing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """The browser of all these tests."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("needs a browser (Debian package chromium-headless-shell)")
    async with browser(program, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6}}}


@pytest_asyncio.fixture(loop_scope="session")
async def pool(shared_pool: SharedPool, configuration: dict[str, Any]) -> AsyncIterator[ThrowawayPool]:
    """The shared pool, without jobs, as the module wants it."""
    async with shared_pool.lent(**configuration) as lent:
        yield lent


@pytest.fixture
def look(seeing: Browser, pool: ThrowawayPool) -> Looks:
    """Opens pages of the pool, as the account that it runs as."""
    gateway = pool.home / "gateway"
    token, port = ((gateway / name).read_text().strip() for name in ("token", "port"))
    return Looks(seeing, f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {token}"})
