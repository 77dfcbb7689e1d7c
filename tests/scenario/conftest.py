"""What the scenarios share: a PostgreSQL template, and a place where jobs leave evidence of themselves."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle.testing.servers.embedded import postgres_template

from .evidence import Evidence


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(postgres_template(tmp_path_factory.mktemp("postgres") / "template"))


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
