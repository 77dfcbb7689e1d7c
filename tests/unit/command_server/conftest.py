"""Callers of command servers, of either kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle.testing.servers.embedded import temporary
from kettle_services.condor.compiled_launcher import compile_into

from .place import Place


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The compiled launcher; None: there is no compiler here."""
    return compile_into(tmp_path_factory.mktemp("launch"))


@pytest.fixture(params=["interpreted", "compiled"])
def place(request: pytest.FixtureRequest, launch: Path | None) -> Iterator[Place]:
    """With callers of either kind, and a path that is short, as sockets need it."""
    if request.param == "compiled" and launch is None:
        pytest.skip("no C compiler is installed")
    with temporary() as directory:
        there = Place(directory, launch if request.param == "compiled" else None)
        try:
            yield there
        finally:
            for server in there.servers:
                server.kill()
                server.wait()
