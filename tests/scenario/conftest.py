"""What the scenarios share: a pool, a PostgreSQL template, and a place where jobs leave evidence."""

import asyncio
import faulthandler
import shutil
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kettle.testing.servers.embedded import postgres_template, server_directory
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.condor import launchers

from .accounts import people
from .condor import Condor
from .evidence import Evidence
from .hub_programs import HubPrograms, install

_SHARED = pytest.StashKey[SharedPool]()


@pytest.fixture(scope="session")
def template() -> Generator[Path]:
    with server_directory() as directory:
        yield asyncio.run(postgres_template(directory / "template"))


@pytest.fixture(scope="session")
def shared_pool(
    tmp_path_factory: pytest.TempPathFactory, template: Path, pytestconfig: pytest.Config
) -> Iterator[SharedPool]:
    with SharedPool(tmp_path_factory.mktemp("shared"), template=template) as pool:
        pytestconfig.stash[_SHARED] = pool
        yield pool


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    """What the tests of a module want of their pool, as arguments of `SharedPool.lent`."""
    return {}


@pytest_asyncio.fixture
async def pool(shared_pool: SharedPool, configuration: dict[str, Any]) -> AsyncIterator[ThrowawayPool]:
    """The shared pool, without jobs, as the module wants it."""
    async with shared_pool.lent(**configuration) as lent:
        yield lent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and (shared := item.config.stash.get(_SHARED, None)) is not None:
        shared.spoil()
    return report


@pytest.fixture(scope="session")
def hub_programs(tmp_path_factory: pytest.TempPathFactory) -> HubPrograms:
    faulthandler.cancel_dump_traceback_later()  # of the test that is the first to ask for them
    return install(tmp_path_factory.mktemp("hub"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """After the last scenario the pool need not run beside the other tests."""
    yield
    shared = item.config.stash.get(_SHARED, None)
    if shared is not None and nextitem is not None and Path(__file__).parent not in nextitem.path.parents:
        shared.stop()


@pytest.fixture(scope="session")
def another() -> Iterator[str]:
    """The name of an account that may submit jobs, and has no files."""
    with people(1) as (person,):
        yield person.name


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the condor_* commands."""
    return launchers.install(tmp_path_factory.mktemp("commands"))


@pytest.fixture
def condor(place: Path, pool: ThrowawayPool, tmp_path: Path) -> Condor:
    """These commands, for the shared pool."""
    return Condor(place, pool, tmp_path)


@pytest.fixture
def evidence(tmp_path: Path) -> Iterator[Evidence]:
    # Outside of the test's private directory: a job may run as an account that cannot enter it.
    directory = Path(tempfile.mkdtemp(prefix="kettle-evidence-"))
    directory.chmod(0o1777)
    work = tmp_path / "work"
    work.mkdir()
    try:
        yield Evidence(directory, work)
    finally:
        shutil.rmtree(directory)
