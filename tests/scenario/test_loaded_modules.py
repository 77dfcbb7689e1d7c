"""What the processes of a pool have loaded, as `kettle up` starts them."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.execution.system.linux import parent_of
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    """
    One whose master is executed, because of a variable; other masters of tests are forked, and have modules that their services may want.
    """
    directory, environ = tmp_path_factory.mktemp("loaded"), {**os.environ, "TZ": "UTC"}
    async with throwaway_pool(directory, cpus=1, template=template, environ=environ) as running:
        yield running
    assert [] == running.left


@pytest.mark.parametrize("name", ["master", "schedd", "shadow", "startd", "accounting", "gateway"])
async def test_a_service_that_is_ready_has_loaded_only_what_it_needs(pool: ThrowawayPool, name: str) -> None:
    """
    No process loads a web client, and no service loads numpy for the columns of which it has none; what it has from the
    process that it was forked from costs it nothing.

    What it has loaded is seen from outside by the libraries that are mapped into its process.
    """
    pid = pool.state.pid if name == "master" else await pool.restarted(name)
    mapped = Path(f"/proc/{pid}/maps").read_text()
    shared = "" if name == "master" else Path(f"/proc/{parent_of(pid)}/maps").read_text()
    assert "/msgspec/" in mapped, "this is how a loaded package is seen"
    assert [] == [each for each in ("aiohttp", "multidict", "pyarrow") if f"/{each}/" in mapped + shared]
    assert "/numpy/" not in mapped or "/numpy/" in shared
